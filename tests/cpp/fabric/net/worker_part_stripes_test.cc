// A worker among several servers. (The file of the unit: worker_part.cc.)
#include "fabric/net/worker_fixture.h"
#include "fabric/net/worker_part.h"
#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::fabric::testing;
using namespace mercury::testing;

TEST(each_of_several_servers_gets_its_stripe_even_of_what_is_passed_on) {
  constexpr int kSecond = PeerOf(ServerNode(1));
  const auto stripe = [](size_t server, const Vector& of) {
    const Stripe its{server, 2, of.size()};
    Vector values;
    for (size_t at = 0; at < its.elements(); ++at) values.push_back(of[its.In(at)]);
    return values;
  };
  for (const bool chained : {false, true}) {
    WorkerFixture job(0, 2);
    Vector sum(10);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<float>(i);
    job.worker.Push({{0, 1}, 0, 0, 1}, std::make_shared<const Vector>(sum));
    Order order = Send(1, 3, kServerNode, false);
    if (chained) {
      order.kind = Order::kPassOn;
      order.hop.chained = true;
      order.hop.places = {2, 3};
      order.hop.bytes = 40;
    }
    job.Hear(kSchedulerPeer, order);
    Vector first, second;
    if (chained) {
      UpdatesLetter before = Updates(5, {2});
      before.chained = true;
      auto inflow = std::make_shared<Inflow>();
      inflow->elements = sum.size();
      inflow->sum = std::make_shared<Vector>(sum);
      inflow->bytes = 12;
      job.worker.Coming(PeerOf(1), before, inflow);
      first = job.Sent(kServerPeer);
      CHECK_EQ(first.size(), 3);
      CHECK_TRUE(job.Sent(kSecond).empty());  // none of its is there
      CHECK_TRUE(job.worker.WakeAt(kSecond, 100) > 100);
      inflow->bytes = 40;
      for (float& value : sum) value *= 2;
    }
    const auto more = [&job](int peer, Vector* to) {
      const Vector values = SentBy(&job.worker, &job.outbox, peer, 100);
      to->insert(to->end(), values.begin(), values.end());
    };
    more(kServerPeer, &first);
    more(kSecond, &second);
    CHECK_TRUE(first == stripe(0, sum));
    CHECK_TRUE(second == stripe(1, sum));
    for (const int peer : {kServerPeer, kSecond}) {
      CHECK_EQ(job.outbox.OneTo<UpdatesLetter>(peer).places.back(), 3);
    }
    CHECK_EQ(job.worker.WakeAt(kServerPeer, 100), kNever);
  }
}

TEST(a_model_of_several_servers_is_got_once_all_stripes_are_there) {
  WorkerFixture job(0, 2);
  job.worker.Get({0, 0, 0});
  CHECK_EQ(job.outbox.OneTo<GetLetter>(kServerPeer).wish.number, 1);
  ModelLetter letter = Model(6, 1);
  letter.by_packets = true;
  letter.onward = {{0, 4, 77}};
  for (const int server : {1, 0}) {
    const int peer = PeerOf(ServerNode(server));
    const Landing landing = job.worker.Land(peer, letter);
    auto inflow = std::make_shared<Inflow>();
    inflow->sum = landing.sum;
    inflow->stripe = landing.stripe;
    inflow->elements = 5;
    inflow->bytes = 20;
    for (size_t at = 0; at < 5; ++at) (*landing.sum)[landing.stripe.In(at)] = 1.0F + server;
    job.worker.Coming(peer, letter, inflow);
    Haul haul;
    haul.cargo = inflow->cargo();
    job.Hear(peer, letter, haul);
    CHECK_EQ(job.got.size(), server == 0 ? 1 : 0);
    // What is there of both goes on.
    if (server == 1) CHECK_TRUE(job.Sent(PeerOf(4)).empty());
  }
  CHECK_TRUE(*job.model == (Vector{1, 1, 1, 1, 1, 2, 2, 2, 2, 2}));
  CHECK_TRUE(job.Sent(PeerOf(4)) == *job.model);
  CHECK_EQ(job.outbox.OneTo<ModelLetter>(PeerOf(4)).wish, 77);
  // Then a replica is the only server, and what comes of the others is nothing.
  job.Hear(kSchedulerPeer, ServerIsLetter{kReplicaNode});
  job.worker.Get({0, 0, 0});
  CHECK_TRUE(job.worker.Land(kServerPeer, Model(7, 2)).sum == nullptr);
  ModelLetter late = Model(7, 2);
  late.by_packets = true;
  late.onward = {{0, 4, 78}};
  auto inflow = std::make_shared<Inflow>();
  inflow->sum = std::make_shared<Vector>(5, 9.0F);
  inflow->elements = 5;
  inflow->bytes = 20;
  job.worker.Coming(kServerPeer, late, inflow);
  job.Hear(kServerPeer, late, Of(Vector(5, 9)));
  CHECK_EQ(job.got.size(), 1);
  CHECK_TRUE(job.Sent(PeerOf(4)).empty());  // a stripe is no model for anybody
  job.Hear(kReplicaPeer, Model(8, 2), Of(Vector(10, 9)));
  CHECK_EQ(job.got.size(), 2);
}

TEST(a_group_that_is_summed_here_goes_to_all_servers_once_it_is_there) {
  WorkerFixture job(0, 2);
  Order gather = MakeOrder(Order::kGather, 0);
  gather.hop.to = kServerNode;
  gather.hop.gathered = true;
  gather.hop.places = {4, 5};
  job.Hear(kSchedulerPeer, gather);
  constexpr int kSecond = PeerOf(ServerNode(1));
  CHECK_EQ(job.worker.WakeAt(kSecond, 100), kNever);
  for (const int64_t place : {4, 5}) {
    UpdatesLetter member = Updates(place, {place});
    member.to_aggregator = true;
    job.Hear(PeerOf(1), member, Of(Vector(10, 2)));
  }
  CHECK_TRUE(job.worker.WakeAt(kSecond, 100) <= 100);
  CHECK_TRUE(job.Sent(kSecond) == Vector(5, 4));
  CHECK_TRUE(job.Sent(kServerPeer) == Vector(5, 4));
}
