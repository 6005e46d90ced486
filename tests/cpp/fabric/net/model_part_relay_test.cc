// (The file of the unit: model_part_relay.cc.)
#include "fabric/net/model_fixture.h"

using namespace mercury::fabric;
using namespace mercury::fabric::testing;
using namespace mercury::testing;
using mercury::Code;
using mercury::OutPacket;
using mercury::Role;

TEST(what_goes_to_the_server_through_the_replica_is_passed_on_while_it_comes) {
  ModelFixture server(Role::kServer, 0, true);
  ModelFixture replica(Role::kReplica, 0, true);
  server.Expect({{1, {0, 1}, 0}, {2, {1, 1}, 0}});
  const auto inflow = Beginning(Vector(6, 2), 0);
  UpdatesLetter letter = Updates(1, {1, 2});
  replica.part.Coming(PeerOf(1), letter, inflow);
  inflow->bytes = 8;
  CHECK_EQ(replica.Sent(kServerPeer).size(), 2);
  const auto said = replica.outbox.OneTo<UpdatesLetter>(kServerPeer);
  CHECK_TRUE(said.goal == Goal::kServer && said.places == letter.places);
  CHECK_TRUE(said.number >= int64_t{kNotOfHops});
  inflow->bytes = 24;
  Haul haul;
  haul.cargo = inflow->cargo();
  replica.Hear(PeerOf(1), letter, haul);
  CHECK_TRUE(replica.Sent(kServerPeer) == Vector(4, 2));
  server.Hear(kReplicaPeer, said, haul);
  CHECK_EQ(server.part.version(), 2);
  replica.Hear(kServerPeer, server.outbox.OneTo<ConfirmLetter>(kReplicaPeer));
  CHECK_TRUE(replica.part.model() == server.part.model());

  // What is for the replica itself ends there, and once it is the server, all does.
  letter.goal = Goal::kReplica;
  replica.part.Coming(PeerOf(1), letter, inflow);
  CHECK_TRUE(replica.Sent(kServerPeer).empty());
  replica.Hear(kSchedulerPeer, MakeOrder(Order::kTakeOver, kReplicaNode));
  letter.goal = Goal::kServer;
  replica.part.Coming(PeerOf(1), letter, inflow);
  CHECK_TRUE(replica.Sent(kServerPeer).empty());
  // Nobody but a replica passes anything on.
  const auto refused = server.part.Hear(PeerOf(ServerNode(1)), said, haul, 0);
  CHECK_STATUS(Code::kCorrupt, refused);
  CHECK_STATUS(Code::kCorrupt, replica.part.Hear(kServerPeer, said, haul, 0));
}

TEST(what_is_void_is_not_passed_on_to_its_end) {
  ModelFixture replica(Role::kReplica, 0, true);
  for (const int64_t place : {1, 3}) {
    // It has come whole, and has still to go.
    replica.part.Coming(PeerOf(1), Updates(1, {place, place + 1}), Beginning(Vector(6, 2), 24));
  }
  OutPacket packet;
  for (int i = 0; i < 2; ++i) {  // of each
    REQUIRE_TRUE(NextOf(&replica.part, &replica.outbox, kServerPeer, 0, &packet));
  }
  const std::vector<Letter> said = replica.outbox.To(kServerPeer);
  REQUIRE_EQ(said.size(), 2);
  Order order = MakeOrder(Order::kVoid, kReplicaNode);
  order.places = {2};
  replica.Hear(kSchedulerPeer, order);
  size_t bytes = 0;
  bool aborted = false;
  while (NextOf(&replica.part, &replica.outbox, kServerPeer, 0, &packet)) {
    CHECK_EQ(packet.header.tensor, As<UpdatesLetter>(said[1]).number);
    bytes += packet.header.length;
  }
  for (const Letter& letter : replica.outbox.To(kServerPeer)) {
    aborted = aborted || As<AbortedLetter>(letter).number == As<UpdatesLetter>(said[0]).number;
  }
  CHECK_TRUE(aborted);
  CHECK_EQ(bytes, 8);
}

TEST(what_the_replica_would_refuse_goes_no_further) {
  ModelFixture replica(Role::kReplica, 0.5, true);
  const auto inflow = Beginning(Vector(6, 2), 24);
  UpdatesLetter alone = Updates(1, {1});
  alone.two = true;
  for (const UpdatesLetter& letter : {Updates(1, {}), alone}) {
    replica.part.Coming(PeerOf(1), letter, inflow);
    CHECK_TRUE(replica.Sent(kServerPeer).empty());
    CHECK_TRUE(replica.outbox.To(kServerPeer).empty());
  }
}

TEST(what_comes_no_further_than_the_replica_is_broken_off_there) {
  ModelFixture replica(Role::kReplica, 0, true);
  const auto inflow = Beginning(Vector(6, 2), 8);
  replica.part.Coming(PeerOf(1), Updates(1, {1, 2}), inflow);
  CHECK_EQ(replica.Sent(kServerPeer).size(), 2);
  const auto said = replica.outbox.OneTo<UpdatesLetter>(kServerPeer);
  inflow->aborted = true;
  CHECK_TRUE(replica.Sent(kServerPeer).empty());
  CHECK_EQ(replica.outbox.OneTo<AbortedLetter>(kServerPeer).number, said.number);
}
