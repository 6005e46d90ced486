// The checks of parts of one block of bytes that goes to several peers: each is made once, by the
// link that needs it first, while no endpoint is locked.
//
// Thread-safety: all functions from any thread. Invariant: the bytes do not change.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "base/crc32c.h"

namespace mercury {

class PayloadChecks {
 public:
  // Crc32c(0, the `length` bytes at `at` of the block), which are `part`.
  uint32_t Of(const char* part, uint32_t at, uint32_t length) {
    // Who needs the same waits for it instead of making it again.
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Made& made : made_) {
      if (made.at == at && made.length == length) return made.crc;
    }
    const uint32_t crc = Crc32c(0, part, length);
    if (made_.size() < kMadeMax) made_.push_back({at, length, crc});
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
  std::vector<Made> made_;
};

}  // namespace mercury
