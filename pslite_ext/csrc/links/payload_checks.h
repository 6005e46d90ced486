// The checks of parts of one block of bytes that goes to several peers: each is made once, by the
// link that needs it first, while no endpoint is locked.
//
// Thread-safety: all functions from any thread. Invariant: the bytes do not change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/crc32c.h"

namespace mercury {

class PayloadChecks {
 public:
  // Crc32c(0, the `length` bytes at `at` of the block), which are `part`.
  uint32_t Of(const char* part, uint32_t at, uint32_t length) {
    // Who needs the same waits for it instead of making it again.
    const std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < count_; ++i) {
      if (made_[i].at == at && made_[i].length == length) return made_[i].crc;
    }
    const uint32_t crc = Crc32c(0, part, length);
    if (count_ < made_.size()) made_[count_++] = {at, length, crc};
    return crc;
  }

 private:
  // Peers whose links are slow get a block in more parts; then a check costs nothing beside the
  // link.
  static constexpr size_t kMadeMax = 16;
  struct Made {
    uint32_t at, length, crc;
  };
  std::mutex mutex_;
  size_t count_ = 0;
  std::array<Made, kMadeMax> made_;
};

}  // namespace mercury
