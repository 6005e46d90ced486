#include "fabric/aggregation.h"

#include <algorithm>
#include <cmath>

namespace mercury::fabric {
namespace {

// Algorithm 3 for one order.
class Division {
 public:
  Division(Network* network, const std::vector<Shipment>& shipments, const Target& target,
           const std::vector<size_t>& order)
      : network_(*network),
        shipments_(shipments),
        target_(target),
        order_(order),
        course_(network, shipments, target) {}

  Schedule AllBut(size_t direct) {
    const size_t mark = network_.Mark();
    Schedule schedule;
    for (size_t i = 0; i < direct; ++i) {
      course_.Direct(order_[i]);
      schedule.push_back({order_[i], kDirect});
    }
    Fill(direct, kNever, &schedule);
    network_.Rollback(mark);
    course_.Resume({});
    return schedule;
  }

  // How many updates are best sent straight.
  size_t BestDirect() {
    const size_t count = order_.size();
    if (target_.aggregators.empty() || count == 0) return count;
    CountRest();
    marks_.assign(1, network_.Mark());
    outcomes_.assign(1, {});
    SendStraight(count);
    const double all_straight_s = outcomes_[count].last_s;
    if (!target_.together) {
      sum_most_s_ =
          outcomes_[count].sum_s * (1 + kSamePart) + static_cast<double>(count) * kSameTime_s;
    }
    // A few are tried at first. What they end at is a bound: whatever sends so many straight that
    // these alone end later need not be looked at.
    double bound_s = all_straight_s;
    const auto step = static_cast<size_t>(std::sqrt(static_cast<double>(count)));
    size_t tried = count;
    while (tried >= step) {
      tried -= step;
      bound_s = std::min(bound_s, EndOf(tried, bound_s));
    }
    size_t most = count - 1;
    while (most > 0 && outcomes_[most].last_s > bound_s + kSameTime_s) --most;
    network_.Rollback(marks_[tried]);
    course_.Resume(outcomes_[tried]);
    marks_.resize(tried + 1);
    outcomes_.resize(tried + 1);
    SendStraight(most);
    // Then all, from the back, so that each finds the network as its straight ones leave it. Of
    // equal ones the first, which sends the most straight, stays.
    double last_s = all_straight_s;
    size_t best = count;
    for (size_t n = most + 1; n-- > 0;) {
      // Of long times a nanosecond may be nothing: the bound itself has to be below the limit.
      const double above_s = std::nextafter(bound_s + kSameTime_s, kNever);
      const double end_s = EndOf(n, std::min(last_s - kSameTime_s, above_s));
      if (end_s == kNever) continue;
      last_s = end_s;
      best = n;
    }
    network_.Rollback(marks_[0]);
    return best;
  }

 private:
  // order_[marks_.size() - 1 .. up_to - 1] go straight.
  void SendStraight(size_t up_to) {
    while (marks_.size() <= up_to) {
      course_.Direct(order_[marks_.size() - 1]);
      marks_.push_back(network_.Mark());
      outcomes_.push_back(course_.outcome());
    }
  }

  // When it all ends with n straight; never, if that is `limit_s` or later, or no candidate.
  double EndOf(size_t n, double limit_s) {
    network_.Rollback(marks_[n]);
    course_.Resume(outcomes_[n]);
    return Fill(n, limit_s, nullptr) ? course_.outcome().last_s : kNever;
  }

  // rest_bits_[i]: what order_[i..] would bring into the last aggregator's host.
  void CountRest() {
    rest_bits_.assign(order_.size() + 1, 0);
    for (size_t i = order_.size(); i-- > 0;) {
      const Shipment& sent = shipments_[order_[i]];
      const bool beside = sent.host == target_.aggregators.back();
      rest_bits_[i] = rest_bits_[i + 1] + (beside ? 0 : Bits(sent.bytes[0]));
    }
  }

  // Fills the aggregators with order_[direct..]. False: it would end at `limit_s` or later, or the
  // mean commit would be too late.
  bool Fill(size_t direct, double limit_s, Schedule* schedule) {
    const Outcome& so_far = course_.outcome();
    size_t a = 0;
    for (size_t i = direct; i < order_.size();) {
      const bool last = a + 1 == target_.aggregators.size();
      if (last && course_.gathered() == 0 && limit_s != kNever &&
          network_.EndInto(target_.aggregators[a], rest_bits_[i]) > limit_s + kSameTime_s) {
        return false;
      }
      const double ready_s = course_.ready_s();
      const int64_t bytes = course_.bytes();
      const size_t mark = network_.Mark();
      const double end_s = course_.Gather(order_[i], static_cast<int>(a));
      if (!last && end_s > so_far.last_s + kSameTime_s) {  // the group is closed without it
        network_.Rollback(mark);
        course_.TakeBack(ready_s, bytes);
        course_.Close();
        if (so_far.last_s >= limit_s) return false;
        ++a;
        continue;
      }
      if (end_s >= limit_s) return false;
      // Whatever is not committed yet is so no sooner than its group is complete.
      const double sooner_s = std::max(course_.ready_s(), so_far.last_s);
      const auto pending = static_cast<double>(order_.size() - so_far.committed);
      if (limit_s != kNever && so_far.sum_s + pending * sooner_s > sum_most_s_) return false;
      if (schedule != nullptr) schedule->push_back({order_[i], static_cast<int>(a)});
      ++i;
    }
    course_.Close();
    return so_far.last_s < limit_s && so_far.sum_s <= sum_most_s_;
  }

  Network& network_;
  const std::vector<Shipment>& shipments_;
  const Target& target_;
  const std::vector<size_t>& order_;
  Course course_;
  double sum_most_s_ = kNever;
  std::vector<double> rest_bits_;
  // After so many straight ones:
  std::vector<size_t> marks_;
  std::vector<Outcome> outcomes_;
};

}  // namespace

Schedule AggregateAllBut(Network* network, const std::vector<Shipment>& shipments,
                         const Target& target, const std::vector<size_t>& order, size_t direct) {
  return Division(network, shipments, target, order).AllBut(direct);
}

Schedule Aggregate(Network* network, const std::vector<Shipment>& shipments, const Target& target,
                   const std::vector<size_t>& order) {
  const size_t direct = Division(network, shipments, target, order).BestDirect();
  return AggregateAllBut(network, shipments, target, order, direct);
}

}  // namespace mercury::fabric
