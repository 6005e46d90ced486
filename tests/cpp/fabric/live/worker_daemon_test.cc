#include "fabric/live/worker_daemon.h"

#include <algorithm>

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

namespace {

constexpr int64_t kBytes = 1000;

Order Send(int64_t number, Goal goal = Goal::kServer) {
  Order order;
  order.kind = Order::kSend;
  order.hop.goal = goal;
  order.hop.update = {0, number};
  order.hop.places = {number};
  order.hop.bytes = kBytes;
  return order;
}

Order Gather(const std::vector<int64_t>& places, Goal goal = Goal::kServer) {
  Order order;
  order.kind = Order::kGather;
  order.hop.goal = goal;
  order.hop.gathered = true;
  order.hop.places = places;
  return order;
}

Order Skip(const std::vector<int64_t>& places) {
  Order order;
  order.kind = Order::kSkip;
  order.places = places;
  return order;
}

Order Forget(int64_t number) {
  Order order;
  order.kind = Order::kForget;
  order.update = {0, number};
  return order;
}

std::vector<Step::Kind> Kinds(const Steps& steps) {
  std::vector<Step::Kind> kinds;
  kinds.reserve(steps.size());
  for (const Step& step : steps) kinds.push_back(step.kind);
  return kinds;
}

using K = std::vector<Step::Kind>;

// Sends the only hop that is due, to its end.
Parcel SendAll(WorkerDaemon* daemon, int64_t bytes) {
  const std::vector<Allowance> due = daemon->Due(1);
  REQUIRE_EQ(due.size(), 1);
  CHECK_EQ(due[0].bytes, bytes);
  const Parcel parcel = daemon->What(due[0].number);
  CHECK_FALSE(daemon->Sent(due[0].number, bytes - 1));
  CHECK_TRUE(daemon->Sent(due[0].number, 1));
  return parcel;
}

}  // namespace

TEST(an_update_is_sent_where_it_is_told_to_until_it_is_forgotten) {
  WorkerDaemon daemon;
  daemon.Keep({0, 1}, kBytes);
  CHECK_TRUE(daemon.Obey(Send(2), 0).empty());  // it is not kept
  CHECK_TRUE(daemon.Due(1).empty());
  daemon.Obey(Send(1), 0);
  CHECK_TRUE(SendAll(&daemon, kBytes).places == std::vector<int64_t>{1});
  daemon.Obey(Send(1, Goal::kReplica), 0);
  CHECK_TRUE(SendAll(&daemon, kBytes).hop.goal == Goal::kReplica);
  CHECK_TRUE(Kinds(daemon.Obey(Forget(1), 0)) == K{Step::kForget});
  CHECK_TRUE(daemon.Obey(Forget(1), 0).empty());
  daemon.Obey(Send(1), 0);
  CHECK_TRUE(daemon.Due(1).empty());
}

TEST(what_is_planned_again_or_forgotten_is_not_sent_to_its_end) {
  WorkerDaemon daemon;
  daemon.Keep({0, 1}, kBytes);
  daemon.Obey(Send(1), 0);
  const int64_t first = daemon.Due(1)[0].number;
  daemon.Sent(first, 10);
  const Steps again = daemon.Obey(Send(1), 0);
  CHECK_TRUE(Kinds(again) == K{Step::kAbort});
  CHECK_EQ(again[0].hop, first);
  REQUIRE_EQ(daemon.Due(1).size(), 1);
  CHECK_EQ(daemon.Due(1)[0].bytes, kBytes);
  daemon.Sent(daemon.Due(1)[0].number, 10);
  CHECK_TRUE(Kinds(daemon.Obey(Forget(1), 0)) == (K{Step::kAbort, Step::kForget}));
  CHECK_TRUE(daemon.Due(1).empty());
}

TEST(a_group_goes_on_when_it_is_whole) {
  WorkerDaemon daemon;
  CHECK_TRUE(daemon.Arrive(Goal::kServer, 5, kBytes, 50, 0).empty());  // before it is known
  CHECK_TRUE(daemon.Arrive(Goal::kServer, 1, kBytes, 10, 0).empty());  // of an older batch
  CHECK_TRUE(Kinds(daemon.Arrive(Goal::kServer, 5, kBytes, 51, 0)) == K{Step::kDiscard});
  Order gather = Gather({4, 5, 7});
  gather.hop.two_sums = true;
  const Steps begun = daemon.Obey(gather, 0);
  REQUIRE_EQ(begun.size(), 1);
  CHECK_EQ(begun[0].memory, 10);
  const Steps added = daemon.Arrive(Goal::kServer, 4, kBytes / 2, 40, 0);
  CHECK_TRUE(Kinds(added) == (K{Step::kAdd, Step::kAdd}));
  CHECK_EQ(added[0].memory, 40);
  CHECK_EQ(added[1].memory, 50);
  CHECK_TRUE(daemon.Due(1).empty());
  CHECK_TRUE(daemon.Obey(Skip({7}), 0).empty());
  const Parcel parcel = SendAll(&daemon, 2 * kBytes);  // two sums
  CHECK_TRUE(parcel.places == (std::vector<int64_t>{4, 5}));
  CHECK_TRUE(parcel.skipped == std::vector<int64_t>{7});
  CHECK_TRUE(Kinds(daemon.Arrive(Goal::kServer, 7, kBytes, 70, 0)) == K{Step::kDiscard});
}

TEST(a_group_of_one_is_an_update_and_one_of_nobody_is_told) {
  WorkerDaemon daemon;
  daemon.Obey(Gather({1, 2}), 0);
  daemon.Arrive(Goal::kServer, 2, kBytes, 20, 0);
  CHECK_TRUE(Kinds(daemon.Obey(Skip({1}), 0)) == K{Step::kAdd});
  SendAll(&daemon, kBytes);
  daemon.Obey(Gather({3}), 0);
  const Steps empty = daemon.Obey(Skip({3}), 0);
  REQUIRE_EQ(empty.size(), 1);
  CHECK_EQ(empty[0].kind, Step::kEmpty);
  CHECK_TRUE(empty[0].skipped == std::vector<int64_t>{3});
  CHECK_TRUE(daemon.Due(1).empty());
  CHECK_TRUE(daemon.Obey(Gather({4}), 0).empty());
}

TEST(a_newer_group_takes_the_older_one_s_place) {
  WorkerDaemon daemon;
  daemon.Obey(Gather({1, 2, 3}), 0);
  daemon.Arrive(Goal::kServer, 1, kBytes, 10, 0);
  daemon.Arrive(Goal::kServer, 3, kBytes, 30, 0);
  daemon.Obey(Gather({1}, Goal::kReplica), 0);  // another goal
  const Steps newer = daemon.Obey(Gather({4}), 0);
  CHECK_TRUE(Kinds(newer) == (K{Step::kDiscard, Step::kAbort, Step::kDiscardGroup}));
  CHECK_EQ(newer[0].memory, 30);
  CHECK_TRUE(Kinds(daemon.Arrive(Goal::kServer, 2, kBytes, 20, 0)) == K{Step::kDiscard});
  CHECK_TRUE(Kinds(daemon.Arrive(Goal::kReplica, 1, kBytes, 11, 0)) == K{Step::kAdd});
  CHECK_TRUE(SendAll(&daemon, kBytes).hop.goal == Goal::kReplica);
}

TEST(what_comes_along_a_chain_goes_on_as_far_as_it_is_there) {
  WorkerDaemon daemon;
  daemon.Keep({0, 1}, kBytes);
  Order pass_on = Send(1);
  pass_on.kind = Order::kPassOn;
  pass_on.hop.places = {3, 5};
  pass_on.hop.chained = true;
  const Steps told = daemon.Obey(pass_on, 0);
  REQUIRE_EQ(told.size(), 1);
  CHECK_EQ(told[0].kind, Step::kPassOn);
  CHECK_EQ(told[0].update.number, 1);
  CHECK_TRUE(daemon.Due(1).empty());
  daemon.Reach(told[0].hop, 30);
  REQUIRE_EQ(daemon.Due(1).size(), 1);
  CHECK_EQ(daemon.Due(1)[0].bytes, 30);
  daemon.Sent(told[0].hop, 30);
  daemon.Reach(told[0].hop, kBytes);
  CHECK_TRUE(daemon.What(told[0].hop).places == (std::vector<int64_t>{3, 5}));
  CHECK_TRUE(daemon.Sent(told[0].hop, kBytes - 30));

  const int64_t second = daemon.Obey(pass_on, 0)[0].hop;
  CHECK_TRUE(Kinds(daemon.Break(second)) == K{Step::kAbort});
  CHECK_TRUE(daemon.Find(second) == nullptr);
  CHECK_TRUE(daemon.Break(second).empty());
  // It is planned again, straight.
  daemon.Obey(Send(1), 0);
  CHECK_TRUE(SendAll(&daemon, kBytes).places == std::vector<int64_t>{1});
}
