// How fast one direction of a host's link is over time: piecewise constant, the last rate for ever.
//
// Thread-safety: a plain value. Times are seconds, rates bit/s; there is no clock. Invariants:
// the first step is at 0, times rise, neighbours differ, no rate is above 0 and below 1 bit/s.
// Undoing takes back the latest change exactly, to the last bit.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace mercury::fabric {

// The rate from `at_s` on.
struct RateStep {
  double at_s = 0;
  double bit_per_s = 0;
};

// A stretch of a transfer: what it takes of its path from start to end.
struct RateSpan {
  double start_s = 0;
  double end_s = 0;
  double bit_per_s = 0;
};

class RateProfile {
 public:
  // What a change has replaced: `fresh` steps at `first` took the place of others.
  struct Change {
    size_t first = 0;
    size_t fresh = 0;
    size_t replaced = 0;
  };

  RateProfile() = default;
  // `steps` as in a batch: at least one, the first at 0, times rising.
  explicit RateProfile(const std::vector<RateStep>& steps);

  // The step that holds at `at_s` >= 0.
  size_t Find(double at_s) const;
  double Rate(size_t step) const { return steps_[step].bit_per_s; }
  double EndOf(size_t step) const {
    return step + 1 < steps_.size() ? steps_[step + 1].at_s : kForever;
  }
  size_t size() const { return steps_.size(); }

  // Takes what `pieces` (in order, at least one) use. What was there before goes to the end of
  // `replaced`.
  Change Take(const std::vector<RateSpan>& pieces, std::vector<RateStep>* replaced);
  // Takes the latest change back; its steps leave `replaced`.
  void Undo(const Change& change, std::vector<RateStep>* replaced);

  static constexpr double kForever = std::numeric_limits<double>::infinity();
  static constexpr double kLeastRate = 1;  // what is below is none

 private:
  void Splice(size_t first, size_t last, const RateStep* fresh, size_t count);

  std::vector<RateStep> steps_{{0, 0}};
  std::vector<RateStep> scratch_;
};

// What is left of a way that leads through both.
RateProfile Least(const RateProfile& one, const RateProfile& other);

// How a transfer of `bits` goes from `ready_s` on, with all that `out` and `in` have: when it ends.
// Its pieces go to the end of `pieces`, unless that is null. Both profiles must end above 0.
double Flow(const RateProfile& out, const RateProfile& in, double ready_s, double bits,
            std::vector<RateSpan>* pieces);

}  // namespace mercury::fabric
