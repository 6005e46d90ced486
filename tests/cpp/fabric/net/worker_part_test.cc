#include "fabric/net/worker_part.h"

#include "fabric/net/worker_fixture.h"
#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::fabric::testing;
using namespace mercury::testing;
using mercury::Code;
using mercury::OutPacket;

namespace {

using Fixture = WorkerFixture;

Order Gather(const std::vector<int64_t>& places) {
  Order order = MakeOrder(Order::kGather, 0);
  order.hop.to = kServerNode;
  order.hop.gathered = true;
  order.hop.places = places;
  return order;
}

std::shared_ptr<const Vector> Filled(float value) {
  return std::make_shared<const Vector>(10, value);
}

}  // namespace

TEST(an_update_is_asked_for_sent_and_said_to_be_whole) {
  Fixture job;
  job.worker.Push({{0, 1}, 5, 0, 0.5}, Filled(2));
  const auto asked = job.outbox.OneTo<Request>(kSchedulerPeer);
  CHECK_EQ(asked.version, 5);
  CHECK_EQ(asked.bytes, 40);
  CHECK_TRUE(job.Sent(kServerPeer).empty());
  job.Hear(kSchedulerPeer, Send(1, 3, kServerNode, false));
  CHECK_EQ(job.outbox.OneTo<Hearing>(kSchedulerPeer).update.number, 1);
  CHECK_TRUE(job.Sent(kReplicaPeer).empty());
  CHECK_TRUE(job.Sent(kServerPeer) == *Filled(2));
  CHECK_TRUE(job.outbox.OneTo<UpdatesLetter>(kServerPeer).places == std::vector<int64_t>{3});
  Order report = MakeOrder(Order::kReport, 0);
  report.update = {0, 1};
  job.Hear(kSchedulerPeer, report);
  CHECK_TRUE(job.settled == (std::vector<std::pair<int64_t, Fate>>{{1, Fate::kCommitted}}));
}

TEST(a_group_is_summed_in_order_with_this_worker_s_own_member) {
  for (const double momentum : {0.0, 0.5}) {
    Fixture job(momentum);
    job.worker.Push({{0, 1}, 0, 0, 1}, Filled(1));
    Order gather = Gather({4, 5});
    gather.hop.two_sums = momentum > 0;
    job.Hear(kSchedulerPeer, gather);
    UpdatesLetter member = Updates(8, {5});
    member.to_aggregator = true;
    job.Hear(PeerOf(1), member, Of(Vector(10, 2)));
    job.Hear(kSchedulerPeer, Send(1, 4, 0, true));
    job.worker.Turn(100);  // to itself: no link
    const Vector sent = job.Sent(kServerPeer);
    REQUIRE_EQ(sent.size(), momentum > 0 ? 20 : 10);
    // 1 moves on by half of its step before 2 is added.
    CHECK_EQ(sent[0], momentum > 0 ? 3.5F : 3.0F);
    if (momentum > 0) CHECK_EQ(sent[10], 2.5F);
    const auto said = job.outbox.OneTo<UpdatesLetter>(kServerPeer);
    CHECK_TRUE(said.places == (std::vector<int64_t>{4, 5}));
  }
}

TEST(a_group_of_nobody_is_said) {
  Fixture job;
  job.Hear(kSchedulerPeer, Gather({4}));
  Order skip = MakeOrder(Order::kSkip, 0);
  skip.places = {4};
  job.Hear(kSchedulerPeer, skip);
  const auto said = job.outbox.OneTo<UpdatesLetter>(kServerPeer);
  CHECK_EQ(said.number, 0);
  CHECK_TRUE(said.skipped == std::vector<int64_t>{4});
}

TEST(what_goes_to_a_node_that_is_gone_is_over) {
  Fixture job;
  job.worker.Push({{0, 1}, 0, 0, 1}, Filled(1));
  job.Hear(kSchedulerPeer, Send(1, 3, kServerNode, false));
  job.outbox.gone.insert(kServerPeer);
  job.worker.Turn(100);
  CHECK_TRUE(job.worker.WakeAt(kServerPeer, 100) == kNever);
  job.outbox.gone.clear();
  CHECK_TRUE(job.Sent(kServerPeer).empty());
}

TEST(a_newer_order_breaks_off_the_older_one) {
  Fixture job;
  job.worker.Push({{0, 1}, 0, 0, 1}, Filled(1));
  job.Hear(kSchedulerPeer, Send(1, 3, kServerNode, false));
  OutPacket packet;
  CHECK_TRUE(job.Next(kServerPeer, 100, &packet));
  job.Hear(kSchedulerPeer, Send(1, 7, kServerNode, false));
  const std::vector<Letter> said = job.outbox.To(kServerPeer);
  REQUIRE_EQ(said.size(), 2);
  CHECK_EQ(As<UpdatesLetter>(said[0]).number, packet.header.tensor);
  CHECK_EQ(As<AbortedLetter>(said[1]).number, packet.header.tensor);
  CHECK_TRUE(job.Sent(kServerPeer) == *Filled(1));
}

TEST(the_model_is_asked_for_again_when_another_is_the_server) {
  Fixture job;
  job.worker.Get({});
  CHECK_EQ(job.outbox.To(kServerPeer).size(), 1);
  job.Hear(kSchedulerPeer, ServerIsLetter{kReplicaNode});
  CHECK_EQ(job.outbox.OneTo<GetLetter>(kReplicaPeer).wish.number, 2);
  job.Hear(kServerPeer, Model(6, 1), Of(Vector(10, 0)));  // too late
  job.Hear(PeerOf(1), Model(6, 1), Of(Vector(10, 0)));    // of the old server's, too
  CHECK_TRUE(job.got.empty());
  job.Hear(kReplicaPeer, Model(6, 2), Of(Vector(10, 0)));
  job.Hear(PeerOf(1), Model(7, 2), Of(Vector(10, 0)));  // once more
  CHECK_TRUE(job.got == std::vector<int64_t>{6});
  CHECK_EQ(job.reign, 1);
}

TEST(a_worker_passes_the_model_on_whether_it_wants_it_or_not) {
  Fixture job;
  ModelLetter model = Model(6, 1);
  model.onward = {{0, 1, 9}, {0, 2, 4}, {2, 3, 8}};
  for (const bool asks : {false, true}) {
    if (asks) job.worker.Get({});
    job.Hear(kServerPeer, model, Of(Vector(10, 3)));
    CHECK_EQ(job.got.size(), asks ? 1 : 0);
    CHECK_TRUE(job.Sent(PeerOf(3)).empty());  // another passes it on there
    for (const Onward& next : model.onward) {
      if (next.by != 0) continue;
      CHECK_TRUE(job.worker.WakeAt(PeerOf(next.worker), 5) <= 5);
      CHECK_TRUE(job.Sent(PeerOf(next.worker)) == Vector(10, 3));
      const auto said = job.outbox.OneTo<ModelLetter>(PeerOf(next.worker));
      CHECK_EQ(said.version, 6);
      CHECK_EQ(said.wish, next.wish);
      CHECK_EQ(said.onward.size(), 3);
    }
  }
}

TEST(what_has_begun_does_not_go_on_at_the_new_server) {
  Fixture job;
  job.worker.Push({{0, 1}, 0, 0, 1}, Filled(1));
  job.worker.Push({{0, 2}, 0, 0, 1}, Filled(2));
  job.Hear(kSchedulerPeer, Send(1, 3, kServerNode, false));
  OutPacket packet;
  CHECK_TRUE(job.Next(kServerPeer, 100, &packet));
  job.Hear(kSchedulerPeer, Send(2, 4, kServerNode, false));
  job.Hear(kSchedulerPeer, ServerIsLetter{kReplicaNode});
  CHECK_TRUE(job.Sent(kReplicaPeer) == *Filled(2));  // it had not begun
  job.outbox.gone.insert(kServerPeer);
  CHECK_TRUE(job.worker.WakeAt(kReplicaPeer, 100) < kNever);
  job.worker.Turn(100);
  CHECK_TRUE(job.worker.WakeAt(kReplicaPeer, 100) == kNever);
  CHECK_EQ(job.outbox.To(kReplicaPeer).size(), 1);
  // It is planned again, and sent as a whole.
  job.Hear(kSchedulerPeer, Send(1, 5, kServerNode, false));
  CHECK_TRUE(job.Sent(kReplicaPeer) == *Filled(1));
}

TEST(a_worker_believes_nobody_else_s_letters) {
  Fixture job;
  const auto refused = [&job](int peer, const Letter& letter, const Haul& haul = {}) {
    return job.worker.Hear(peer, letter, haul, 0).code() == Code::kCorrupt;
  };
  CHECK_TRUE(refused(kServerPeer, MakeOrder(Order::kReport, 0)));
  CHECK_TRUE(refused(PeerOf(1), ServerIsLetter{kReplicaNode}));
  CHECK_TRUE(refused(kSchedulerPeer, ServerIsLetter{4}));
  CHECK_TRUE(refused(PeerOf(1), Updates(1, {1, 2}), Of({1})));
  CHECK_TRUE(refused(PeerOf(1), Updates(0, {1})));  // nothing came
  CHECK_TRUE(refused(kServerPeer, Model(1, 1)));
  CHECK_TRUE(refused(kSchedulerPeer, Model(1, 1), Of({1})));
  Order order = Send(1, 3, kServerNode, false);
  order.hop.gathered = true;
  CHECK_TRUE(refused(kSchedulerPeer, order));
  order = Gather({1, 2});
  order.hop.gathered = false;
  CHECK_TRUE(refused(kSchedulerPeer, order));
  CHECK_TRUE(refused(PeerOf(1), Request()));
}

namespace {

// A transfer that comes bit by bit.
std::shared_ptr<Inflow> Coming(size_t vectors) {
  auto inflow = std::make_shared<Inflow>();
  inflow->elements = 10;
  inflow->vectors = vectors;
  inflow->sum = std::make_shared<Vector>(10, 2);
  if (vectors == 2) inflow->step = std::make_shared<Vector>(10, 4);
  return inflow;
}

UpdatesLetter AlongChain(const std::vector<int64_t>& places) {
  UpdatesLetter letter = Updates(9, places);
  letter.to_aggregator = letter.chained = true;
  return letter;
}

Order PassOn(const std::vector<int64_t>& places, int to, bool two_sums) {
  Order order = Send(1, 1, to, to >= 0);
  order.kind = Order::kPassOn;
  order.hop.places = places;
  order.hop.chained = true;
  order.hop.two_sums = two_sums;
  order.hop.bytes = two_sums ? 80 : 40;
  return order;
}

}  // namespace

TEST(what_comes_along_a_chain_goes_on_while_it_comes) {
  for (const bool early : {false, true}) {
    for (const double momentum : {0.0, 0.5}) {
      for (const size_t vectors : {size_t{1}, size_t{2}}) {
        if (momentum == 0 && vectors == 2) continue;
        Fixture job(momentum);
        job.worker.Push({{0, 1}, 0, 0, 1}, Filled(1));
        const UpdatesLetter letter =
            AlongChain(vectors == 2 ? std::vector<int64_t>{3, 4} : std::vector<int64_t>{4});
        const std::shared_ptr<Inflow> inflow = Coming(vectors);
        std::vector<int64_t> places = letter.places;
        places.push_back(6);
        const Order order = PassOn(places, 2, momentum > 0);
        if (early) job.worker.Coming(PeerOf(1), letter, inflow);
        job.Hear(kSchedulerPeer, order);
        if (!early) job.worker.Coming(PeerOf(1), letter, inflow);
        job.worker.Coming(PeerOf(1), Updates(1, {2}), Coming(1));  // of something else
        CHECK_TRUE(job.Sent(PeerOf(2)).empty());
        inflow->bytes = vectors == 2 ? 40 + 12 : 12;
        Vector sent = job.Sent(PeerOf(2));
        const auto said = job.outbox.OneTo<UpdatesLetter>(PeerOf(2));
        CHECK_TRUE(said.places == places);
        CHECK_TRUE(said.chained && said.to_aggregator);
        CHECK_EQ(said.two, momentum > 0);
        CHECK_EQ(sent.size(), 3);
        inflow->bytes = vectors == 2 ? 80 : 40;
        // Of an update that came first, the step is the update.
        const float step = vectors == 2 ? 4 : 2;
        const float moved = static_cast<float>(momentum) * step + 1;
        CHECK_EQ(sent[0], 2 + moved);
        OutPacket packet;
        Vector rest;
        while (job.Next(PeerOf(2), 100, &packet)) {
          const auto* values = reinterpret_cast<const float*>(packet.payload);
          rest.insert(rest.end(), values, values + packet.header.length / sizeof(float));
        }
        REQUIRE_EQ(rest.size(), momentum > 0 ? 17 : 7);
        CHECK_EQ(rest[6], 2 + moved);
        if (momentum > 0) CHECK_EQ(rest[16], moved);
        CHECK_TRUE(job.outbox.To(PeerOf(2)).empty());
        CHECK_TRUE(job.worker.WakeAt(PeerOf(2), 100) == kNever);
      }
    }
  }
}

TEST(a_chain_ends_where_it_is_broken) {
  Fixture job;
  job.worker.Push({{0, 1}, 0, 0, 1}, Filled(1));
  const std::shared_ptr<Inflow> inflow = Coming(1);
  job.worker.Coming(PeerOf(1), AlongChain({4}), inflow);
  job.Hear(kSchedulerPeer, PassOn({4, 6}, kServerNode, false));
  inflow->bytes = 20;
  CHECK_EQ(job.Sent(kServerPeer).size(), 5);
  inflow->aborted = true;
  CHECK_TRUE(job.Sent(kServerPeer).empty());
  const std::vector<Letter> said = job.outbox.To(kServerPeer);
  REQUIRE_EQ(said.size(), 2);
  CHECK_EQ(As<AbortedLetter>(said[1]).number, As<UpdatesLetter>(said[0]).number);
  // Its own update is as it was, and goes again.
  job.Hear(kSchedulerPeer, Send(1, 9, kServerNode, false));
  CHECK_TRUE(job.Sent(kServerPeer) == *Filled(1));
}

TEST(a_worker_s_own_updates_follow_each_other_in_a_chain) {
  Fixture job;
  job.worker.Push({{0, 1}, 0, 0, 1}, Filled(1));
  job.worker.Push({{0, 2}, 0, 0, 1}, Filled(2));
  Order first = Send(1, 4, 0, true);
  first.hop.chained = true;
  Order second = PassOn({4, 5}, kServerNode, false);
  second.hop.update = {0, 2};
  job.Hear(kSchedulerPeer, second);
  job.Hear(kSchedulerPeer, first);
  job.worker.Turn(100);
  CHECK_TRUE(job.Sent(kServerPeer) == *Filled(3));
  job.outbox.To(kServerPeer);
  job.Hear(kSchedulerPeer, Send(1, 9, kServerNode, false));
  CHECK_TRUE(job.Sent(kServerPeer) == *Filled(1));  // it was not added to
}

TEST(a_model_is_passed_on_while_it_comes) {
  Fixture job;
  ModelLetter model = Model(6, 1);
  model.onward = {{0, 1, 9}};
  model.by_packets = true;
  const std::shared_ptr<Inflow> inflow = Coming(1);
  job.worker.Get({});
  job.worker.Coming(kServerPeer, model, inflow);
  inflow->bytes = 12;
  CHECK_TRUE(job.Sent(PeerOf(1)) == Vector(3, 2));
  CHECK_EQ(job.outbox.OneTo<ModelLetter>(PeerOf(1)).wish, 9);
  CHECK_TRUE(job.worker.WakeAt(PeerOf(1), 5) == kNever);
  inflow->aborted = true;
  CHECK_TRUE(job.Sent(PeerOf(1)).empty());
  CHECK_EQ(job.outbox.OneTo<AbortedLetter>(PeerOf(1)).number, int64_t{kNotOfHops} + 1);
  CHECK_TRUE(job.got.empty());
}

TEST(what_comes_for_a_chain_whose_next_worker_is_gone_wakes_nobody) {
  Fixture job;
  job.worker.Push({{0, 1}, 0, 0, 1}, Filled(1));
  const std::shared_ptr<Inflow> inflow = Coming(1);
  job.worker.Coming(PeerOf(1), AlongChain({4}), inflow);
  job.Hear(kSchedulerPeer, PassOn({4, 6}, 2, false));
  inflow->bytes = 20;
  job.outbox.gone.insert(PeerOf(2));
  job.worker.Turn(100);
  CHECK_TRUE(job.worker.WakeAt(PeerOf(1), 100) == kNever);
}

TEST(models_for_a_worker_that_is_gone_are_in_nobody_s_way) {
  Fixture job;
  for (int peer = 1; peer < 8; ++peer) {
    ModelLetter model = Model(6, 1);
    model.onward = {{0, peer, 9}};
    model.by_packets = true;
    job.worker.Coming(kServerPeer, model, Coming(1));
    if (peer < 7) job.worker.Gone(PeerOf(peer), 0);
  }
  CHECK_TRUE(job.worker.WakeAt(PeerOf(7), 5) <= 5);
}

// Two sums of the same parts may differ in their last bits.
TEST(where_a_replica_may_take_over_a_sum_is_used_once_all_have_it) {
  const auto sum = [](float value) {
    Haul haul;
    haul.cargo.sum = std::make_shared<const Vector>(10, value);
    return haul;
  };
  Order all_have_it = MakeOrder(Order::kForget, 0);
  all_have_it.update = {0, 1};
  for (const bool lost : {false, true}) {
    WorkerFixture fixture(0, 1, 1);
    fixture.worker.Push({{0, 1}, 0, 40, 0, 0, true}, std::make_shared<const Vector>(10, 1.0F));
    fixture.worker.Get({0, 1});
    fixture.Hear(kServerPeer, Model(0, 1), sum(2));
    CHECK_TRUE(fixture.got.empty());
    if (lost) {
      fixture.Hear(kSchedulerPeer, ServerIsLetter{kReplicaNode});
      fixture.Hear(kServerPeer, Model(0, 1), sum(2));  // it comes late
      CHECK_TRUE(fixture.got.empty());
      fixture.Hear(kReplicaPeer, Model(0, 2), sum(3));  // nobody takes over again
    }
    CHECK_EQ(fixture.got.size(), lost ? 1U : 0U);
    fixture.Hear(kSchedulerPeer, all_have_it);
    REQUIRE_EQ(fixture.got.size(), 1U);
    CHECK_EQ((*fixture.model)[0], lost ? 3 : 2);
  }
}
