// How far each worker's copy of each of a tensor's slots has come, on the server that sums them (in
// elements, or in bytes of rows), whether an answer waits to be sent back, and whether the worker
// wants the sum.
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
  // Instead of what has come: all of it; all, and the sum is still to be sent.
  static constexpr uint32_t kComplete = ~uint32_t{0}, kOwed = kComplete - 1;

  void Resize(size_t slots, size_t workers) {
    workers_ = workers;
    come_.assign(slots * workers, 0);
    queued_.assign(slots * workers, 0);
    quiet_.assign(slots * workers, 0);
  }

  uint32_t& Of(size_t slot, size_t worker) { return come_[slot * workers_ + worker]; }
  uint32_t Of(size_t slot, size_t worker) const { return come_[slot * workers_ + worker]; }
  // What every copy has; kComplete: all are complete.
  uint32_t InAll(size_t slot) const {
    uint32_t least = kComplete;
    for (size_t i = slot * workers_; i < (slot + 1) * workers_; ++i) {
      least = std::min(least, come_[i] == kOwed ? 0 : come_[i]);
    }
    return least;
  }
  void Summed(size_t slot) {
    std::fill_n(come_.begin() + static_cast<std::ptrdiff_t>(slot * workers_), workers_, kOwed);
  }
  uint8_t& Queued(size_t slot, size_t worker) { return queued_[slot * workers_ + worker]; }
  uint8_t& Quiet(size_t slot, size_t worker) { return quiet_[slot * workers_ + worker]; }

 private:
  size_t workers_ = 1;
  std::vector<uint32_t> come_;
  std::vector<uint8_t> queued_, quiet_;
};

}  // namespace mercury
