#include "fabric/ordering.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace mercury::fabric {
namespace {

constexpr int64_t kNoDeadline = std::numeric_limits<int64_t>::max();

struct Choice {
  size_t shipment = 0;
  double end_s = kNever;
};

class Orderer {
 public:
  Orderer(Network* network, const std::vector<Shipment>& shipments, const Target& target,
          std::vector<int64_t> deadlines)
      : network_(*network),
        shipments_(shipments),
        target_(target),
        deadlines_(std::move(deadlines)),
        known_s_(shipments.size(), 0),
        left_(shipments.size()) {
    std::iota(left_.begin(), left_.end(), size_t{0});
  }

  Ordering Run(bool drops) {
    const size_t mark = network_.Mark();
    if (drops) DropHopeless();
    CountDeadlines();
    Choice next = left_.empty() ? Choice{} : Choose(1);
    while (!left_.empty()) {
      const Choice chosen = next;
      const size_t before = network_.Mark();
      ReserveDirect(&network_, shipments_[chosen.shipment], target_);
      Remove(chosen.shipment);
      if (left_.empty()) {
        done_.order.push_back(chosen.shipment);
        break;
      }
      learnt_.clear();
      next = Choose(static_cast<int64_t>(done_.order.size()) + 2);
      if (drops && chosen.end_s > next.end_s + kSameTime_s) {
        done_.dropped.push_back({chosen.shipment, DropReason::kOvertaken, chosen.end_s,
                                 next.shipment, next.end_s, 0, false});
        network_.Rollback(before);
        // What was learnt with it in the network does not hold without it.
        for (auto at = learnt_.rbegin(); at != learnt_.rend(); ++at)
          known_s_[at->first] = at->second;
        next = Choose(static_cast<int64_t>(done_.order.size()) + 1);
      } else {
        done_.order.push_back(chosen.shipment);
      }
    }
    network_.Rollback(mark);
    return std::move(done_);
  }

 private:
  // More want the first d places than there are: who would end last has none.
  void DropHopeless() {
    for (const size_t g : std::vector<size_t>(left_)) {
      if (deadlines_[g] < 1) DropAtDeadline(g, 0);
    }
    std::vector<size_t> by_deadline = left_;
    std::sort(by_deadline.begin(), by_deadline.end(), [this](size_t a, size_t b) {
      return std::make_pair(deadlines_[a], a) < std::make_pair(deadlines_[b], b);
    });
    std::vector<Choice> wanting;
    for (size_t at = 0; at < by_deadline.size();) {
      const int64_t d = deadlines_[by_deadline[at]];
      if (d >= static_cast<int64_t>(by_deadline.size())) break;
      for (; at < by_deadline.size() && deadlines_[by_deadline[at]] == d; ++at) {
        wanting.push_back({by_deadline[at], End(by_deadline[at])});
      }
      while (static_cast<int64_t>(wanting.size()) > d) {
        const auto last = Last(&wanting);
        DropAtDeadline(last->shipment, d);
        wanting.erase(last);
      }
    }
  }

  // Who would end last; of equals, the last by rank.
  static std::vector<Choice>::iterator Last(std::vector<Choice>* choices) {
    double last_s = 0;
    for (const Choice& choice : *choices) last_s = std::max(last_s, choice.end_s);
    const auto rank = [last_s](const Choice& choice) {
      return choice.end_s < last_s - kSameTime_s ? -1 : static_cast<int64_t>(choice.shipment);
    };
    return std::max_element(
        choices->begin(), choices->end(),
        [&rank](const Choice& a, const Choice& b) { return rank(a) < rank(b); });
  }

  void DropAtDeadline(size_t g, int64_t contested) {
    done_.dropped.push_back({g, DropReason::kDeadline, End(g), 0, 0, contested, false});
    left_.erase(std::find(left_.begin(), left_.end(), g));
  }

  void CountDeadlines() {
    last_ = static_cast<int64_t>(left_.size());
    count_.assign(left_.size() + 1, 0);
    for (const size_t g : left_) {
      if (deadlines_[g] <= last_) ++count_[static_cast<size_t>(deadlines_[g])];
    }
  }

  void Remove(size_t g) {
    left_.erase(std::lower_bound(left_.begin(), left_.end(), g));
    if (deadlines_[g] <= last_) --count_[static_cast<size_t>(deadlines_[g])];
  }

  // g*: the shortest of those that have to be next, else of all.
  Choice Choose(int64_t round) {
    int64_t wanting = 0;
    for (int64_t d = 1; d <= last_; ++d) {
      wanting += count_[static_cast<size_t>(d)];
      if (d >= round && wanting >= d - round + 1) return Shortest(d);
    }
    return Shortest(kNoDeadline);
  }

  // Ends only move back while the network fills, so what was known of one is a bound (but for
  // rounding): few need a second look. (Of several parts that share a way out, a later one may gain
  // what an earlier one cannot use any more: there is no bound then.)
  Choice Shortest(int64_t latest) {
    const bool bounded = target_.servers.size() == 1;
    double least_s = kNever;
    if (bounded) {
      Choice likely;
      for (const size_t g : left_) {
        if (deadlines_[g] <= latest && known_s_[g] < likely.end_s) likely = {g, known_s_[g]};
      }
      least_s = Learn(likely.shipment);
    }
    for (const size_t g : left_) {
      if (deadlines_[g] > latest) continue;
      if (bounded && known_s_[g] > least_s + kSameTime_s) continue;
      least_s = std::min(least_s, Learn(g));
    }
    // Rounding must not decide between equals: the first of them is next.
    const auto first = std::find_if(left_.begin(), left_.end(), [&](size_t g) {
      return deadlines_[g] <= latest && known_s_[g] <= least_s + kSameTime_s;
    });
    return {*first, known_s_[*first]};
  }

  double Learn(size_t g) {
    const double end_s = End(g);
    if (end_s != known_s_[g]) {
      learnt_.emplace_back(g, known_s_[g]);
      known_s_[g] = end_s;
    }
    return end_s;
  }

  double End(size_t g) { return DirectEnd(&network_, shipments_[g], target_); }

  Network& network_;
  const std::vector<Shipment>& shipments_;
  const Target& target_;
  const std::vector<int64_t> deadlines_;
  std::vector<double> known_s_;  // with one server, each ends no sooner
  std::vector<std::pair<size_t, double>> learnt_;
  std::vector<size_t> left_;    // not processed, by rank
  std::vector<int64_t> count_;  // of them, by deadline
  int64_t last_ = 0;            // later deadlines bind nobody
  Ordering done_;
};

}  // namespace

double ReserveDirect(Network* network, const Shipment& shipment, const Target& target) {
  double end_s = shipment.ready_s;
  for (size_t s = 0; s < target.servers.size(); ++s) {
    end_s = std::max(end_s, network->Reserve(shipment.host, target.servers[s], shipment.ready_s,
                                             Bits(shipment.bytes[s])));
  }
  return end_s;
}

double DirectEnd(Network* network, const Shipment& shipment, const Target& target) {
  if (target.servers.size() == 1) {
    return network->End(shipment.host, target.servers[0], shipment.ready_s,
                        Bits(shipment.bytes[0]));
  }
  const size_t mark = network->Mark();
  const double end_s = ReserveDirect(network, shipment, target);
  network->Rollback(mark);
  return end_s;
}

Ordering ShortestFirst(Network* network, const std::vector<Shipment>& shipments,
                       const Target& target) {
  const std::vector<int64_t> none(shipments.size(), kNoDeadline);
  return Orderer(network, shipments, target, none).Run(false);
}

Ordering WithDeadlines(Network* network, const std::vector<Shipment>& shipments,
                       const Target& target, const std::vector<int64_t>& deadlines) {
  return Orderer(network, shipments, target, deadlines).Run(true);
}

Ordering AsTheyCome(Network* network, const std::vector<Shipment>& shipments, const Target& target,
                    const std::vector<int64_t>& deadlines) {
  Ordering done;
  for (size_t g = 0; g < shipments.size(); ++g) {
    if (deadlines[g] > static_cast<int64_t>(done.order.size())) {
      done.order.push_back(g);
    } else {
      const double end_s = DirectEnd(network, shipments[g], target);
      const int64_t contested = std::max(deadlines[g], int64_t{0});
      done.dropped.push_back({g, DropReason::kDeadline, end_s, 0, 0, contested, false});
    }
  }
  return done;
}

}  // namespace mercury::fabric
