// The best that a batch can have, by trying everything: orders, drops, destinations. For batches of
// five updates or so. It shares nothing with the planner but the network.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "fabric/network.h"
#include "fabric/shipment.h"

namespace mercury::testing {

using namespace mercury::fabric;  // NOLINT: for tests

class BruteForce {
 public:
  // `deadlines` is empty if there are none; `commits`: how many updates are to be applied.
  BruteForce(const Network& network, const std::vector<Shipment>& shipments, const Target& target,
             const std::vector<int64_t>& deadlines, size_t commits)
      : network_(network),
        shipments_(shipments),
        target_(target),
        deadlines_(deadlines),
        commits_(commits),
        gone_(shipments.size(), false),
        used_(target.aggregators.size(), false) {}

  // The least objective.
  double Best() {
    if (commits_ == 0) return 0;
    Next({});
    return best_;
  }

 private:
  struct State {
    size_t placed = 0;
    size_t committed = 0;
    double last_s = 0;
    double sum_s = 0;
    int open = kDirect;  // the aggregator with an open group
    size_t members = 0;
    double ready_s = 0;
    int64_t bytes = 0;
  };

  double Objective(const State& s) const {
    const double floor_s = std::max(s.last_s, s.ready_s);
    const auto pending = static_cast<double>(commits_ - s.committed);
    return target_.together ? floor_s
                            : (s.sum_s + pending * floor_s) / static_cast<double>(commits_);
  }

  void Arrive(State* s, double at_s, size_t members) {
    s->last_s = std::max(s->last_s, at_s);
    s->sum_s += s->last_s * static_cast<double>(members);
    s->committed += members;
  }

  State Closed(State s) {
    if (s.open == kDirect) return s;
    const bool twice = target_.two_sums && s.members > 1;
    Arrive(&s,
           network_.Reserve(target_.aggregators[static_cast<size_t>(s.open)], target_.servers[0],
                            s.ready_s, Bits(twice ? 2 * s.bytes : s.bytes)),
           s.members);
    s.open = kDirect;
    s.members = 0;
    s.ready_s = 0;
    s.bytes = 0;
    return s;
  }

  void Next(const State& s) {  // NOLINT(misc-no-recursion)
    const size_t mark = network_.Mark();
    if (s.placed == commits_) {
      best_ = std::min(best_, Objective(Closed(s)));
      network_.Rollback(mark);
      return;
    }
    if (Objective(s) >= best_) return;
    for (size_t g = 0; g < shipments_.size(); ++g) {
      if (gone_[g]) continue;
      if (!deadlines_.empty() && deadlines_[g] < static_cast<int64_t>(s.placed) + 1) continue;
      gone_[g] = true;
      for (int way = kDirect; way < static_cast<int>(used_.size()); ++way) {
        if (way != kDirect && way != s.open && used_[static_cast<size_t>(way)]) continue;
        Place(s, g, way);
        network_.Rollback(mark);
      }
      gone_[g] = false;
    }
  }

  void Place(const State& s, size_t g, int way) {  // NOLINT(misc-no-recursion)
    const Shipment& sent = shipments_[g];
    State after = way != kDirect && way == s.open ? s : Closed(s);
    ++after.placed;
    if (way == kDirect) {
      Arrive(&after,
             network_.Reserve(sent.host, target_.servers[0], sent.ready_s, Bits(sent.bytes[0])), 1);
      Next(after);
      return;
    }
    const auto a = static_cast<size_t>(way);
    const bool before = used_[a];
    used_[a] = true;
    after.open = way;
    ++after.members;
    after.ready_s = std::max(after.ready_s, network_.Reserve(sent.host, target_.aggregators[a],
                                                             sent.ready_s, Bits(sent.bytes[0])));
    after.bytes = std::max(after.bytes, sent.bytes[0]);
    Next(after);
    used_[a] = before;
  }

  Network network_;
  const std::vector<Shipment>& shipments_;
  const Target& target_;
  const std::vector<int64_t>& deadlines_;
  const size_t commits_;
  std::vector<bool> gone_;
  std::vector<bool> used_;
  double best_ = std::numeric_limits<double>::infinity();
};

}  // namespace mercury::testing
