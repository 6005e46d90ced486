// The CRC-32C of memory that does not change, worked out when it is first asked for, and once for
// all who share it.
//
// Thread-safety: any thread may ask; two that ask at the same time may both work it out. Ownership:
// none of the memory. Invariant: it is always asked for the same bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/crc32c.h"

namespace mercury {

class SumOnce {
 public:
  uint32_t Of(const void* data, size_t bytes) {
    const uint64_t known = known_.load(std::memory_order_relaxed);
    if (known != 0) return static_cast<uint32_t>(known);
    const uint32_t sum = Crc32c(0, data, bytes);
    known_.store(kKnown | sum, std::memory_order_relaxed);
    return sum;
  }

 private:
  static constexpr uint64_t kKnown = uint64_t{1} << 32;
  std::atomic<uint64_t> known_{0};
};

}  // namespace mercury
