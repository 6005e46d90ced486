#include "trace/clock_offset.h"

#include <utility>

namespace mercury {

void ClockOffset::Sample(int64_t asked_us, int64_t received_us, int64_t answered_us,
                         int64_t heard_us) {
  const int64_t round_trip = (heard_us - asked_us) - (answered_us - received_us);
  if (heard_us < asked_us || answered_us < received_us || round_trip < 0) return;  // not of clocks
  ++samples_;
  // The two ways may differ by all of the round trip; times are cut to whole microseconds.
  const int64_t within = round_trip / 2 + 1;
  if (best_ && best_->within_us <= within) return;
  const int64_t there = received_us - asked_us;
  const int64_t back = answered_us - heard_us;
  best_ = {heard_us, (there + back) / 2, within};
}

std::optional<ClockEstimate> ClockOffset::Take() { return std::exchange(best_, std::nullopt); }

}  // namespace mercury
