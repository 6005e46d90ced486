#include "fabric/local_search.h"

#include "fabric/aggregation.h"
#include "fabric/brute_force.h"
#include "fabric/course.h"
#include "fabric/planner.h"
#include "fabric/random_batch.h"

using namespace mercury::testing;

namespace {

struct Ratios {
  double sum = 0;
  double worst = 0;
  size_t count = 0;

  void Add(double ratio) {
    sum += ratio;
    worst = std::max(worst, ratio);
    ++count;
  }
  double Mean() const { return sum / static_cast<double>(count); }
};

void Compare(bool synchronous, double rules_mean_most, double search_mean_most) {
  Random random;
  random.seed(synchronous ? 2 : 1);  // the same batches whatever the run's seed
  Ratios rules;
  Ratios searched;
  for (int round = 0; round < Cases(500); ++round) {
    Shape shape;
    shape.synchronous = synchronous;
    const Batch batch = RandomBatch(&random, shape);
    const Plan plain = PlanBatch(batch, {});
    const Plan better = PlanBatch(batch, {true});
    const std::vector<Shipment> shipments = ShipmentsOf(batch);
    const Target target = TargetOf(batch);
    const std::vector<int64_t> deadlines = DeadlinesOf(batch);
    const double best_s =
        BruteForce(batch.network, shipments, target, deadlines, plain.order.size()).Best();
    CHECK_TRUE(better.objective_s <= plain.objective_s);
    CHECK_TRUE(better.objective_s >= best_s - 1e-9);
    if (best_s == 0) continue;
    rules.Add(plain.objective_s / best_s);
    searched.Add(better.objective_s / best_s);
  }
  std::printf("%s, %zu batches: rules %.4f, worst %.3f; with the search %.4f, worst %.3f\n",
              synchronous ? "sync" : "async", rules.count, rules.Mean(), rules.worst,
              searched.Mean(), searched.worst);
  CHECK_TRUE(rules.Mean() <= rules_mean_most);
  CHECK_TRUE(searched.Mean() <= search_mean_most);
}

}  // namespace

TEST(asynchronous_plans_are_near_the_best) { Compare(false, 1.05, 1.02); }

TEST(synchronous_plans_are_near_the_best) { Compare(true, 1.16, 1.06); }

TEST(the_search_finds_what_the_rules_cannot) {
  Random random;
  int improved = 0;
  for (int round = 0; round < Cases(200); ++round) {
    Shape shape;
    shape.synchronous = random.OneIn(2);
    shape.updates_most = 7;
    const Batch batch = RandomBatch(&random, shape);
    const std::vector<Shipment> shipments = ShipmentsOf(batch);
    const Target target = TargetOf(batch);
    const std::vector<int64_t> deadlines = DeadlinesOf(batch);
    Network network = batch.network;
    const Ordering ordering = batch.synchronous
                                  ? ShortestFirst(&network, shipments, target)
                                  : WithDeadlines(&network, shipments, target, deadlines);
    const Found start{Aggregate(&network, shipments, target, ordering.order), ordering.dropped};
    const Found found = SearchNearby(&network, shipments, target, deadlines, start);
    CHECK_EQ(network.Mark(), 0);
    REQUIRE_EQ(found.schedule.size(), start.schedule.size());
    std::vector<int> seen(shipments.size(), 0);
    for (size_t i = 0; i < found.schedule.size(); ++i) {
      const size_t g = found.schedule[i].shipment;
      ++seen[g];
      if (!deadlines.empty()) CHECK_TRUE(deadlines[g] >= static_cast<int64_t>(i) + 1);
    }
    for (const Drop& drop : found.dropped) {
      const size_t g = drop.shipment;
      ++seen[g];
      const auto by_rules = std::find_if(start.dropped.begin(), start.dropped.end(),
                                         [g](const Drop& other) { return other.shipment == g; });
      CHECK_EQ(drop.exchanged, by_rules == start.dropped.end());
      const bool too_old = drop.exchanged
                               ? deadlines[g] <= static_cast<int64_t>(found.schedule.size())
                               : by_rules->reason == DropReason::kDeadline;
      CHECK_EQ(drop.reason == DropReason::kDeadline, too_old);
    }
    for (const int times : seen) CHECK_EQ(times, 1);
    const auto objective = [&](const Schedule& schedule) {
      Course course(&network, shipments, target);
      course.Walk(schedule);
      network.Rollback(0);
      return Objective(course.outcome(), target);
    };
    const double before_s = objective(start.schedule);
    const double after_s = objective(found.schedule);
    CHECK_TRUE(after_s <= before_s);
    improved += after_s < before_s - 1e-6 ? 1 : 0;
  }
  CHECK_TRUE(improved > 0);
}

TEST(a_long_schedule_has_no_more_time_than_others) {
  // All is best gathered at the one aggregator, and nearly all neighbours would split that group.
  constexpr size_t kCount = 2000;
  std::vector<HostLink> hosts(kCount + 2, Steady(1e10, 1e10));
  hosts[0] = Steady(1e6, 1e6);
  Network network(hosts);
  std::vector<Shipment> shipments;
  Found start;
  for (size_t g = 0; g < kCount; ++g) {
    shipments.push_back({g + 2, 0, {1'000'000}});
    start.schedule.push_back({g, 0});
  }
  Target target;
  target.servers = {0};
  target.aggregators = {1};
  target.together = true;
  const Found found = SearchNearby(&network, shipments, target, {}, start);
  CHECK_TRUE(found.neighbours > 0);
  // Each is as long as the schedule: a million updates are copied and checked in milliseconds.
  CHECK_TRUE(found.neighbours * static_cast<int64_t>(kCount) < 1'000'000);
}

TEST(what_changes_nothing_is_not_looked_at) {
  Network network({Steady(100, 100), Steady(100, 100)});
  Target target;
  target.servers = {0};
  const Found start{{{0, kDirect}}, {}, 0};
  CHECK_EQ(SearchNearby(&network, {{1, 0, {10}}}, target, {}, start).neighbours, 0);
}
