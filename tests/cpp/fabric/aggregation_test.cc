#include "fabric/aggregation.h"

#include "fabric/planner.h"
#include "fabric/random_batch.h"

using namespace mercury::testing;

namespace {

// DetAgg(n), word by word.
Schedule ByTheRules(Network network, const std::vector<Shipment>& shipments, const Target& target,
                    const std::vector<size_t>& order, size_t direct) {
  Schedule schedule;
  double t_max = 0;
  for (size_t i = 0; i < direct; ++i) {
    const Shipment& sent = shipments[order[i]];
    t_max = std::max(
        t_max, network.Reserve(sent.host, target.servers[0], sent.ready_s, Bits(sent.bytes[0])));
    schedule.push_back({order[i], kDirect});
  }
  size_t a = 0;
  double ready_s = 0;
  int64_t largest = 0;
  size_t members = 0;
  for (size_t i = direct; i < order.size();) {
    const Shipment& sent = shipments[order[i]];
    const size_t host = target.aggregators[a];
    const double end_s = network.End(sent.host, host, sent.ready_s, Bits(sent.bytes[0]));
    if (end_s <= t_max + kSameTime_s || a + 1 == target.aggregators.size()) {
      network.Reserve(sent.host, host, sent.ready_s, Bits(sent.bytes[0]));
      ready_s = std::max(ready_s, end_s);
      largest = std::max(largest, sent.bytes[0]);
      ++members;
      schedule.push_back({order[i++], static_cast<int>(a)});
      continue;
    }
    if (members > 0) {
      const int64_t bytes = AggregateBytes(target, largest, members);
      t_max = std::max(t_max, network.Reserve(host, target.servers[0], ready_s, Bits(bytes)));
    }
    ++a;
    ready_s = 0;
    largest = 0;
    members = 0;
  }
  return schedule;
}

Outcome Walked(Network network, const std::vector<Shipment>& shipments, const Target& target,
               const Schedule& schedule) {
  Course course(&network, shipments, target);
  course.Walk(schedule);
  return course.outcome();
}

bool Same(const Schedule& a, const Schedule& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].shipment != b[i].shipment || a[i].aggregator != b[i].aggregator) return false;
  }
  return true;
}

}  // namespace

TEST(who_would_come_late_to_a_group_is_in_the_next) {  // Fig. 6
  constexpr int64_t kBytes = 12'500'000;               // 100 Mbit
  std::vector<HostLink> hosts(9, Steady(100e6, 100e6));
  hosts[4] = hosts[5] = Steady(100e6, 50e6);
  hosts[6] = Steady(100e6, 25e6);
  Network network(hosts);
  std::vector<Shipment> shipments;
  for (size_t host = 1; host <= 6; ++host) shipments.push_back({host, 0, {kBytes}});
  Target target;
  target.servers = {0};
  target.aggregators = {7, 8};
  const Schedule schedule = Aggregate(&network, shipments, target, {0, 1, 2, 3, 4, 5});
  CHECK_TRUE(Same(schedule, {{0, kDirect}, {1, kDirect}, {2, kDirect}, {3, 0}, {4, 0}, {5, 1}}));
  CHECK_EQ(Walked(network, shipments, target, schedule).last_s, 5);
  CHECK_EQ(network.Mark(), 0);
}

TEST(with_nothing_straight_all_goes_to_the_last_aggregator) {
  Network network(std::vector<HostLink>(5, Steady(100, 100)));
  const std::vector<Shipment> shipments = {{1, 0, {10}}, {2, 0, {10}}};
  Target target;
  target.servers = {0};
  target.aggregators = {3, 4};
  CHECK_TRUE(Same(AggregateAllBut(&network, shipments, target, {0, 1}, 0), {{0, 1}, {1, 1}}));
}

TEST(without_aggregators_all_goes_straight) {
  Network network(std::vector<HostLink>(3, Steady(100, 100)));
  const std::vector<Shipment> shipments = {{1, 0, {10}}, {2, 0, {10}}};
  Target target;
  target.servers = {0};
  CHECK_TRUE(Same(Aggregate(&network, shipments, target, {1, 0}), {{1, kDirect}, {0, kDirect}}));
}

TEST(schedules_are_those_of_the_rules_word_by_word) {
  Random random;
  for (int round = 0; round < 1500; ++round) {
    Shape shape;
    shape.updates_most = 10;
    shape.aggregators_most = 4;
    shape.synchronous = random.OneIn(3);
    shape.equal_bytes = random.OneIn(2);
    const Batch batch = RandomBatch(&random, shape);
    std::vector<Shipment> shipments = ShipmentsOf(batch);
    if (random.OneIn(4)) {  // months, of which a nanosecond is no part that a number could show
      for (Shipment& shipment : shipments) shipment.bytes[0] *= 10'000'000;
    }
    const Target target = TargetOf(batch);
    Network network = batch.network;
    const std::vector<size_t> order = ShortestFirst(&network, shipments, target).order;
    Schedule best;
    double least_s = 0;
    double mean_s = 0;
    for (size_t n = order.size() + 1; n-- > 0;) {
      if (n < order.size() && target.aggregators.empty()) break;
      const Schedule schedule = ByTheRules(network, shipments, target, order, n);
      CHECK_TRUE(Same(schedule, AggregateAllBut(&network, shipments, target, order, n)));
      const Outcome outcome = Walked(network, shipments, target, schedule);
      const double own_mean_s = outcome.sum_s / static_cast<double>(order.size());
      if (n == order.size()) mean_s = own_mean_s;
      if (!target.together && own_mean_s > mean_s * (1 + kSamePart) + kSameTime_s) continue;
      if (best.empty() || outcome.last_s < least_s - kSameTime_s) {
        best = schedule;
        least_s = outcome.last_s;
      }
    }
    CHECK_TRUE(Same(Aggregate(&network, shipments, target, order), best));
  }
}
