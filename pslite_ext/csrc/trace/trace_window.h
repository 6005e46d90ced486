// Which iterations of a run are written down: those of the settings, while recording is switched
// on. A switch takes effect with the next iteration, so that files hold whole ones.
//
// Thread-safety: none; the thread that writes the trace owns it. Invariant: what is covered once an
// iteration has begun does not change any more.
#pragma once

#include <cstdint>
#include <limits>

namespace mercury {

class TraceWindow {
 public:
  static constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

  // Steps from `from` to before `to`.
  explicit TraceWindow(int64_t from = 0, int64_t to = kNoEnd)
      : least_(from), most_(to), from_(from), to_(to) {}

  bool on() const { return on_; }
  // After iteration `latest` has begun (-1: none has).
  void Switch(bool on, int64_t latest) {
    if (on == on_) return;
    on_ = on;
    if (on) {
      earlier_from_ = from_;
      earlier_to_ = to_;
      from_ = latest + 1 > least_ ? latest + 1 : least_;
      to_ = most_;
    } else if (latest + 1 < to_) {
      to_ = latest + 1;
    }
  }
  // Iteration -1: set-up and initial values, which belong to the first.
  bool Covers(int64_t iteration) const {
    const int64_t at = iteration < 0 ? 0 : iteration;
    return (at >= from_ && at < to_) || (at >= earlier_from_ && at < earlier_to_);
  }
  int64_t from() const { return from_; }
  int64_t to() const { return to_; }

 private:
  const int64_t least_, most_;
  int64_t from_, to_;
  int64_t earlier_from_ = 0, earlier_to_ = 0;  // what was covered before the last pause
  bool on_ = true;
};

}  // namespace mercury
