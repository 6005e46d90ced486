#include "policy/prophet/prophet_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mercury {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// An iteration on its way: what has been sent when.
class Planner {
 public:
  Planner(const std::vector<PlannedGradient>& gradients, double startup_us)
      : gradients_(gradients), startup_us_(startup_us), start_us_(gradients.size(), kInfinite) {}

  std::vector<double> Run() {
    now_us_ = NextProduction(-kInfinite);
    while (left_ != 0) {
      const double before = now_us_;
      if (gradients_[0].produced_us <= now_us_) {
        SendMostUrgent();
      } else {
        SendBlock();
        now_us_ = std::max(now_us_, NextProduction(before));
      }
    }
    return start_us_;
  }

 private:
  double NextProduction(double after_us) const {
    double next = kInfinite;
    for (const PlannedGradient& g : gradients_) {
      if (g.produced_us > after_us) next = std::min(next, g.produced_us);
    }
    return next;
  }
  bool Waits(size_t i) const {
    return start_us_[i] == kInfinite && gradients_[i].produced_us <= now_us_;
  }
  void Send(size_t i, double at_us) {
    start_us_[i] = at_us;
    --left_;
  }

  void SendMostUrgent() {
    for (size_t i = 0; i < gradients_.size(); ++i) {
      if (!Waits(i)) continue;
      Send(i, now_us_);
      if (gradients_[i].wire_us == 0) return;
      now_us_ += gradients_[i].wire_us + (idle_ ? startup_us_ : 0);
      idle_ = false;
      return;
    }
    idle_ = true;
    now_us_ = NextProduction(now_us_);
  }

  void SendBlock() {
    std::vector<size_t> waiting;
    std::vector<BlockCandidate> candidates;
    double due_us = kInfinite;  // the next of those that are more urgent
    for (size_t i = 0; i < gradients_.size(); ++i) {
      const PlannedGradient& g = gradients_[i];
      if (Waits(i)) {
        waiting.push_back(i);
        candidates.push_back({g.wire_us, 1, due_us - now_us_});
      } else if (g.produced_us > now_us_) {
        due_us = std::min(due_us, g.produced_us);
      }
    }
    double used_us = 0;
    const std::vector<uint64_t> block = AssembleBlock(candidates, startup_us_);
    for (size_t c = 0; c < block.size(); ++c) {
      Send(waiting[c], now_us_ + used_us);
      used_us += gradients_[waiting[c]].wire_us + (used_us == 0 ? startup_us_ : 0);
    }
    now_us_ += used_us;
  }

  const std::vector<PlannedGradient>& gradients_;
  const double startup_us_;
  std::vector<double> start_us_;
  size_t left_ = gradients_.size();
  double now_us_ = 0;
  bool idle_ = true;  // after backward: nothing goes before what is sent next
};

}  // namespace

std::vector<uint64_t> AssembleBlock(const std::vector<BlockCandidate>& candidates,
                                    double startup_us) {
  std::vector<uint64_t> block;
  double used = 0;
  for (const BlockCandidate& candidate : candidates) {
    const double first = candidate.unit_us + (used == 0 ? startup_us : 0);
    if (candidate.units == 0 || !(used + first <= candidate.room_us)) break;
    used += first;
    uint64_t more = candidate.units - 1;
    const double fit = (candidate.room_us - used) / candidate.unit_us;
    // Compared as numbers with a fraction: `fit` may be infinite.
    if (more != 0 && fit < static_cast<double>(more)) {
      more = static_cast<uint64_t>(std::max(fit, 0.0));
    }
    used += static_cast<double>(more) * candidate.unit_us;
    block.push_back(more + 1);
    if (more + 1 != candidate.units) break;
  }
  return block;
}

std::vector<double> PlanIteration(const std::vector<PlannedGradient>& gradients,
                                  double startup_us) {
  if (gradients.empty()) return {};
  return Planner(gradients, startup_us).Run();
}

}  // namespace mercury
