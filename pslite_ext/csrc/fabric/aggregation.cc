#include "fabric/aggregation.h"

#include <algorithm>
#include <limits>

namespace mercury::fabric {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Fills the aggregators with order[direct..]. False: it would end at `last_s` or later, or its
// commits' times would sum up to more than `sum_s`.
bool Fill(Network* network, const Target& target, const std::vector<size_t>& order, size_t direct,
          double last_s, double sum_s, Course* course, Schedule* schedule) {
  const size_t aggregators = target.aggregators.size();
  size_t a = 0;
  for (size_t i = direct; i < order.size();) {
    const bool last = a + 1 == aggregators;
    const double ready_s = course->ready_s();
    const int64_t bytes = course->bytes();
    const size_t mark = network->Mark();
    const double end_s = course->Gather(order[i], static_cast<int>(a));
    if (last || end_s <= course->outcome().last_s + kSameTime_s) {
      // Whatever is not committed yet is so no sooner than its group is complete.
      const Outcome& so_far = course->outcome();
      const double sooner_s = std::max(course->ready_s(), so_far.last_s);
      const size_t pending = order.size() - so_far.committed;
      if (end_s >= last_s) return false;
      if (so_far.sum_s + static_cast<double>(pending) * sooner_s > sum_s) return false;
      if (schedule != nullptr) schedule->push_back({order[i], static_cast<int>(a)});
      ++i;
      continue;
    }
    network->Rollback(mark);
    course->TakeBack(ready_s, bytes);
    course->Close();
    if (course->outcome().last_s >= last_s) return false;
    ++a;
  }
  course->Close();
  return course->outcome().last_s < last_s && course->outcome().sum_s <= sum_s;
}

}  // namespace

Schedule AggregateAllBut(Network* network, const std::vector<Shipment>& shipments,
                         const Target& target, const std::vector<size_t>& order, size_t direct) {
  const size_t mark = network->Mark();
  Schedule schedule;
  Course course(network, shipments, target);
  for (size_t i = 0; i < direct; ++i) {
    course.Direct(order[i]);
    schedule.push_back({order[i], kDirect});
  }
  Fill(network, target, order, direct, kNever, kNever, &course, &schedule);
  network->Rollback(mark);
  return schedule;
}

Schedule Aggregate(Network* network, const std::vector<Shipment>& shipments, const Target& target,
                   const std::vector<size_t>& order) {
  const size_t count = order.size();
  size_t best = count;
  if (!target.aggregators.empty()) {
    Course course(network, shipments, target);
    std::vector<size_t> marks{network->Mark()};
    std::vector<Outcome> outcomes{course.outcome()};
    for (const size_t g : order) {
      course.Direct(g);
      marks.push_back(network->Mark());
      outcomes.push_back(course.outcome());
    }
    // From the back, so that each n finds the network as its n direct transfers leave it.
    double last_s = outcomes[count].last_s;
    const double sum_s =
        target.together ? kNever : outcomes[count].sum_s + static_cast<double>(count) * kSameTime_s;
    for (size_t n = count; n-- > 0;) {
      network->Rollback(marks[n]);
      course.Resume(outcomes[n]);
      if (Fill(network, target, order, n, last_s - kSameTime_s, sum_s, &course, nullptr)) {
        last_s = course.outcome().last_s;
        best = n;
      }
    }
    network->Rollback(marks[0]);
  }
  return AggregateAllBut(network, shipments, target, order, best);
}

}  // namespace mercury::fabric
