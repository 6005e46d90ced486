// How far each worker's copy of each of a tensor's slots has come, on the server that sums them,
// and whether an answer waits to be sent back.
//
// Thread-safety: none; an aggregator owns it. Invariant: a copy is kOwed from its slot's sum until
// the worker has been sent all of that.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mercury {

class SlotProgress {
 public:
  // Instead of bytes that have come: all of them; all, and the sum is still to be sent.
  static constexpr uint32_t kComplete = ~uint32_t{0}, kOwed = kComplete - 1;

  void Resize(size_t slots, size_t workers) {
    workers_ = workers;
    bytes_.assign(slots * workers, 0);
    queued_.assign(slots * workers, 0);
  }

  uint32_t& Of(size_t slot, size_t worker) { return bytes_[slot * workers_ + worker]; }
  // Bytes that every copy has; kComplete: all are complete.
  uint32_t InAll(size_t slot) const {
    uint32_t least = kComplete;
    for (size_t i = slot * workers_; i < (slot + 1) * workers_; ++i) {
      least = std::min(least, bytes_[i] == kOwed ? 0 : bytes_[i]);
    }
    return least;
  }
  void Summed(size_t slot) {
    std::fill_n(bytes_.begin() + static_cast<std::ptrdiff_t>(slot * workers_), workers_, kOwed);
  }
  uint8_t& Queued(size_t slot, size_t worker) { return queued_[slot * workers_ + worker]; }

 private:
  size_t workers_ = 1;
  std::vector<uint32_t> bytes_;
  std::vector<uint8_t> queued_;
};

}  // namespace mercury
