#include "fabric/live/replica_ledger.h"

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

namespace {

ReplicaLedger::Log One(int64_t place, double norm) { return {{place, {{0, place}, norm}}}; }

}  // namespace

TEST(the_bound_counts_what_the_replica_can_apply) {
  ReplicaLedger ledger;
  for (const int64_t place : {1, 2}) ledger.Committed(place, {{0, place}, 1});
  ledger.Sent({{1}, kReplicaNode});
  ledger.Sent({{2, 3}, 7});
  CHECK_EQ(ledger.BoundAfter(One(3, 2), 0), 4);
  ledger.Arrived({2, 3});
  CHECK_EQ(ledger.BoundAfter(One(3, 2), 0), 4);  // 1 is missing
  CHECK_FALSE(ledger.Quiet());
  ledger.Arrived({1});
  CHECK_EQ(ledger.BoundAfter({}, 0), 1);
  CHECK_EQ(ledger.BoundAfter(One(3, 2), 0), 0);
  CHECK_FALSE(ledger.Quiet());  // 1 is there and not yet applied
  CHECK_EQ(ledger.Applied(1, 0.5).size(), 1);
  CHECK_TRUE(ledger.Quiet());  // {2, 3} waits for 3
  ledger.Committed(3, {{0, 3}, 2});
  CHECK_FALSE(ledger.Quiet());
  CHECK_EQ(ledger.Applied(3, 3).size(), 2);
  CHECK_EQ(ledger.history_norm(), 3);
  // h = 3, one update behind: (momentum x h + u).
  CHECK_EQ(ledger.BoundAfter(One(4, 2), 0.5), 3.5);
}

TEST(a_round_is_one_step_and_is_there_if_all_of_it_is) {
  ReplicaLedger ledger;
  ledger.Committed(1, {{0, 1}, 1, 1});
  ledger.Committed(2, {{1, 1}, 2, 1});
  const ReplicaLedger::Log next = {{3, {{0, 2}, 4, 3}}, {4, {{1, 2}, 5, 3}}};
  // Two steps behind, with half of each step in the next: (1 + 1 / 2) x 3 + 9.
  CHECK_EQ(ledger.BoundAfter(next, 0.5), 13.5);
  ledger.Arrived({2});
  CHECK_EQ(ledger.BoundAfter({}, 0), 3);
  CHECK_TRUE(ledger.Quiet());
  ledger.Arrived({1});
  CHECK_EQ(ledger.BoundAfter(next, 0.5), 9 + 1.5);
  CHECK_FALSE(ledger.Quiet());
  ReplicaLedger other;
  other.Committed(1, {{0, 1}, 1, 1});
  other.Arrived({1, 2});  // with a member that is void at the server
  CHECK_TRUE(other.Quiet());
}

TEST(a_group_with_a_void_member_is_of_no_use) {
  ReplicaLedger ledger;
  ledger.Committed(1, {{0, 1}, 1});
  ledger.Sent({{1, 2}, 7});
  ledger.Sent({{2, 3}, 7});
  ledger.Arrived({1, 2});
  ledger.Voided(2);
  CHECK_TRUE(ledger.Quiet());
  CHECK_EQ(ledger.BoundAfter({}, 0), 1);
}

TEST(a_group_that_is_not_what_comes_next_does_not_count) {
  ReplicaLedger ledger;
  for (const int64_t place : {1, 2, 3}) ledger.Committed(place, {{0, place}, 1});
  ledger.Sent({{1, 3}, 7});
  ledger.Arrived({1, 3});
  CHECK_EQ(ledger.BoundAfter({}, 0), 3);
  CHECK_TRUE(ledger.Quiet());
  ledger.Arrived({1});  // sent again
  CHECK_EQ(ledger.BoundAfter({}, 0), 2);
  ledger.Sent({{2}, kReplicaNode});
  ledger.GiveUp();
  CHECK_TRUE(ledger.coming().empty());
  CHECK_EQ(ledger.Clear().size(), 3);
  CHECK_TRUE(ledger.Quiet());
}
