// How far each worker's copy of each of a tensor's slots has come, on the server that sums them (in
// elements, or in bytes of rows), whether an answer waits to be sent back, and whether the worker
// wants the sum. A copy may stand for several workers of a host (hosts.h).
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
    stands_for_.assign(slots * workers, 0);
    quiet_.assign(slots * workers, 0);
  }

  uint32_t& Of(size_t slot, size_t worker) { return come_[slot * workers_ + worker]; }
  uint32_t Of(size_t slot, size_t worker) const { return come_[slot * workers_ + worker]; }
  // What every copy that has begun has; kComplete: all of it.
  uint32_t InAll(size_t slot) const {
    uint32_t least = kComplete;
    for (size_t w = 0; w < workers_; ++w) {
      if (Takes(slot, w)) least = std::min(least, Of(slot, w));
    }
    return least;
  }
  // Whether a copy of the worker's is in the sum under way.
  bool Takes(size_t slot, size_t worker) const {
    const uint32_t come = Of(slot, worker);
    return come != 0 && come != kOwed;
  }
  // How many workers that copy stands for.
  uint16_t& StandsFor(size_t slot, size_t worker) { return stands_for_[slot * workers_ + worker]; }
  uint16_t StandsFor(size_t slot, size_t worker) const {
    return stands_for_[slot * workers_ + worker];
  }
  void Summed(size_t slot) {
    for (size_t w = 0; w < workers_; ++w) {
      if (Takes(slot, w)) Of(slot, w) = kOwed;
    }
  }
  // Of a worker that is no longer there.
  void Forget(size_t slot, size_t worker) {
    Of(slot, worker) = 0;
    Queued(slot, worker) = Quiet(slot, worker) = 0;
    StandsFor(slot, worker) = 0;
  }
  uint8_t& Queued(size_t slot, size_t worker) { return queued_[slot * workers_ + worker]; }
  uint8_t& Quiet(size_t slot, size_t worker) { return quiet_[slot * workers_ + worker]; }

 private:
  size_t workers_ = 1;
  std::vector<uint32_t> come_;
  std::vector<uint8_t> queued_, quiet_;
  std::vector<uint16_t> stands_for_;
};

}  // namespace mercury
