#include "fabric/live/model_daemon.h"

#include <algorithm>

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;
using mercury::Code;
using mercury::Role;

namespace {

constexpr int64_t kBound = 3;

Order Make(Order::Kind kind, const std::vector<int64_t>& places, int64_t place = 0) {
  Order order;
  order.kind = kind;
  order.place = place;
  order.places = places;
  for (const int64_t at : places) order.updates.push_back({at, {0, at}, at - 1});
  return order;
}

std::vector<ModelStep::Kind> Kinds(const ModelSteps& steps) {
  std::vector<ModelStep::Kind> kinds;
  kinds.reserve(steps.size());
  for (const ModelStep& step : steps) kinds.push_back(step.kind);
  return kinds;
}

using K = std::vector<ModelStep::Kind>;

ModelSteps Obeyed(ModelDaemon* daemon, const Order& order) {
  ModelSteps steps;
  REQUIRE_OK(daemon->Obey(order, &steps));
  return steps;
}

// The only news of that kind.
News Said(const ModelSteps& steps, News::Kind kind) {
  for (const ModelStep& step : steps) {
    if (step.kind == ModelStep::kTell && step.news.kind == kind) return step.news;
  }
  CHECK_TRUE(false);
  return {};
}

}  // namespace

TEST(a_server_applies_confirms_and_tells) {
  ModelDaemon server(Role::kServer, kBound, true);
  CHECK_TRUE(Obeyed(&server, Make(Order::kExpect, {1, 2})).empty());
  const ModelSteps early = server.Arrive({2}, {}, 20);
  CHECK_TRUE(early.empty());
  const ModelSteps steps = server.Arrive({1}, {}, 10);
  CHECK_TRUE(Kinds(steps) == (K{ModelStep::kApply, ModelStep::kConfirm, ModelStep::kTell,
                                ModelStep::kApply, ModelStep::kConfirm, ModelStep::kTell}));
  CHECK_EQ(steps[0].memory, 10);
  CHECK_EQ(steps[4].updates[0].place, 2);
  CHECK_EQ(steps[5].news.version, 2);
  CHECK_EQ(steps[5].news.kind, News::kCommitted);
  CHECK_TRUE(Kinds(server.Arrive({1}, {}, 11)) == K{ModelStep::kDiscard});
  server.FollowersLost();
  Obeyed(&server, Make(Order::kExpect, {3}));
  CHECK_TRUE(Kinds(server.Arrive({3}, {}, 30)) == (K{ModelStep::kApply, ModelStep::kTell}));
}

TEST(a_round_is_confirmed_and_told_as_one) {
  ModelDaemon server(Role::kServer, kBound, true);
  Order order = MakeOrder(Order::kExpect, kServerNode);
  order.updates = {{1, {0, 1}, 0, 1}, {2, {1, 1}, 0, 1}};
  CHECK_TRUE(Obeyed(&server, order).empty());
  CHECK_TRUE(server.Arrive({2}, {}, 20).empty());
  const ModelSteps steps = server.Arrive({1}, {}, 10);
  CHECK_TRUE(Kinds(steps) ==
             (K{ModelStep::kApply, ModelStep::kApply, ModelStep::kConfirm, ModelStep::kTell}));
  CHECK_EQ(steps[2].updates.size(), 2);
  CHECK_EQ(steps[3].news.version, 1);
  CHECK_TRUE(steps[3].news.places == (std::vector<int64_t>{1, 2}));
  order.updates = {{3, {0, 2}, 0, 3, true}};  // an all-reduce, too
  CHECK_TRUE(Obeyed(&server, order).empty());
  CHECK_TRUE(Kinds(server.Arrive({3}, {}, 30)) ==
             (K{ModelStep::kApply, ModelStep::kConfirm, ModelStep::kTell}));
}

TEST(what_is_held_is_told_once_and_applied_when_released) {
  ModelDaemon server(Role::kServer, kBound, false);
  Obeyed(&server, Make(Order::kExpect, {1, 2, 3}, 2));
  server.Arrive({1}, {}, 10);
  const ModelSteps held = server.Arrive({2}, {3}, 20);
  CHECK_TRUE(Said(held, News::kVoided).places == std::vector<int64_t>{3});
  CHECK_TRUE(Said(held, News::kHeld).places == std::vector<int64_t>{2});
  CHECK_TRUE(Obeyed(&server, Make(Order::kVoid, {2})).empty());  // it has come
  const ModelSteps released = Obeyed(&server, Make(Order::kRelease, {}, 2));
  CHECK_TRUE(Kinds(released) == (K{ModelStep::kApply, ModelStep::kTell}));
  CHECK_EQ(server.version(), 2);
}

TEST(an_order_that_breaks_the_bound_is_refused) {
  ModelDaemon server(Role::kServer, 0, false);
  ModelSteps steps;
  CHECK_STATUS(Code::kInvalidArgument, server.Obey(Make(Order::kExpect, {1}), &steps));
  CHECK_STATUS(Code::kInvalidArgument, server.Obey(Make(Order::kTakeOver, {1}), &steps));
  ModelDaemon replica(Role::kReplica, 0, false);
  CHECK_STATUS(Code::kInvalidArgument, replica.Obey(Make(Order::kExpect, {1}), &steps));
  CHECK_TRUE(steps.empty());
}

TEST(a_replica_applies_what_the_server_has) {
  ModelDaemon replica(Role::kReplica, kBound, false);
  const ModelSteps has = replica.Arrive({1, 3}, {2}, 10);
  CHECK_TRUE(Said(has, News::kReplicaHas).places == (std::vector<int64_t>{1, 3}));
  ModelSteps steps;
  REQUIRE_OK(replica.Confirmed(Make(Order::kExpect, {1, 2}).updates, &steps));
  // The server has applied 2, which the group lacks: it is of no use.
  CHECK_TRUE(Kinds(steps) == K{});
  REQUIRE_OK(replica.Confirmed(Make(Order::kExpect, {3}).updates, &steps));
  CHECK_TRUE(Kinds(steps) == K{ModelStep::kDiscard});
  replica.Arrive({1}, {}, 11);
  CHECK_EQ(replica.version(), 1);
  const ModelSteps model = replica.TakeModel(3, 3);
  CHECK_EQ(Said(model, News::kCaughtUp).place, 3);
  CHECK_EQ(replica.version(), 3);
}

TEST(a_replica_becomes_the_server) {
  ModelDaemon replica(Role::kReplica, kBound, false);
  ModelSteps steps;
  REQUIRE_OK(replica.Confirmed(Make(Order::kExpect, {1}).updates, &steps));
  replica.Arrive({2}, {}, 20);
  replica.Arrive({1}, {}, 10);
  replica.Arrive({4}, {}, 40);
  CHECK_EQ(replica.version(), 1);
  const ModelSteps over = Obeyed(&replica, Make(Order::kTakeOver, {1, 2, 3, 4}));
  CHECK_TRUE(Kinds(over) ==
             (K{ModelStep::kApply, ModelStep::kTell, ModelStep::kTell, ModelStep::kDiscard}));
  CHECK_TRUE(Said(over, News::kReplicaApplied).places == std::vector<int64_t>{2});
  CHECK_EQ(Said(over, News::kTookOver).version, 2);
  CHECK_TRUE(replica.role() == Role::kServer);
  REQUIRE_OK(replica.Confirmed(Make(Order::kExpect, {3}).updates, &steps));  // too late: not heard
  Obeyed(&replica, Make(Order::kExpect, {5}));
  CHECK_EQ(Said(replica.Arrive({5}, {}, 50), News::kCommitted).version, 3);
}

TEST(a_server_sends_its_whole_model) {
  ModelDaemon server(Role::kServer, kBound, false);
  Obeyed(&server, Make(Order::kExpect, {4}));
  CHECK_EQ(server.Arrive({4}, {}, 1).size(), 2);  // nobody follows
  Order order = Make(Order::kSnapshot, {});
  ModelSteps refused;
  CHECK_STATUS(Code::kInvalidArgument, server.Obey(order, &refused));
  order.hop.to = ReplicaNode(1);
  const ModelSteps steps = Obeyed(&server, order);
  REQUIRE_EQ(steps.size(), 1);
  CHECK_EQ(steps[0].to, ReplicaNode(1));
  CHECK_EQ(steps[0].kind, ModelStep::kSendModel);
  CHECK_EQ(steps[0].version, 1);
  CHECK_EQ(steps[0].place, 4);
  Obeyed(&server, Make(Order::kExpect, {5}));
  CHECK_EQ(server.Arrive({5}, {}, 2).size(), 3);  // it does now
}
