// CRC-32C (Castagnoli), the checksum of payloads, in the fastest way that the processor has: wide
// carry-less products (AVX-512), its crc32 instruction in three streams, tables.
//
// Thread-safety: pure functions. Invariant: all ways give the same; Crc32c(Crc32c(0, a), b) is
// the sum over a followed by b.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mercury {

uint32_t Crc32c(uint32_t crc, const void* data, size_t bytes);

struct Crc32cWay {
  const char* name;
  uint32_t (*sum)(uint32_t crc, const void* data, size_t bytes);
};
// Those that this processor has, the slowest first; Crc32c uses the last one.
const std::vector<Crc32cWay>& Crc32cWays();

}  // namespace mercury
