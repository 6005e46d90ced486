#include "fabric/live/collector.h"

#include <algorithm>
#include <cmath>

#include "fabric/live/collector_fixture.h"

using namespace mercury::fabric;
using namespace mercury::fabric::testing;
using namespace mercury::testing;

TEST(requests_become_one_batch_at_a_time) {
  CollectorJob job(false);
  job.Push(0, 1);
  job.Push(0, 1);  // said twice
  CHECK_EQ(job.collector.waiting(), 1);
  const Orders first = job.Tick(5);
  REQUIRE_EQ(The(first, Order::kExpect).updates.size(), 1);
  CHECK_EQ(The(first, Order::kExpect).place, 0);
  CHECK_EQ(The(first, Order::kSend).node, 0);
  CHECK_EQ(The(first, Order::kSend).hop.end_s, 6);
  job.Push(1, 1);
  CHECK_TRUE(job.Tick(5.5).empty());  // one is under way
  const Orders done = job.collector.Committed({1}, 1);
  CHECK_EQ(The(done, Order::kReport).fate, Fate::kCommitted);
  CHECK_EQ(The(done, Order::kForget).node, 0);
  const Orders second = job.Tick(6);
  REQUIRE_EQ(The(second, Order::kExpect).updates.size(), 1);
  CHECK_EQ(The(second, Order::kExpect).updates[0].place, 2);
  CHECK_EQ(job.collector.version(), 1);
}

TEST(a_batch_may_wait_for_its_time) {
  CollectorJob job(false, 0, false);
  job.Push(0, 1);
  CHECK_EQ(Count(job.Tick(5), Order::kExpect), 1);  // there was none before
  job.collector.Committed({1}, 1);
  job.Push(1, 1);
  CHECK_TRUE(job.Tick(5.05).empty());
  CHECK_TRUE(std::abs(job.collector.WakeAt() - 5.1) < 1e-9);
  CHECK_EQ(Count(job.Tick(5.1), Order::kExpect), 1);
}

TEST(what_is_dropped_is_told) {
  CollectorJob job(false);
  for (int64_t version = 1; version <= 5; ++version) {
    job.Push(0, version, version - 1);
    job.Tick(0);
    job.collector.Committed({version}, version);
  }
  job.Push(1, 1, 1);  // of version 1, and would make version 6
  job.Push(1, 2, 6);  // of a version that there is not
  const Orders orders = job.Tick(0);
  CHECK_EQ(Count(orders, Order::kReport), 2);
  CHECK_EQ(Count(orders, Order::kForget), 2);
  CHECK_EQ(Count(orders, Order::kSend), 0);
  for (const Order& order : orders) {
    if (order.kind != Order::kReport) continue;
    CHECK_EQ(order.fate, order.update.number == 1 ? Fate::kTooOld : Fate::kOrphaned);
  }
}

TEST(what_takes_far_too_long_is_planned_again_and_given_up_in_the_end) {
  CollectorJob job(false);
  job.Push(0, 1);
  double now_s = 0, allowed_s = 1;
  for (int attempt = 1; attempt <= 3; ++attempt) {
    CHECK_EQ(Count(job.Tick(now_s), Order::kSend), 1);
    const double next_s = job.collector.WakeAt();
    CHECK_TRUE(next_s - now_s >= 3.99 * allowed_s);  // the link may be slower than it is said to be
    allowed_s = next_s - now_s;
    now_s = next_s;
    const Orders orders = job.Tick(now_s);
    CHECK_TRUE(The(orders, Order::kVoid).places == std::vector<int64_t>{attempt});
    const Orders after = job.collector.Voided({attempt});
    CHECK_EQ(Count(after, Order::kReport), attempt == 3 ? 1 : 0);
    if (attempt == 3) CHECK_EQ(The(after, Order::kReport).fate, Fate::kLate);
  }
  CHECK_EQ(job.collector.waiting(), 0);
}

TEST(the_last_commit_waits_until_the_replica_is_near_enough) {
  CollectorJob job(true, 0);  // the two may not differ
  job.Push(0, 1);
  const Orders planned = job.Tick(0);
  CHECK_EQ(The(planned, Order::kExpect).place, 1);
  CHECK_EQ(Count(planned, Order::kSend), 2);  // one to the replica
  CHECK_TRUE(job.collector.Held({1}).empty());
  const Orders there = job.collector.ReplicaHas({1});
  CHECK_EQ(The(there, Order::kRelease).place, 1);
  CHECK_EQ(Count(job.collector.Committed({1}, 1), Order::kForget), 0);
  job.Push(1, 1, 1);
  CHECK_TRUE(job.Tick(2).empty());  // the replica has still to apply it
  CHECK_EQ(The(job.collector.ReplicaApplied({1}, 1), Order::kForget).node, 0);
  CHECK_EQ(Count(job.Tick(2), Order::kExpect), 1);
}

TEST(what_has_come_through_the_replica_waits_for_nothing_else) {
  CollectorJob job = CollectorJob::Relaying();
  job.Push(0, 1);
  job.Push(1, 1);
  const Orders planned = job.Tick(0);
  CHECK_EQ(Count(planned, Order::kSend) + Count(planned, Order::kPassOn), 2);
  const std::vector<int64_t> places{1, 2};
  CHECK_EQ(Count(job.collector.ReplicaHas(places), Order::kRelease), 0);
  CHECK_EQ(Count(job.collector.Held(places), Order::kRelease), 1);
  CHECK_EQ(Count(job.collector.Committed(places, 2), Order::kReport), 2);
  CHECK_EQ(Count(job.collector.ReplicaApplied(places, 1), Order::kForget), 2);
}

TEST(a_server_that_applies_what_it_was_to_hold_harms_nobody_else) {
  CollectorJob job(true, 0);
  job.Push(0, 1);
  job.Tick(0);
  CHECK_TRUE(job.collector.Held({1}).empty());
  CHECK_EQ(Count(job.collector.Committed({1}, 1), Order::kReport), 1);
  CHECK_EQ(job.collector.under_way(), 0);
  CHECK_TRUE(job.collector.ReplicaHas({1}).empty());  // nothing is held any more
  CHECK_EQ(Count(job.collector.ReplicaApplied({1}, 1), Order::kForget), 1);
}

TEST(what_the_replica_cannot_get_is_not_committed) {
  CollectorJob job(true, 0);
  job.Push(0, 1);
  job.Tick(0);
  job.collector.Held({1});
  const Orders lost = job.collector.Lost(0);  // it had not sent it to the replica
  bool discarded = false;
  for (const Order& order : lost) {
    discarded = discarded || (order.kind == Order::kVoid && order.even_arrived);
  }
  CHECK_TRUE(discarded);
  CHECK_EQ(Count(job.collector.Voided({1}), Order::kRelease), 1);
  CHECK_EQ(job.collector.under_way(), 0);
}

TEST(a_replica_that_lacks_what_a_dead_worker_had_gets_the_model) {
  CollectorJob job(true, 10);  // far apart is fine: nothing is frozen
  job.Push(0, 1);
  job.Tick(0);
  job.collector.Committed({1}, 1);
  CHECK_TRUE(job.collector.Lost(0).empty());
  CHECK_EQ(Count(job.Tick(10), Order::kSnapshot), 1);
  job.Push(1, 1, 1);
  CHECK_TRUE(job.Tick(20).empty());
  job.collector.ReplicaCaughtUp(1, 0);
  CHECK_EQ(Count(job.Tick(20), Order::kExpect), 1);
}

TEST(a_replica_that_lacks_what_was_given_up_on_its_way_gets_the_model) {
  CollectorJob job(true, 0);
  for (const int worker : {0, 1}) job.Push(worker, 1);
  const Orders planned = job.Tick(0);
  REQUIRE_EQ(The(planned, Order::kExpect).place, 2);  // which is held; the first is not
  job.collector.Committed({1}, 1);
  job.collector.Held({2});
  const double now_s = job.collector.WakeAt();
  job.Tick(now_s);
  CHECK_EQ(Count(job.collector.Voided({2}), Order::kRelease), 1);
  const Orders after = job.Tick(now_s);
  CHECK_EQ(Count(after, Order::kSnapshot), 1);
  CHECK_EQ(Count(after, Order::kExpect), 0);
}

TEST(a_replica_that_lacks_very_much_gets_the_model) {
  CollectorJob job(true, 1e9);                           // however far apart
  for (int64_t version = 0; version <= 64; ++version) {  // 32 for each of two workers
    job.Push(0, version + 1, version);
    const Orders orders = job.Tick(0);
    CHECK_EQ(Count(orders, Order::kSnapshot), 0);
    CHECK_EQ(The(orders, Order::kExpect).place, 0);  // nothing is on its way to the replica
    job.collector.Committed({version + 1}, version + 1);
  }
  CHECK_EQ(Count(job.Tick(0), Order::kSnapshot), 1);
  const Orders after = job.collector.ReplicaCaughtUp(65, 1);
  CHECK_EQ(Count(after, Order::kForget), 65);
}

TEST(the_replica_takes_over) {
  CollectorJob job(true, 10);
  job.Push(0, 1);
  job.Tick(0);
  job.collector.Committed({1}, 1);
  job.Push(1, 1, 0);
  const Orders orders = job.collector.Lost(kServerNode);
  CHECK_EQ(The(orders, Order::kTakeOver).node, kReplicaNode);
  CHECK_EQ(The(orders, Order::kTakeOver).updates.size(), 1);
  CHECK_TRUE(job.Tick(1).empty());
  const Orders after = job.collector.TookOver(0);  // it had not got it
  CHECK_EQ(The(after, Order::kReport).fate, Fate::kLost);
  const Orders next = job.Tick(1);
  CHECK_EQ(Count(next, Order::kSend), 1);
  CHECK_EQ(job.collector.version(), 0);
  CHECK_EQ(Why(The(job.collector.Lost(kServerNode), Order::kFail)),
           "the server is lost, and there is no replica to take over");
}

TEST(replicas_in_reserve_follow_one_after_another) {
  FleetHosts hosts = CollectorJob::Hosts(true);
  hosts.reserve = {{ReplicaNode(1), 0}, {ReplicaNode(2), 1}, {ReplicaNode(3), 1}};
  CollectorJob job(hosts);
  CHECK_TRUE(job.collector.Lost(ReplicaNode(2)).empty());
  job.Push(0, 1);
  job.Tick(0);
  CHECK_EQ(Count(job.collector.Lost(kReplicaNode), Order::kRelease), 1);  // it waits for nobody
  CHECK_EQ(Count(job.Tick(0), Order::kSnapshot), 0);                      // a batch is under way
  job.collector.Committed({1}, 1);
  job.Push(1, 1, 1);
  const Orders before = job.Tick(1);
  CHECK_EQ(The(before, Order::kSnapshot).hop.to, ReplicaNode(1));
  CHECK_EQ(Count(before, Order::kExpect), 0);
  job.collector.ReplicaCaughtUp(1, 1);
  const Orders planned = job.Tick(2);
  CHECK_EQ(Count(planned, Order::kSend), 2);
  CHECK_EQ(job.collector.Lost(kServerNode).at(0).node, ReplicaNode(1));
  job.collector.TookOver(1);
  const Orders next = job.Tick(3);
  CHECK_EQ(The(next, Order::kSnapshot).hop.to, ReplicaNode(3));
  const Orders failed = job.collector.Lost(kServerNode);
  CHECK_EQ(Why(The(failed, Order::kFail)),
           "the server is lost, and its next replica does not have the model yet");
  mercury::Status status;
  mercury::Decode(The(failed, Order::kFail).text, &status);
  CHECK_TRUE(status.blame().parties.at(0).role == mercury::Role::kReplica);
  CHECK_EQ(status.blame().parties.at(0).rank, 1);
}

TEST(who_is_lost_is_named_with_what_there_still_is) {
  FleetHosts hosts = CollectorJob::Hosts(true);
  hosts.reserve = {{ReplicaNode(1), 0}};
  CollectorJob job(hosts);
  job.Push(0, 1);
  job.Tick(0);
  job.collector.Lost(kReplicaNode);  // in the middle of a batch
  CHECK_EQ(Why(The(job.collector.Lost(kServerNode), Order::kFail)),
           "the server is lost, and its next replica does not have the model yet");
  CollectorJob other(true);
  other.collector.Lost(ServerNode(1));
  CHECK_EQ(Why(The(other.collector.Lost(kReplicaNode), Order::kFail)),
           "server 1 is lost, and there is no replica to take over");
}

TEST(what_died_with_any_of_several_servers_is_orphaned) {
  FleetHosts hosts = CollectorJob::Hosts(true);
  hosts.reserve = {{ReplicaNode(1), 0}};
  CollectorJob job(hosts, 10);
  for (const int64_t version : {4, 6}) {  // that the first replica had, and the second
    job.collector.Lost(kServerNode);
    job.collector.TookOver(version);
    job.Tick(0);
    job.collector.ReplicaCaughtUp(0, 0);
  }
  int64_t number = 0;
  const std::vector<std::pair<int64_t, int64_t>> origins = {{5, 0}, {7, 1}, {5, 1}};
  for (const auto& [version, reign] : origins) {
    CHECK_OK(job.collector.Push({{0, ++number}, version, kBytes, 1, 0, false, reign}));
  }
  const Orders orders = job.Tick(0);
  REQUIRE_EQ(The(orders, Order::kExpect).updates.size(), 1);
  CHECK_EQ(The(orders, Order::kExpect).updates[0].id.number, 3);
  CHECK_EQ(Count(orders, Order::kReport), 2);
}

TEST(without_a_replica_a_lost_server_ends_the_job) {
  CollectorJob job(false);
  CHECK_EQ(Count(job.collector.Lost(kServerNode), Order::kFail), 1);
  job.Push(0, 1);
  CHECK_TRUE(job.Tick(0).empty());
}

TEST(a_synchronous_round_is_planned_when_all_are_there_and_has_all_the_time) {
  CollectorJob job(false, 0, true, 0);
  job.Push(0, 1);
  CHECK_TRUE(job.Tick(0).empty());
  job.Push(1, 1);
  const Orders planned = job.Tick(1);
  REQUIRE_EQ(The(planned, Order::kExpect).updates.size(), 2);
  for (const Placed& update : The(planned, Order::kExpect).updates) CHECK_EQ(update.round, 1);
  CHECK_TRUE(job.collector.WakeAt() == mercury::fabric::kNever);
  CHECK_TRUE(job.Tick(1e6).empty());
  CHECK_EQ(Count(job.collector.Committed({1, 2}, 1), Order::kReport), 2);
  CHECK_EQ(job.collector.version(), 1);
}

TEST(what_a_dead_server_had_of_a_synchronous_job_is_planned_again) {
  CollectorJob job(true, 10, true, 0);
  for (const int worker : {0, 1}) job.Push(worker, 1);
  CHECK_EQ(The(job.Tick(0), Order::kExpect).place, 0);  // far apart is fine
  CHECK_EQ(Count(job.collector.Committed({1, 2}, 1), Order::kReport), 2);
  job.collector.Lost(kServerNode);
  CHECK_TRUE(job.collector.TookOver(0).empty());  // nothing is lost
  CHECK_EQ(The(job.Tick(1), Order::kExpect).updates.size(), 2);
  // They heard of it before.
  CHECK_EQ(Count(job.collector.Committed({3, 4}, 1), Order::kReport), 0);
}

TEST(a_round_that_would_break_the_bound_waits_until_the_replica_has_the_model) {
  CollectorJob job(true, 3, true, 0);
  for (const int worker : {0, 1}) job.Push(worker, 1);
  job.Tick(0);
  job.collector.Committed({1, 2}, 1);
  for (const int worker : {0, 1}) job.Push(worker, 2);
  const Orders before = job.Tick(1);  // two and two are four
  CHECK_EQ(Count(before, Order::kSnapshot), 1);
  CHECK_EQ(Count(before, Order::kExpect), 0);
  job.collector.ReplicaCaughtUp(2, 1);
  CHECK_EQ(Count(job.Tick(2), Order::kSend), 2);  // to the server alone
}

TEST(who_is_gone_ends_a_synchronous_job_if_others_wait) {
  CollectorJob job(false, 0, true, 0);
  CHECK_TRUE(job.collector.Lost(1).empty());
  CHECK_TRUE(job.Tick(0).empty());
  job.Push(0, 1);
  CHECK_EQ(Why(The(job.Tick(1), Order::kFail)),
           "worker 1 is gone, and others wait for it: synchronous updates and all-reduces need all "
           "workers");
  CollectorJob other(false, 0, true, 0);
  for (const int worker : {0, 1}) other.Push(worker, 1);
  other.Tick(0);
  CHECK_EQ(Count(other.collector.Lost(0), Order::kFail), 1);
  CollectorJob stale(false, 0, true, 2);
  for (const int worker : {0, 1}) stale.Push(worker, 1);
  stale.Tick(0);
  CHECK_EQ(Count(stale.collector.Lost(0), Order::kFail), 0);
}

TEST(parts_of_an_all_reduce_are_kept_until_all_have_the_sum) {
  CollectorJob job(true, 0);
  job.Reduce(0, 1);
  job.Push(1, 1);
  CHECK_EQ(Count(job.Tick(0), Order::kSend), 2);  // the update, also to the replica
  job.collector.Held({1});
  job.collector.ReplicaHas({1});
  job.collector.Committed({1}, 1);
  job.collector.ReplicaApplied({1}, 1);
  job.Reduce(1, 2);
  const Orders planned = job.Tick(1);
  CHECK_EQ(Count(planned, Order::kSend), 2);  // nothing goes to the replica
  CHECK_TRUE(The(planned, Order::kExpect).updates[0].reduce);
  const Orders summed = job.collector.Committed({2, 3}, 1);
  CHECK_EQ(Count(summed, Order::kReport), 2);
  CHECK_EQ(Count(summed, Order::kForget), 0);
  CHECK_TRUE(job.collector.Got({0, 1}).empty());
  job.collector.Lost(kServerNode);
  job.collector.TookOver(1);
  CHECK_EQ(The(job.Tick(2), Order::kExpect).updates.size(), 2);  // worker 1 still wants it
  CHECK_EQ(Count(job.collector.Committed({4, 5}, 1), Order::kForget), 0);
  // Another sum may differ in its last bits: what worker 0 had of the first one is nothing.
  CHECK_TRUE(job.collector.Got({1, 2}).empty());
  CHECK_TRUE(job.collector.Got({1, 2}, 1).empty());
  CHECK_EQ(Count(job.collector.Got({0, 1}, 1), Order::kForget), 2);
}
