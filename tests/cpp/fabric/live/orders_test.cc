#include "fabric/live/orders.h"

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

TEST(hops_know_nodes_places_and_the_scheduler_s_time) {
  Route route;
  route.aggregators = {5};
  route.now_s = 100;
  route.updates = {{11, {0, 1}, 7}, {12, {1, 4}, 7}, {13, {2, 9}, 7}};
  const std::vector<Transfer> transfers = {{kDirect, kDirect, 0, {1}, 50, 1, {{0, 1, 400}}, -1},
                                           {kDirect, 0, 0, {0}, 50, 1.5, {{1, 1.5, 800}}, -1},
                                           {kDirect, 0, 0, {2}, 50, 0, {}, -1},  // within a host
                                           {0, kDirect, 0, {0, 2}, 100, 6, {{4, 6, 400}}, 4}};
  const std::vector<Hop> hops = HopsOf(transfers, route);
  REQUIRE_EQ(hops.size(), 4);
  CHECK_EQ(hops[0].from, 1);
  CHECK_EQ(hops[0].to, kServerNode);
  CHECK_EQ(hops[0].update.number, 4);
  CHECK_FALSE(hops[0].to_aggregator);
  CHECK_TRUE(hops[0].places == std::vector<int64_t>{12});
  CHECK_EQ(hops[1].to, 5);
  CHECK_TRUE(hops[1].to_aggregator);
  CHECK_EQ(hops[1].start_s, 101);
  CHECK_EQ(hops[1].end_s, 101.5);
  CHECK_EQ(hops[1].pieces[0].end_s, 101.5);
  CHECK_EQ(hops[2].start_s, 100);
  CHECK_EQ(hops[3].from, 5);
  CHECK_TRUE(hops[3].gathered);
  CHECK_TRUE(hops[3].places == (std::vector<int64_t>{11, 13}));
  CHECK_EQ(hops[3].start_s, 104);
  Orders orders;
  Tell(hops, &orders);
  REQUIRE_EQ(orders.size(), 4);
  CHECK_EQ(orders[0].kind, Order::kGather);
  CHECK_EQ(orders[0].node, 5);
  for (size_t i = 1; i < 4; ++i) CHECK_EQ(orders[i].kind, Order::kSend);
  CHECK_EQ(orders[1].node, 1);
  CHECK_EQ(FateOf(DropReason::kDeadline), Fate::kTooOld);
  CHECK_EQ(FateOf(DropReason::kOvertaken), Fate::kOvertaken);
}

TEST(a_chain_s_hops_go_from_worker_to_worker) {
  Transfer first, second;
  first.shipments = {1};
  first.chained = second.chained = true;
  first.next = 0;
  second.shipments = {1, 0};
  Route route;
  route.updates = {{7, {3, 1}, 0}, {6, {4, 9}, 0}};
  const std::vector<Hop> hops = HopsOf({first, second}, route);
  REQUIRE_EQ(hops.size(), 2);
  CHECK_EQ(hops[0].from, 4);
  CHECK_EQ(hops[0].to, 3);
  CHECK_TRUE(hops[0].to_aggregator && hops[0].chained && !hops[0].gathered);
  CHECK_EQ(hops[1].from, 3);
  CHECK_EQ(hops[1].to, kServerNode);
  CHECK_EQ(hops[1].update.worker, 3);
  CHECK_TRUE(hops[1].places == (std::vector<int64_t>{6, 7}));
  Orders orders;
  Tell(hops, &orders);
  CHECK_EQ(orders[0].kind, Order::kPassOn);  // before anything can come
  CHECK_EQ(orders[0].node, 3);
  CHECK_EQ(orders[1].kind, Order::kSend);
}

TEST(the_replica_is_told_nothing_of_what_goes_through_it) {
  Transfer to, onward;
  to.shipments = onward.shipments = {0};
  to.relaying = Relaying::kTo;
  onward.relaying = Relaying::kFrom;
  Route route;
  route.updates = {{7, {3, 1}, 0}};
  route.relay = ReplicaNode(1);
  const std::vector<Hop> hops = HopsOf({to, onward}, route);
  REQUIRE_EQ(hops.size(), 1);
  CHECK_EQ(hops[0].to, ReplicaNode(1));
  CHECK_TRUE(hops[0].goal == Goal::kServer && IsRelayed(hops[0]));
  Transfer straight;
  straight.shipments = {0};
  CHECK_FALSE(IsRelayed(HopsOf({straight}, route)[0]));
  route.goal = Goal::kReplica;
  route.node = ReplicaNode(1);
  CHECK_FALSE(IsRelayed(HopsOf({straight}, route)[0]));
}
