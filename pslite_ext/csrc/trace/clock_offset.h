// How far this node's clock is from the scheduler's: from questions and answers whose times of
// sending and receipt are known. The truth lies within half of the shortest round trip.
//
// Thread-safety: none; the van's I/O thread owns it. No I/O, no clock. Invariant: an estimate is
// that of the shortest round trip since the one before.
#pragma once

#include <cstdint>
#include <optional>

namespace mercury {

struct ClockEstimate {
  int64_t time_us = 0;    // of this node's clock, when it was made
  int64_t add_us = 0;     // to this node's clock gives the scheduler's
  int64_t within_us = 0;  // the error, at most
};

class ClockOffset {
 public:
  // Asked at asked_us and heard at heard_us by this clock; received and answered by the other's.
  void Sample(int64_t asked_us, int64_t received_us, int64_t answered_us, int64_t heard_us);
  // The best since the last call; none if there was no sample.
  std::optional<ClockEstimate> Take();
  int samples() const { return samples_; }

 private:
  std::optional<ClockEstimate> best_;
  int samples_ = 0;
};

}  // namespace mercury
