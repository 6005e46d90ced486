#include "fabric/net/scheduler_part.h"

#include <cmath>

#include "fabric/net/recorder.h"
#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::fabric::testing;
using namespace mercury::testing;
using mercury::Code;

namespace {

SchedulerOptions Options() {
  SchedulerOptions options;
  options.collector.delay_bound = 10;
  return options;
}

std::vector<Seat> Seats(bool replica) {
  std::vector<Seat> seats{{kServerNode, "h0", 1}, {0, "h1", 1}, {1, "h1", 2}};
  if (replica) seats.push_back({kReplicaNode, "h2", 1});
  return seats;
}

Request Asks(int worker, int64_t number) { return {{worker, number}, 0, 1000, 1}; }

Hearing Heard(int worker) { return {{worker, 1}, 2.5}; }

News Tells(News::Kind kind, const std::vector<int64_t>& places) {
  return {kind, places, 0, static_cast<int64_t>(places.size())};
}

}  // namespace

TEST(a_request_becomes_orders_and_a_commit_is_reported) {
  Recorder outbox;
  SchedulerPart scheduler(Seats(false), Options(), &outbox);
  CHECK_OK(scheduler.Hear(PeerOf(1), Asks(1, 1), {}, 0));
  CHECK_TRUE(scheduler.WakeAt(0, 0) <= 0);
  scheduler.Turn(0);
  CHECK_EQ(outbox.To(kServerPeer).size(), 1);
  CHECK_TRUE(outbox.OneTo<Order>(PeerOf(1)).kind == Order::kSend);
  CHECK_OK(scheduler.Hear(kServerPeer, Tells(News::kCommitted, {1}), {}, 1));
  const std::vector<Letter> reports = outbox.To(PeerOf(1));
  REQUIRE_EQ(reports.size(), 2);
  CHECK_TRUE(As<Order>(reports[0]).kind == Order::kReport);
  CHECK_TRUE(As<Order>(reports[1]).kind == Order::kForget);
  CHECK_EQ(scheduler.Figures(), "\"momentum\": 0, \"batches\": 1, \"groups\": 0");
}

TEST(what_happens_is_recorded_if_asked_for) {
  for (const bool record : {false, true}) {
    Recorder outbox;
    SchedulerOptions options = Options();
    options.record = record;
    SchedulerPart scheduler(Seats(false), options, &outbox);
    CHECK_OK(scheduler.Hear(PeerOf(1), Asks(1, 1), {}, 2));
    scheduler.SentOut(2.25);  // nothing
    scheduler.Turn(2.5);
    scheduler.SentOut(2.75);
    CHECK_OK(scheduler.Hear(PeerOf(1), Heard(1), {}, 2.875));
    CHECK_OK(scheduler.Hear(kServerPeer, Tells(News::kCommitted, {1}), {}, 3));
    scheduler.Gone(PeerOf(0), 4);
    const std::string records = scheduler.TakeRecords();
    std::string events;
    const std::string before = "\"event\": \"";
    for (size_t at = 0; (at = records.find(before, at)) != std::string::npos;) {
      at += before.size();
      events += records.substr(at, records.find('"', at) - at) + " ";
    }
    CHECK_EQ(events, record ? "request plan hop sent_out heard commit fate gone " : "");
    CHECK_EQ(records.rfind("{\"t\": 2, \"event\": \"request\"", 0), record ? 0 : std::string::npos);
    CHECK_EQ(scheduler.TakeRecords(), "");
  }
}

TEST(a_link_is_as_fast_as_its_card_until_it_is_measured) {
  for (const double rate : {0.0, 1e9}) {
    Recorder outbox;
    std::vector<Seat> seats = Seats(false);
    for (Seat& seat : seats) seat.link_bit_per_s = rate;
    SchedulerPart scheduler(seats, Options(), &outbox);
    CHECK_OK(scheduler.Hear(PeerOf(1), Asks(1, 1), {}, 0));
    scheduler.Turn(0);
    const auto order = outbox.OneTo<Order>(PeerOf(1));
    const double expected_s = 8 * 1000 / (rate > 0 ? rate : kNominalRate);
    CHECK_TRUE(std::abs(order.hop.end_s - expected_s) < 1e-9);
  }
}

TEST(nobody_speaks_for_another) {
  Recorder outbox;
  SchedulerPart scheduler(Seats(true), Options(), &outbox);
  const auto refused = [&](int peer, const Letter& letter) {
    return scheduler.Hear(peer, letter, {}, 0).code() == Code::kCorrupt;
  };
  CHECK_TRUE(refused(PeerOf(0), Asks(1, 1)));
  CHECK_TRUE(refused(kServerPeer, Asks(-1, 1)));
  CHECK_TRUE(refused(PeerOf(0), Heard(1)));
  CHECK_TRUE(refused(kServerPeer, Heard(-1)));
  CHECK_TRUE(refused(kReplicaPeer, Tells(News::kCommitted, {1})));
  CHECK_TRUE(refused(kServerPeer, Tells(News::kReplicaApplied, {1})));
  CHECK_TRUE(refused(PeerOf(0), Tells(News::kHeld, {1})));
  CHECK_TRUE(refused(PeerOf(0), MakeOrder(Order::kVoid, kServerNode)));
  const Carriage carried{kServerNode, 0, 1e6, 0, 1};
  CHECK_TRUE(refused(PeerOf(1), carried));
  CHECK_OK(scheduler.Hear(PeerOf(0), carried, {}, 1));
}

TEST(workers_hear_who_is_the_server_before_they_are_told_to_send) {
  Recorder outbox;
  SchedulerPart scheduler(Seats(true), Options(), &outbox);
  CHECK_OK(scheduler.Hear(PeerOf(0), Asks(0, 1), {}, 0));
  scheduler.Turn(0);
  outbox.gone.insert(kServerPeer);
  scheduler.Gone(kServerPeer, 1);
  outbox.said.erase(PeerOf(0));
  std::vector<Letter> told = outbox.To(kReplicaPeer);
  REQUIRE_FALSE(told.empty());
  CHECK_TRUE(As<Order>(told.back()).kind == Order::kTakeOver);
  CHECK_OK(scheduler.Hear(kReplicaPeer, Tells(News::kTookOver, {}), {}, 2));
  scheduler.Turn(2);
  told = outbox.To(PeerOf(0));
  REQUIRE_TRUE(told.size() > 1);
  CHECK_EQ(As<ServerIsLetter>(told[0]).node, kReplicaNode);
  told = outbox.To(kReplicaPeer);  // it is expected there
  REQUIRE_FALSE(told.empty());
  CHECK_TRUE(As<Order>(told[0]).kind == Order::kExpect);
}

TEST(a_job_ends_with_its_workers_and_fails_with_its_last_server) {
  Recorder outbox;
  SchedulerPart scheduler(Seats(false), Options(), &outbox);
  scheduler.Gone(PeerOf(0), 0);
  CHECK_TRUE(scheduler.workers_left());
  scheduler.Gone(kServerPeer, 0);
  CHECK_EQ(scheduler.failure().text(), "the server is lost, and there is no replica to take over");
  scheduler.Gone(PeerOf(1), 0);
  CHECK_FALSE(scheduler.workers_left());
}

TEST(of_two_that_cannot_reach_each_other_the_worker_goes) {
  Recorder outbox;
  SchedulerPart scheduler(Seats(true), Options(), &outbox);
  CHECK_OK(scheduler.Hear(kServerPeer, UnreachableLetter{1}, {}, 0));
  scheduler.Turn(kComplaintHolds_s / 2);
  CHECK_TRUE(scheduler.TakeCutOff().empty());
  CHECK_EQ(scheduler.WakeAt(0, 0), kComplaintHolds_s);
  scheduler.Turn(kComplaintHolds_s);
  CHECK_TRUE(scheduler.TakeCutOff() == std::vector<int>{PeerOf(1)});
  // Who dies meanwhile is no longer complained about.
  CHECK_OK(scheduler.Hear(PeerOf(0), UnreachableLetter{kServerNode}, {}, 10));
  outbox.gone.insert(kServerPeer);
  scheduler.Turn(20);
  CHECK_TRUE(scheduler.TakeCutOff().empty());
  CHECK_STATUS(Code::kCorrupt, scheduler.Hear(PeerOf(0), UnreachableLetter{7}, {}, 10));
}

TEST(of_two_that_complain_about_each_other_one_goes) {
  Recorder outbox;
  SchedulerPart scheduler(Seats(true), Options(), &outbox);
  CHECK_OK(scheduler.Hear(kReplicaPeer, UnreachableLetter{kServerNode}, {}, 0));
  CHECK_OK(scheduler.Hear(kServerPeer, UnreachableLetter{kReplicaNode}, {}, 0));
  CHECK_OK(scheduler.Hear(PeerOf(1), UnreachableLetter{0}, {}, 0));
  CHECK_OK(scheduler.Hear(PeerOf(0), UnreachableLetter{1}, {}, 0));
  scheduler.Turn(kComplaintHolds_s);
  CHECK_TRUE(scheduler.TakeCutOff() == (std::vector<int>{kReplicaPeer, PeerOf(0)}));
  scheduler.Turn(2 * kComplaintHolds_s);
  CHECK_TRUE(scheduler.TakeCutOff().empty());
}

// Replicas but the first have greater numbers than servers.
TEST(a_replica_goes_before_a_server_and_one_without_the_model_before_anybody) {
  Recorder outbox;
  std::vector<Seat> seats = Seats(true);
  seats.push_back({ServerNode(1), "h3", 1});
  for (const int replica : {2, 1}) seats.push_back({ReplicaNode(replica), "h4", 1});
  SchedulerPart scheduler(seats, Options(), &outbox);
  const auto cut_off_at = [&](double at_s) {
    scheduler.Turn(at_s);
    return scheduler.TakeCutOff();
  };
  const int second = PeerOf(ReplicaNode(1)), third = PeerOf(ReplicaNode(2));
  CHECK_OK(scheduler.Hear(second, UnreachableLetter{0}, {}, 0));
  scheduler.Gone(kReplicaPeer, 1);
  scheduler.Turn(1);  // the next one is to follow: it had no model when it was complained about
  CHECK_TRUE(cut_off_at(kComplaintHolds_s) == std::vector<int>{second});
  scheduler.Gone(second, 3);
  scheduler.Turn(3);
  CHECK_OK(scheduler.Hear(PeerOf(1), UnreachableLetter{ReplicaNode(2)}, {}, 3));
  CHECK_TRUE(cut_off_at(3 + kComplaintHolds_s) == std::vector<int>{third});
  CHECK_OK(scheduler.Hear(third, Tells(News::kCaughtUp, {}), {}, 6));
  CHECK_OK(scheduler.Hear(third, UnreachableLetter{ServerNode(1)}, {}, 6));
  CHECK_TRUE(cut_off_at(6 + kComplaintHolds_s) == std::vector<int>{third});
  CHECK_OK(scheduler.Hear(third, UnreachableLetter{0}, {}, 10));
  CHECK_TRUE(cut_off_at(10 + kComplaintHolds_s) == std::vector<int>{PeerOf(0)});
}

TEST(nobody_goes_for_a_link_that_nobody_needs) {
  Recorder outbox;
  std::vector<Seat> seats = Seats(true);
  for (const int server : {1, 2}) seats.push_back({ServerNode(server), "h3", 1});
  SchedulerPart scheduler(seats, Options(), &outbox);
  const auto complain = [&](int about_s_peer, int node, double at_s) {
    CHECK_OK(scheduler.Hear(about_s_peer, UnreachableLetter{node}, {}, at_s));
  };
  complain(PeerOf(ServerNode(1)), ServerNode(2), 0);  // both follow
  complain(PeerOf(ServerNode(2)), kServerNode, 0);
  scheduler.Turn(kComplaintHolds_s);
  CHECK_TRUE(scheduler.TakeCutOff() == std::vector<int>{PeerOf(ServerNode(2))});
  // The replica takes over: what was complained about before, and is later, of servers, is nothing.
  complain(PeerOf(0), kServerNode, 10);
  scheduler.Gone(PeerOf(ServerNode(2)), 10);
  complain(PeerOf(1), ServerNode(1), 10);
  complain(PeerOf(1), 0, 10);
  scheduler.Turn(10 + kComplaintHolds_s);
  CHECK_TRUE(scheduler.TakeCutOff() == std::vector<int>{PeerOf(0)});
}

TEST(whom_nobody_can_reach_goes_alone) {
  Recorder outbox;
  std::vector<Seat> seats = Seats(true);
  seats.push_back({2, "h3", 1});
  SchedulerPart scheduler(seats, Options(), &outbox);
  for (const int other : {0, 1, kReplicaNode}) {
    CHECK_OK(scheduler.Hear(PeerOf(2), UnreachableLetter{other}, {}, 0));
  }
  CHECK_OK(scheduler.Hear(PeerOf(0), UnreachableLetter{2}, {}, 0.1));
  scheduler.Turn(2 * kComplaintHolds_s);
  CHECK_TRUE(scheduler.TakeCutOff() == std::vector<int>{PeerOf(2)});
}

TEST(a_replica_that_workers_cannot_reach_goes_and_they_stay) {
  Recorder outbox;
  SchedulerPart scheduler(Seats(true), Options(), &outbox);
  for (const int worker : {0, 1}) {
    CHECK_OK(scheduler.Hear(PeerOf(worker), UnreachableLetter{kReplicaNode}, {}, 0));
  }
  scheduler.Turn(2 * kComplaintHolds_s);
  CHECK_TRUE(scheduler.TakeCutOff() == std::vector<int>{kReplicaPeer});
}

TEST(a_feed_knows_hosts_by_their_addresses) {
  Recorder outbox;
  SchedulerPart scheduler(Seats(false), Options(), &outbox);
  CHECK_OK(scheduler.Feed(R"({"host": "h1", "in": 1e9, "out": 1e9})", 0));
  CHECK_STATUS(Code::kInvalidArgument,
               scheduler.Feed(R"({"host": "h9", "in": 1e9, "out": 1e9})", 0));
}

TEST(a_server_is_told_by_which_tree_its_models_go) {
  Recorder outbox;
  SchedulerOptions options = Options();
  options.record = true;
  SchedulerPart scheduler(Seats(true), options, &outbox);
  AskingLetter asking{{1000, {{kServerNode, 0}, {kServerNode, 1}}}};
  CHECK_OK(scheduler.Hear(kServerPeer, asking, {}, 0));
  // They share a host.
  const std::vector<Edge> tree{{kServerNode, 0}, {0, 1}};
  CHECK_TRUE(outbox.OneTo<Tree>(kServerPeer).edges == tree);
  CHECK_EQ(scheduler.TakeRecords(),
           "{\"t\": 0, \"event\": \"tree\", \"bytes\": 1000, \"edges\": [[\"server\", 0], [0, "
           "1]]}\n");
  CHECK_STATUS(Code::kCorrupt, scheduler.Hear(kReplicaPeer, asking, {}, 0));
  asking.tree.edges.push_back({kServerNode, 2});
  CHECK_STATUS(Code::kCorrupt, scheduler.Hear(kServerPeer, asking, {}, 0));
}

TEST(several_servers_are_one_host_with_the_links_of_all) {
  Recorder outbox;
  std::vector<Seat> seats = Seats(false);
  seats.push_back({ServerNode(1), "h5", 1});
  for (Seat& seat : seats) seat.link_bit_per_s = seat.node < 0 ? 1e9 : 10e9;
  seats.back().link_bit_per_s = 4e8;
  SchedulerPart scheduler(seats, Options(), &outbox);
  CHECK_OK(scheduler.Hear(PeerOf(1), Asks(1, 1), {}, 0));
  scheduler.Turn(0);
  const auto order = outbox.OneTo<Order>(PeerOf(1));
  CHECK_EQ(order.hop.to, kServerNode);
  CHECK_TRUE(std::abs(order.hop.end_s - 8 * 1000 / 8e8) < 1e-9);  // twice the slower one's
  CHECK_EQ(outbox.To(kServerPeer).size(), 1);
  CHECK_TRUE(outbox.To(PeerOf(ServerNode(1))).empty());  // the first one alone is told
}

TEST(once_one_of_several_servers_is_lost_nobody_listens_to_the_others) {
  Recorder outbox;
  std::vector<Seat> seats = Seats(true);
  for (const int server : {1, 2}) seats.push_back({ServerNode(server), "h5", server});
  SchedulerPart scheduler(seats, Options(), &outbox);
  CHECK_OK(scheduler.Hear(PeerOf(0), Asks(0, 1), {}, 0));
  scheduler.Turn(0);
  outbox.gone.insert(PeerOf(ServerNode(2)));
  scheduler.Gone(PeerOf(ServerNode(2)), 1);
  CHECK_TRUE(As<Order>(outbox.To(kReplicaPeer).back()).kind == Order::kTakeOver);
  CHECK_OK(scheduler.Hear(kServerPeer, Tells(News::kCommitted, {1}), {}, 1));
  CHECK_OK(scheduler.Hear(kServerPeer, AskingLetter{{24, {{kServerNode, 0}}}}, {}, 1));
  CHECK_TRUE(outbox.To(kServerPeer).size() == 1);  // what it was told before
  CHECK_OK(scheduler.Hear(kReplicaPeer, Tells(News::kTookOver, {}), {}, 2));
  for (const int peer : {kServerPeer, PeerOf(ServerNode(1))}) {
    CHECK_EQ(outbox.OneTo<ServerIsLetter>(peer).node, kReplicaNode);
  }
  scheduler.Gone(kServerPeer, 3);  // it is none any more
  CHECK_OK(scheduler.failure());
  scheduler.Gone(kReplicaPeer, 4);
  CHECK_STATUS(Code::kPeerLost, scheduler.failure());
}

TEST(without_a_replica_the_server_that_is_lost_is_named) {
  Recorder outbox;
  std::vector<Seat> seats = Seats(false);
  seats.push_back({ServerNode(1), "h5", 1});
  SchedulerPart scheduler(seats, Options(), &outbox);
  scheduler.Gone(PeerOf(ServerNode(1)), 1);
  CHECK_EQ(scheduler.failure().text(), "server 1 is lost, and there is no replica to take over");
}
