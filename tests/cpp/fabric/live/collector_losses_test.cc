// (The file of the unit: collector_losses.cc.)
#include "fabric/live/collector_fixture.h"

using namespace mercury::fabric;
using namespace mercury::fabric::testing;
using namespace mercury::testing;

TEST(what_a_lost_replica_has_not_passed_on_is_planned_again_as_if_for_the_first_time) {
  CollectorJob job = CollectorJob::Relaying();
  job.Push(0, 1);
  job.Push(1, 1);
  job.Tick(0);
  const Orders lost = job.collector.Lost(kReplicaNode);
  CHECK_TRUE(The(lost, Order::kVoid).places == (std::vector<int64_t>{1, 2}));
  CHECK_FALSE(The(lost, Order::kVoid).even_arrived);
  job.collector.Voided({1, 2});
  const Orders again = job.Tick(1);
  CHECK_EQ(Count(again, Order::kPassOn), 1);  // they are a chain
  for (const Order& order : again) CHECK_FALSE(IsRelayed(order.hop));
}

TEST(a_round_that_a_lost_replica_has_not_passed_on_is_planned_again_as_a_whole) {
  CollectorJob job = CollectorJob::Relaying(0);
  job.Push(0, 1);
  job.Push(1, 1);
  job.Tick(0);
  CHECK_TRUE(The(job.collector.Lost(kReplicaNode), Order::kVoid).even_arrived);
}

TEST(a_chain_to_the_replica_with_a_dead_worker_in_it_is_not_waited_for) {
  CollectorJob job = CollectorJob::Relaying();
  job.Push(0, 1);
  job.Push(1, 1);
  job.Tick(0);
  const Orders lost = job.collector.Lost(0);
  REQUIRE_EQ(Count(lost, Order::kVoid), 2);  // the replica need not pass it on
  for (const Order& order : lost) CHECK_EQ(order.places.size(), 2);
  CHECK_EQ(lost[0].node, kServerNode);
  CHECK_EQ(lost[1].node, kReplicaNode);
  job.collector.Voided({1, 2});
  CHECK_EQ(The(job.Tick(1), Order::kExpect).updates.size(), 1);
}
