#include "fabric/net/model_part.h"

#include "fabric/net/model_fixture.h"

using namespace mercury::fabric;
using namespace mercury::fabric::testing;
using namespace mercury::testing;
using mercury::Code;
using mercury::OutPacket;
using mercury::Role;

TEST(updates_are_applied_in_the_order_planned) {
  ModelFixture server(Role::kServer, 0.5);
  server.Expect({{1, {0, 1}, 0}, {2, {1, 1}, 0}});
  server.Hear(PeerOf(1), Updates(1, {2}), Of(Vector(6, 4)));
  CHECK_EQ(server.part.version(), 0);
  server.Hear(PeerOf(0), Updates(1, {1}), Of(Vector(6, 2)));
  CHECK_EQ(server.part.version(), 2);
  // 1 + 2, then the step is 2 / 2 + 4.
  CHECK_EQ(server.part.model()[5], 8.0F);
  REQUIRE_EQ(server.part.commits().size(), 2);
  CHECK_EQ(server.part.commits()[1].update.id.worker, 1);
  CHECK_TRUE(server.part.delays() == (std::map<int64_t, int64_t>{{1, 1}, {2, 1}}));
  CHECK_EQ(server.outbox.To(kSchedulerPeer).size(), 2);
  CHECK_EQ(server.part.Figures(),
           "\"elements\": 6, \"version\": 2, \"is_server\": true, \"delays\": {\"1\": 1, \"2\": "
           "1}, \"commits\": "
           "[{\"version\": 1, \"worker\": 0, \"number\": 1, \"computed_from\": 0}, "
           "{\"version\": 2, \"worker\": 1, \"number\": 1, \"computed_from\": 0}]");
}

TEST(one_gets_the_model_straight_and_more_down_a_tree_when_the_way_is_free) {
  ModelFixture server;
  const auto letters = [&server](int peer) { return server.outbox.To(peer); };
  for (int worker = 0; worker < 8; ++worker) {
    server.Hear(PeerOf(worker), GetLetter{{0, 0, 10 + worker}});
  }
  // One is on its way; the others wait.
  CHECK_TRUE(server.Sent(PeerOf(3)).empty());
  CHECK_TRUE(letters(kSchedulerPeer).empty());
  server.Expect({{1, {0, 1}, 0}});
  server.Hear(PeerOf(0), Updates(1, {1}), Of(Vector(6, 2)));
  letters(kSchedulerPeer);
  CHECK_TRUE(server.Sent(PeerOf(0)) == Vector(6, 1));
  const Tree asked = server.outbox.OneTo<AskingLetter>(kSchedulerPeer).tree;
  CHECK_EQ(asked.bytes, 24);
  CHECK_EQ(asked.edges.size(), 7);
  server.Hear(PeerOf(0), GetLetter{{0, 0, 20}});  // it does not ask twice
  CHECK_TRUE(letters(kSchedulerPeer).empty());
  Tree tree;
  tree.edges = {{kServerNode, 4}, {4, 3}, {4, 5}, {kServerNode, 6}, {6, 7}, {7, 1}, {1, 2}, {2, 0}};
  server.Hear(kSchedulerPeer, tree);
  CHECK_TRUE(server.Sent(PeerOf(4)) == Vector(6, 3));
  const auto said = server.outbox.OneTo<ModelLetter>(PeerOf(4));
  CHECK_EQ(said.version, 1);
  CHECK_EQ(said.wish, 14);
  REQUIRE_EQ(said.onward.size(), 2);
  CHECK_EQ(said.onward[1].wish, 15);
  CHECK_TRUE(server.Sent(PeerOf(3)).empty());
  // Who is to pass it on has died: the others wait for another tree.
  server.part.Gone(PeerOf(4), 0);
  CHECK_EQ(server.outbox.OneTo<AskingLetter>(kSchedulerPeer).tree.edges.size(), 2);
  server.Hear(kSchedulerPeer, Tree{24, {{kServerNode, 3}, {3, 5}}});
  CHECK_TRUE(server.Sent(PeerOf(3)) == Vector(6, 3));
  for (const int worker : {5, 7}) CHECK_TRUE(server.Sent(PeerOf(worker)).empty());
}

TEST(others_wait_while_the_way_out_is_full_but_not_for_one_who_has_stopped) {
  ModelFixture server;
  const auto ask = [&server](std::vector<int> workers) {
    for (const int worker : workers) server.Hear(PeerOf(worker), GetLetter{{0, 0, 10 + worker}});
  };
  const auto asks_for = [&server] {
    return server.outbox.OneTo<AskingLetter>(kSchedulerPeer).tree.edges.size();
  };
  const auto waits = [&server] { return server.outbox.To(kSchedulerPeer).empty(); };
  ask({0, 1, 2});  // the first one's takes all of it, for all that is known
  CHECK_TRUE(waits());
  CHECK_EQ(server.part.WakeAt(PeerOf(5), 0), 0.1);
  server.part.Turn(0.1);
  CHECK_EQ(asks_for(), 2);
  Tree tree{24, {{kServerNode, 1}, {1, 2}}, true, 0.5, 3};
  ask({3, 4});
  server.Hear(kSchedulerPeer, tree);
  CHECK_EQ(asks_for(), 2);  // there is room beside a slow one; the first is not counted any more
  tree.edges = {{kServerNode, 3}, {3, 4}};
  server.Hear(kSchedulerPeer, tree);
  ask({5, 6});
  server.part.Turn(6);
  CHECK_TRUE(waits());  // both together take more than there is
  CHECK_EQ(server.part.WakeAt(PeerOf(5), 6), 6.1);
  server.part.Gone(PeerOf(3), 6);
  CHECK_EQ(asks_for(), 3);  // who was to get it by way of that one, too
}

TEST(before_anything_is_answered_everybody_is_waited_for_a_little) {
  for (const auto* how : {"all ask", "one is gone", "one is late"}) {
    const std::string manner = how;
    ModelOptions options = OptionsOf(Role::kServer, 0, false);
    options.first_gathering_s = kFirstGathering_s;
    Recorder outbox;
    ModelPart part(options, Vector(6, 1), &outbox);
    CHECK_OK(part.Hear(PeerOf(0), GetLetter{{0, 0, 10}}, {}, 1));
    CHECK_EQ(part.WakeAt(PeerOf(0), 1), 1 + kFirstGathering_s);
    if (manner == "all ask") {
      CHECK_OK(part.Hear(PeerOf(1), GetLetter{{0, 0, 11}}, {}, 1.1));
      CHECK_EQ(outbox.OneTo<AskingLetter>(kSchedulerPeer).tree.edges.size(), 2);
      continue;
    }
    if (manner == "one is gone") part.Gone(PeerOf(1), 1.1);
    if (manner == "one is late") part.Turn(1 + kFirstGathering_s);
    OutPacket packet;
    CHECK_TRUE(NextOf(&part, &outbox, PeerOf(0), 2, &packet));
    // From then on only who asks at about the same time.
    CHECK_OK(part.Hear(PeerOf(0), GetLetter{{0, 0, 12}}, {}, 2));
    CHECK_TRUE(part.WakeAt(PeerOf(1), 2) != 2 + kFirstGathering_s);
  }
}

TEST(who_asks_for_a_later_version_does_not_wait_for_those_who_begin) {
  ModelOptions options = OptionsOf(Role::kServer, 0, false);
  options.first_gathering_s = kFirstGathering_s;
  ModelFixture server(options);  // as a replica that has taken over
  server.Expect({{1, {0, 1}, 0}});
  server.Hear(PeerOf(0), Updates(1, {1}), Of(Vector(6, 2)));
  server.Hear(PeerOf(0), GetLetter{{0, 0, 10}});
  CHECK_TRUE(server.Sent(PeerOf(0)) == Vector(6, 3));
}

TEST(workers_of_a_host_get_the_model_together) {
  for (const auto* how : {"it asks", "it does not", "it is gone", "it is void"}) {
    const std::string manner = how;
    ModelOptions options = OptionsOf(Role::kServer, 0, false);
    options.beside = {{1}, {0}};
    Recorder outbox;
    ModelPart part(options, Vector(6, 1), &outbox);
    OutPacket packet;
    const auto given = [&](int peer) { return NextOf(&part, &outbox, peer, 0, &packet); };
    CHECK_OK(part.Hear(kSchedulerPeer, Tree{24, {}, true}, {}, 0));  // models go down chains
    Order order = MakeOrder(Order::kExpect, kServerNode);
    order.updates = {{1, {0, 1}, 0}, {2, {1, 1}, 0}};
    CHECK_OK(part.Hear(kSchedulerPeer, order, {}, 0));
    CHECK_OK(part.Hear(PeerOf(0), Updates(1, {1}), Of(Vector(6, 2)), 0));
    CHECK_OK(part.Hear(PeerOf(0), GetLetter{{0, 0, 1}}, {}, 0.01));
    part.Turn(1);
    CHECK_FALSE(given(PeerOf(0)));  // the other one's update is under way
    if (manner == "it is void") {
      Order empty = MakeOrder(Order::kVoid, kServerNode);
      empty.places = {2};
      CHECK_OK(part.Hear(kSchedulerPeer, empty, {}, 2));
      CHECK_TRUE(given(PeerOf(0)));
      continue;
    }
    CHECK_OK(part.Hear(PeerOf(1), Updates(1, {2}), Of(Vector(6, 2)), 2));
    CHECK_FALSE(given(PeerOf(0)));  // it is about to ask
    CHECK_TRUE(part.WakeAt(PeerOf(0), 2) > 2 && part.WakeAt(PeerOf(0), 2) < 2.1);
    if (manner == "it asks") {
      outbox.To(kSchedulerPeer);
      CHECK_OK(part.Hear(PeerOf(1), GetLetter{{0, 0, 1}}, {}, 2.01));
      CHECK_EQ(outbox.OneTo<AskingLetter>(kSchedulerPeer).tree.edges.size(), 2);
      continue;
    }
    if (manner == "it does not") part.Turn(part.WakeAt(PeerOf(0), 2));
    if (manner == "it is gone") part.Gone(PeerOf(1), 2.01);
    CHECK_TRUE(given(PeerOf(0)));
  }
}

TEST(who_pushes_and_does_not_ask_holds_up_nobody_on_its_host) {
  ModelOptions options = OptionsOf(Role::kServer, 0, false);
  options.beside = {{1}, {0}};
  Recorder outbox;
  ModelPart part(options, Vector(6, 1), &outbox);
  OutPacket packet;
  CHECK_OK(part.Hear(kSchedulerPeer, Tree{24, {}, true}, {}, 0));  // models go down chains
  const auto expect = [&](int64_t place, double now_s) {
    Order order = MakeOrder(Order::kExpect, kServerNode);
    order.updates = {{place, {1, place}, place - 1}};
    CHECK_OK(part.Hear(kSchedulerPeer, order, {}, now_s));
  };
  const auto given = [&](double now_s) {
    if (now_s >= part.WakeAt(PeerOf(0), now_s)) part.Turn(now_s);
    return NextOf(&part, &outbox, PeerOf(0), now_s, &packet);
  };
  expect(1, 0);
  CHECK_OK(part.Hear(PeerOf(0), GetLetter{{0, 0, 1}}, {}, 0));
  int64_t place = 1;
  double now_s = 1;  // however long its update takes
  for (; !given(now_s) && place < 50; now_s += 0.01) {
    CHECK_OK(part.Hear(PeerOf(1), Updates(place, {place}), Of(Vector(6, 2)), now_s));
    expect(++place, now_s);
  }
  CHECK_TRUE(place > 2 && now_s < 1.1);
  while (NextOf(&part, &outbox, PeerOf(0), now_s, &packet)) continue;
  // From when it asks on, it is waited for again.
  CHECK_OK(part.Hear(PeerOf(1), GetLetter{{0, 0, 1}}, {}, now_s));
  while (NextOf(&part, &outbox, PeerOf(1), now_s, &packet)) continue;
  part.Turn(now_s += 1);
  CHECK_OK(part.Hear(PeerOf(0), GetLetter{{0, 0, 2}}, {}, now_s));
  CHECK_FALSE(given(now_s + 1));
}

TEST(a_tree_brings_nobody_a_sum_that_is_not_there) {
  ModelFixture server;
  for (int worker = 0; worker < 6; ++worker) server.Hear(PeerOf(worker), GetLetter());
  CHECK_TRUE(server.Sent(PeerOf(0)) == Vector(6, 1));  // the others are to get a tree
  server.Hear(PeerOf(4), GetLetter{{0, 9, 0}});
  server.Hear(kSchedulerPeer, Tree{24, {{kServerNode, 3}, {kServerNode, 4}}});
  CHECK_TRUE(server.Sent(PeerOf(3)) == Vector(6, 1));
  CHECK_TRUE(server.Sent(PeerOf(4)).empty());
}

TEST(a_model_that_is_being_sent_stays_as_it_was) {
  ModelFixture server;
  server.Hear(PeerOf(0), GetLetter());
  server.Expect({{1, {0, 1}, 0}});
  server.Hear(PeerOf(0), Updates(1, {1}), Of(Vector(6, 2)));
  server.Hear(PeerOf(1), GetLetter());
  CHECK_TRUE(server.Sent(PeerOf(0)) == Vector(6, 1));
  CHECK_TRUE(server.Sent(PeerOf(1)) == Vector(6, 3));
  CHECK_EQ(server.outbox.OneTo<ModelLetter>(PeerOf(1)).version, 1);
}

TEST(the_replica_follows_and_takes_over) {
  ModelFixture server(Role::kServer, 0.5, true);
  ModelFixture replica(Role::kReplica, 0.5, true);
  server.Expect({{1, {0, 1}, 0}});
  for (ModelFixture* each : {&server, &replica}) {
    each->Hear(PeerOf(0), Updates(1, {1}), Of(Vector(6, 2)));
  }
  CHECK_EQ(replica.part.version(), 0);
  replica.Hear(kServerPeer, server.outbox.OneTo<ConfirmLetter>(kReplicaPeer));
  CHECK_TRUE(replica.part.model() == server.part.model());
  CHECK_STATUS(Code::kCorrupt, replica.part.Hear(PeerOf(0), GetLetter(), {}, 0));
  replica.Hear(kSchedulerPeer, MakeOrder(Order::kTakeOver, kReplicaNode));
  CHECK_TRUE(replica.part.is_server());
  replica.Hear(PeerOf(0), GetLetter());
  CHECK_TRUE(replica.Sent(PeerOf(0)) == Vector(6, 3));
}

TEST(the_replica_is_sent_the_whole_model_with_its_last_step) {
  ModelFixture server(Role::kServer, 0.5, true);
  server.Expect({{1, {0, 1}, 0}});
  server.Hear(PeerOf(0), Updates(1, {1}), Of(Vector(6, 2)));
  server.outbox.To(kReplicaPeer);
  Order order = MakeOrder(Order::kSnapshot, kServerNode);
  CHECK_STATUS(Code::kInvalidArgument, server.part.Hear(kSchedulerPeer, order, {}, 0));
  order.hop.to = kReplicaNode;
  server.Hear(kSchedulerPeer, order);
  server.Hear(PeerOf(1), GetLetter());  // nobody waits for that
  CHECK_TRUE(server.Sent(PeerOf(1)) == Vector(6, 3));
  const Vector sent = server.Sent(kReplicaPeer);
  REQUIRE_EQ(sent.size(), 12);
  CHECK_EQ(sent[0], 3.0F);
  CHECK_EQ(sent[11], 2.0F);
  const auto said = server.outbox.OneTo<ModelLetter>(kReplicaPeer);
  ModelFixture replica(Role::kReplica, 0.5, true);
  Haul haul = Of(Vector(6, 3));
  CHECK_STATUS(Code::kCorrupt, replica.part.Hear(kServerPeer, said, haul, 0));
  haul.cargo.step = std::make_shared<const Vector>(6, 2.0F);
  replica.Hear(kServerPeer, said, haul);
  CHECK_EQ(replica.part.version(), 1);
  CHECK_TRUE(replica.part.model() == server.part.model());
  const auto news = replica.outbox.OneTo<News>(kSchedulerPeer);
  CHECK_TRUE(std::abs(news.history_norm - std::sqrt(24.0)) < 1e-9);
}

TEST(a_round_is_one_step_and_a_model_waits_for_its_updates) {
  ModelFixture server(Role::kServer, 0.5);
  server.Hear(PeerOf(1), GetLetter{{1, 0, 0}});
  for (const int64_t round : {1, 3}) {
    server.Expect({{round, {0, round}, 0, round}, {round + 1, {1, round}, 0, round}});
    server.Hear(PeerOf(0), Updates(round, {round}), Of(Vector(6, 1)));
    if (round == 1) CHECK_TRUE(server.Sent(PeerOf(1)).empty());
    server.Hear(PeerOf(1), Updates(round, {round + 1}), Of(Vector(6, 2)));
  }
  // 1 + 3 + (3 / 2 + 3); the first round's model was asked for.
  CHECK_EQ(server.part.model()[0], 8.5F);
  CHECK_EQ(server.part.version(), 2);
  CHECK_TRUE(server.Sent(PeerOf(1)) == Vector(6, 4));
  server.Hear(PeerOf(1), GetLetter{{3, 0, 0}});
  server.Expect({{5, {1, 9}, 0, 5}});
  server.Hear(PeerOf(1), Updates(9, {5}), Of(Vector(6, 0)));
  CHECK_TRUE(server.Sent(PeerOf(1)).empty());  // worker 0 is behind
  server.part.Gone(PeerOf(0), 0);
  CHECK_FALSE(server.Sent(PeerOf(1)).empty());
}

TEST(an_all_reduce_brings_the_sum_and_leaves_the_model) {
  ModelFixture server(Role::kServer, 0.5);
  server.Hear(PeerOf(0), GetLetter{{0, 7, 0}});
  server.Expect({{1, {0, 7}, 0, 1, true}, {2, {1, 4}, 0, 1, true}});
  server.Hear(PeerOf(1), Updates(1, {2}), Of(Vector(6, 2)));
  CHECK_TRUE(server.Sent(PeerOf(0)).empty());
  server.Hear(PeerOf(0), Updates(1, {1}), Of(Vector(6, 1)));
  CHECK_TRUE(server.Sent(PeerOf(0)) == Vector(6, 3));
  CHECK_TRUE(server.part.model() == Vector(6, 1));
  CHECK_EQ(server.part.version(), 0);
  server.Hear(PeerOf(1), GetLetter{{0, 4, 0}});
  CHECK_TRUE(server.Sent(PeerOf(1)) == Vector(6, 3));
}

TEST(what_makes_no_sense_is_refused) {
  ModelFixture server(Role::kServer, 0.5);
  const auto refused = [&server](int peer, const Letter& letter, const Haul& haul) {
    return server.part.Hear(peer, letter, haul, 0).code() == Code::kCorrupt;
  };
  CHECK_TRUE(refused(PeerOf(0), Updates(0, {1}), {}));  // nothing came
  Haul two = Of(Vector(6, 1));
  two.cargo.step = two.cargo.sum;
  CHECK_TRUE(refused(PeerOf(0), Updates(1, {1}), two));  // one update is one sum
  CHECK_TRUE(refused(PeerOf(0), MakeOrder(Order::kExpect, kServerNode), {}));
  CHECK_TRUE(refused(kReplicaPeer, GetLetter(), {}));
  for (int i = 0; i < 4; ++i) {  // answered, and not sent yet
    server.Hear(PeerOf(0), GetLetter());
    server.part.Turn(i + 1);
  }
  CHECK_TRUE(refused(PeerOf(0), GetLetter(), {}));
  ModelFixture replica(Role::kReplica, 0);
  CHECK_STATUS(Code::kCorrupt, replica.part.Hear(kServerPeer, ModelLetter(), {}, 0));
  CHECK_TRUE(refused(kSchedulerPeer, Request(), {}));
  // A plan that breaks the delay bound.
  Order order = MakeOrder(Order::kTakeOver, kServerNode);
  CHECK_STATUS(Code::kInvalidArgument, server.part.Hear(kSchedulerPeer, order, {}, 0));
}

TEST(with_nesterov_s_momentum_workers_get_the_model_where_its_last_step_would_take_it) {
  Recorder outbox;
  ModelOptions options = OptionsOf(Role::kServer, 0.5, false);
  options.rule.nesterov = true;
  ModelPart part(options, Vector(6, 0), &outbox);
  double model = 0;  // as the rule is usually written: the gradient's step, then the last one's
  double step = 0;
  for (int i = 1; i <= 3; ++i) {
    Order order = MakeOrder(Order::kExpect, kServerNode);
    order.updates = {{i, {0, i}, i - 1}};
    CHECK_OK(part.Hear(kSchedulerPeer, order, {}, 0));
    const auto place = static_cast<int64_t>(i);
    const auto update = static_cast<float>(i);
    CHECK_OK(part.Hear(PeerOf(0), Updates(1, {place}), Of(Vector(6, update)), 0));
    step = 0.5 * step + i;
    model += i + 0.5 * step;
    CHECK_EQ((*part.Shown())[3], static_cast<float>(model));
  }
}

TEST(a_script_s_call_applies_what_a_version_s_updates_sum_up_to) {
  std::vector<int64_t> counts;
  ModelOptions options = OptionsOf(Role::kServer, 0, false);
  options.calls.update = [&](float* model, const float* change, size_t elements, int64_t updates) {
    counts.push_back(updates);
    for (size_t i = 0; i < elements; ++i) model[i] = 2 * model[i] + change[i];
    return counts.size() < 3 ? mercury::Status::Ok() : mercury::Status::InvalidArgument("no more");
  };
  Recorder outbox;
  ModelPart part(options, Vector(6, 1), &outbox);
  const auto expect = [&](const std::vector<Placed>& updates) {
    Order order = MakeOrder(Order::kExpect, kServerNode);
    order.updates = updates;
    CHECK_OK(part.Hear(kSchedulerPeer, order, {}, 0));
  };
  expect({{1, {0, 1}, 0}});
  const std::shared_ptr<const Vector> read = part.Shown();
  CHECK_OK(part.Hear(PeerOf(0), Updates(1, {1}), Of(Vector(6, 4)), 0));
  CHECK_EQ(part.model()[5], 6.0F);
  CHECK_EQ((*read)[5], 1.0F);  // who reads a version goes on doing so
  // A round is one version, however many groups it comes in.
  expect({{2, {0, 2}, 1, 2}, {3, {1, 1}, 1, 2}});
  CHECK_OK(part.Hear(PeerOf(1), Updates(1, {3}), Of(Vector(6, 8)), 0));
  CHECK_EQ(part.version(), 1);
  CHECK_OK(part.Hear(PeerOf(0), Updates(1, {2}), Of(Vector(6, 16)), 0));
  CHECK_EQ(part.version(), 2);
  CHECK_EQ(part.model()[0], 36.0F);
  CHECK_TRUE(counts == (std::vector<int64_t>{1, 2}));
  CHECK_OK(part.failure());
  // Of a version that it has failed to make, nobody hears; nor of what comes then.
  expect({{4, {0, 3}, 2}, {5, {1, 2}, 2}});
  outbox.To(kSchedulerPeer);
  CHECK_OK(part.Hear(PeerOf(1), Updates(1, {5}), Of(Vector(6, 1)), 0));
  CHECK_OK(part.Hear(PeerOf(0), Updates(1, {4}), Of(Vector(6, 1)), 0));
  CHECK_OK(part.Hear(PeerOf(1), GetLetter{{0, 0, 10}}, {}, 0));
  CHECK_EQ(part.failure().text(), "no more");
  CHECK_EQ(counts.size(), 3);
  CHECK_EQ(part.commits().size(), 3);
  CHECK_TRUE(outbox.To(kSchedulerPeer).empty());
  CHECK_TRUE(SentBy(&part, &outbox, PeerOf(1), 0).empty());
}

TEST(a_script_s_call_says_what_workers_get_once_for_each_version) {
  int calls = 0;
  ModelOptions options = OptionsOf(Role::kServer, 0, false);
  options.calls.request = [&](const float* model, float* shown, size_t elements) {
    ++calls;
    for (size_t i = 0; i < elements; ++i) shown[i] = -model[i];
    return calls < 2 ? mercury::Status::Ok() : mercury::Status::InvalidArgument("no more");
  };
  ModelFixture server(options);
  for (const int worker : {0, 1}) server.Hear(PeerOf(worker), GetLetter{{0, 0, 10}});
  server.Hear(kSchedulerPeer, Tree{24, {{kServerNode, 0}, {kServerNode, 1}}});
  for (const int worker : {0, 1}) CHECK_TRUE(server.Sent(PeerOf(worker)) == Vector(6, -1));
  CHECK_EQ(server.part.model()[0], 1.0F);
  CHECK_EQ(calls, 1);
  CHECK_OK(server.part.failure());
  server.Expect({{1, {0, 1}, 0}});
  server.Hear(PeerOf(0), Updates(1, {1}), Of(Vector(6, 2)));
  CHECK_EQ(server.part.Shown()->size(), 6);
  CHECK_EQ(server.part.failure().text(), "no more");
}

TEST(first_values_may_come_from_worker_0_alone_and_once) {
  Recorder outbox;
  ModelPart part(OptionsOf(Role::kReplica, 0.5, true), Vector(), &outbox);
  CHECK_FALSE(part.has_model());
  ModelLetter letter;
  letter.number = 1;
  CHECK_STATUS(Code::kCorrupt, part.Hear(PeerOf(1), letter, Of(Vector(6, 3)), 0));
  CHECK_STATUS(Code::kCorrupt, part.Hear(PeerOf(0), letter, Haul(), 0));
  CHECK_OK(part.Hear(PeerOf(0), letter, Of(Vector(6, 3)), 0));
  CHECK_TRUE(part.has_model());
  CHECK_EQ(part.model()[5], 3.0F);
  CHECK_STATUS(Code::kCorrupt, part.Hear(PeerOf(0), letter, Of(Vector(6, 4)), 0));
  CHECK_TRUE(outbox.To(kSchedulerPeer).empty());
}
