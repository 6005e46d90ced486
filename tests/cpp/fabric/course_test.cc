#include "fabric/course.h"

#include "fabric/random_batch.h"

using namespace mercury::testing;

namespace {

// Three workers at 10 byte/s each, a server at 20, an aggregator at 20 beside the third worker.
struct Bed {
  Network network{{Steady(160, 160), Steady(80, 80), Steady(80, 80), Steady(160, 80)}};
  std::vector<Shipment> shipments{{1, 0, {10}}, {2, 0, {20}}, {3, 5, {30}}};
  Target target;
  Bed() {
    target.servers = {0};
    target.aggregators = {3};
  }
};

}  // namespace

TEST(hops_are_written_down_in_the_order_of_reservation) {
  Bed bed;
  std::vector<Transfer> transfers;
  std::vector<Commit> arrivals;
  Course course(&bed.network, bed.shipments, bed.target, &transfers, &arrivals);
  course.Walk({{0, kDirect}, {1, 0}, {2, 0}});
  REQUIRE_EQ(transfers.size(), 4);
  CHECK_EQ(transfers[0].end_s, 1);
  CHECK_EQ(transfers[1].end_s, 2);
  CHECK_EQ(transfers[2].end_s, 5);  // on the aggregator's host
  CHECK_TRUE(transfers[2].pieces.empty());
  CHECK_EQ(transfers[3].end_s, 8);  // 30 bytes from 5 s on
  CHECK_EQ(transfers[3].from_aggregator, 0);
  CHECK_TRUE(transfers[3].shipments == (std::vector<size_t>{1, 2}));
  REQUIRE_EQ(arrivals.size(), 2);
  CHECK_EQ(course.outcome().last_s, 8);
  CHECK_EQ(course.outcome().sum_s, 1 + 8 + 8);
  CHECK_EQ(course.outcome().committed, 3);
}

TEST(an_aggregate_of_several_carries_two_sums_if_there_is_momentum) {
  Target target;
  CHECK_EQ(AggregateBytes(target, 30, 2), 30);
  target.two_sums = true;
  CHECK_EQ(AggregateBytes(target, 30, 2), 60);
  CHECK_EQ(AggregateBytes(target, 30, 1), 30);
}

TEST(an_early_arrival_waits_for_its_predecessors) {
  Target target;
  const std::vector<Commit> arrivals = {{3, {0}}, {1, {1, 2}}, {4, {3}}};
  const std::vector<Commit> commits = InOrder(arrivals, target);
  REQUIRE_EQ(commits.size(), 3);
  CHECK_EQ(commits[1].time_s, 3);
  CHECK_EQ(Objective(commits, target), (3 + 3 + 3 + 4) / 4.0);
  target.together = true;
  const std::vector<Commit> one = InOrder(arrivals, target);
  REQUIRE_EQ(one.size(), 1);
  CHECK_EQ(one[0].time_s, 4);
  CHECK_EQ(one[0].shipments.size(), 4);
  CHECK_EQ(Objective(one, target), 4);
  CHECK_EQ(Objective(std::vector<Commit>{}, target), 0);
}

TEST(what_was_taken_back_leaves_no_trace) {
  Bed bed;
  Course course(&bed.network, bed.shipments, bed.target);
  course.Gather(0, 0);
  const double ready_s = course.ready_s();
  const int64_t bytes = course.bytes();
  const size_t mark = bed.network.Mark();
  course.Gather(2, 0);
  bed.network.Rollback(mark);
  course.TakeBack(ready_s, bytes);
  course.Close();
  CHECK_EQ(course.outcome().last_s, 2);  // 10 bytes: there at 1 s, on at 10 byte/s
  CHECK_EQ(course.outcome().committed, 1);
}
