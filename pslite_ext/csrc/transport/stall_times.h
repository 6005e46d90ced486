// When a worker asks for whom something waits, says so, and gives the job up for it.
//
// Thread-safety: pure functions, no clock. Invariant: while it moves, nothing is given up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

#include "base/never.h"

namespace mercury {

struct StallTimes {
  int64_t warn_us = 30000000;  // before the first question; 0: nothing is asked
  int64_t end_us = 0;          // 0: a stall never ends the job

  int64_t FirstQuestion(int64_t since_us) const {
    return since_us + (end_us == 0 ? warn_us : std::min(warn_us, end_us));
  }
  // After one at `now_us`: the longer it waits, the fewer, but one when the job is to end.
  // `moved_us`: when something of it last came in, or it began.
  int64_t NextQuestion(int64_t since_us, int64_t moved_us, int64_t now_us) const {
    const int64_t later = now_us + std::max<int64_t>(now_us - since_us, 1000000);
    const int64_t end = end_us == 0 ? kNever : moved_us + end_us;
    return end > now_us ? std::min(later, end) : later;
  }
  bool Over(int64_t moved_us, int64_t now_us) const {
    return end_us != 0 && now_us - moved_us >= end_us;
  }
};

// How long this process itself has not run (it was stopped, or its machine stood still), if it was
// here at `last_us` (0: never) and comes about once a second. Nobody else is to blame for that.
inline int64_t OwnPause_us(int64_t last_us, int64_t now_us) {
  constexpr int64_t kUsual_us = 2000000;
  return last_us != 0 && now_us - last_us > kUsual_us ? now_us - last_us : 0;
}

// Of something that waits: such a pause is no part of it.
inline void LeaveOut(int64_t pause_us, int64_t now_us, int64_t* moved_us, int64_t* ask_at_us) {
  *moved_us = std::min(*moved_us + pause_us, now_us);
  *ask_at_us += pause_us;
}

// Ends the job: `worker` is the first of those that have not done their part.
using Stalled = std::function<void(int worker, const std::string& text)>;

}  // namespace mercury
