// CRC-32C (Castagnoli), the optional check sum of packets: the processor's instruction where there
// is one, a table elsewhere.
//
// Thread-safety: pure functions. Invariant: both ways give the same; Crc32c(Crc32c(0, a), b) is
// the sum over a followed by b.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mercury {

uint32_t Crc32c(uint32_t crc, const void* data, size_t bytes);
// The slow way, for tests and other processors.
uint32_t Crc32cByTable(uint32_t crc, const void* data, size_t bytes);

}  // namespace mercury
