#include "fabric/net/model_sender.h"

#include "fabric/net/recorder.h"
#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::fabric::testing;
using namespace mercury::testing;
using mercury::OutPacket;

namespace {

std::shared_ptr<const Vector> Of(float value, size_t elements) {
  return std::make_shared<const Vector>(elements, value);
}

}  // namespace

TEST(one_model_after_another_and_what_each_was) {
  Recorder outbox;
  ModelSender sender(16, &outbox);
  ModelLetter first, second;
  first.version = 7;
  second.version = 8;
  sender.Send(3, first, {Of(1, 5), nullptr});
  sender.Send(3, second, {Of(2, 4), Of(3, 4)});
  sender.Send(4, first, {Of(4, 2), nullptr});
  CHECK_EQ(sender.waiting(3), 2);
  OutPacket packet;
  const auto next = [&](int peer) {
    packet = OutPacket();
    return NextOf(&sender, &outbox, peer, 0, &packet);
  };
  CHECK_FALSE(next(5));
  std::vector<uint32_t> lengths;
  std::vector<int64_t> versions;
  while (next(3)) {
    lengths.push_back(packet.header.length);
    for (const Letter& letter : outbox.To(3)) {
      const auto said = As<ModelLetter>(letter);
      CHECK_EQ(said.number, packet.header.tensor);
      CHECK_EQ(said.two, said.version == 8);
      versions.push_back(said.version);
      // Said before any of it goes.
      CHECK_EQ(lengths.size(), versions.size() == 1 ? 1 : 3);
    }
  }
  CHECK_TRUE(lengths == (std::vector<uint32_t>{16, 4, 16, 16}));
  CHECK_TRUE(versions == (std::vector<int64_t>{7, 8}));
  CHECK_EQ(sender.waiting(3), 0);
  CHECK_EQ(sender.waiting(4), 1);
  sender.Gone(4);
  CHECK_FALSE(next(4));
}

TEST(what_is_abandoned_is_said_to_be_if_it_had_begun) {
  Recorder outbox;
  ModelSender sender(16, &outbox);
  OutPacket packet;
  for (const int peer : {3, 4}) sender.Send(peer, {}, {Of(1, 5), nullptr}, 0.5);
  sender.Send(3, {}, {Of(2, 5), nullptr}, 0.5);
  CHECK_TRUE(NextOf(&sender, &outbox, 3, 0, &packet));
  const int64_t number = outbox.OneTo<ModelLetter>(3).number;
  CHECK_EQ(sender.share(), 1.5);
  sender.CountNoMore();
  CHECK_EQ(sender.share(), 0);
  sender.Abandon();
  CHECK_EQ(outbox.OneTo<AbortedLetter>(3).number, number);
  for (const int peer : {3, 4}) {
    CHECK_FALSE(NextOf(&sender, &outbox, peer, 0, &packet));
    CHECK_TRUE(outbox.To(peer).empty());
  }
}

TEST(a_few_at_once_in_the_order_in_which_they_began_to_wait) {
  Recorder outbox;
  ModelSender sender(16, &outbox);
  for (const int peer : {9, 3, 7, 5, 4, 8}) sender.Send(peer, {}, {Of(1, 8), nullptr}, 0.125);
  CHECK_EQ(sender.share(), 0.75);
  const auto next = [&sender] {
    std::vector<int> peers;
    for (int peer = 0; peer < 10; ++peer) {
      if (sender.IsNext(peer)) peers.push_back(peer);
    }
    return peers;
  };
  CHECK_TRUE(next() == (std::vector<int>{3, 5, 7, 9}));
  OutPacket packet;
  const auto take = [&](int peer) {
    packet = OutPacket();
    return NextOf(&sender, &outbox, peer, 5, &packet);
  };
  CHECK_FALSE(take(4));
  CHECK_TRUE(take(7) && take(7));  // all of it
  CHECK_EQ(sender.share(), 0.625);
  CHECK_TRUE(next() == (std::vector<int>{3, 4, 5, 9}));
  sender.Gone(9);
  CHECK_TRUE(next() == (std::vector<int>{3, 4, 5, 8}));
  CHECK_TRUE(packet.header.tensor > kNotOfHops);
}

TEST(updates_that_still_come_go_on_as_what_they_come) {
  Recorder outbox;
  ModelSender sender(64, &outbox);
  const auto inflow = Beginning(Vector(6, 2), 0);
  inflow->vectors = 2;
  inflow->step = std::make_shared<Vector>(6, 3.0F);
  sender.PassOn(3, Updates(1, {4, 5}), inflow);
  OutPacket packet;
  CHECK_FALSE(NextOf(&sender, &outbox, 3, 0, &packet));
  const auto said = outbox.OneTo<UpdatesLetter>(3);
  CHECK_TRUE(said.two && said.places == (std::vector<int64_t>{4, 5}));
  CHECK_TRUE(said.number >= int64_t{kNotOfHops});
  inflow->codec = mercury::FindCompression("bf16");  // known with the first bytes
  inflow->bytes = 24;
  size_t bytes = 0;
  for (; NextOf(&sender, &outbox, 3, 0, &packet); packet = OutPacket()) {
    CHECK_TRUE(packet.header.kind == mercury::PacketKind::kCodedPart);
    bytes += packet.header.length;
  }
  CHECK_EQ(bytes, 24);
  CHECK_EQ(sender.waiting(3), 0);
}

TEST(a_slow_chain_that_came_first_does_not_hold_up_a_fast_one) {
  Recorder outbox;
  ModelSender sender(64, &outbox);
  std::vector<std::shared_ptr<Inflow>> inflows;
  for (int64_t place = 1; place <= int64_t{kUpdatesAtOnce} + 1; ++place) {
    inflows.push_back(Beginning(Vector(6, 2), 0));
    sender.PassOn(3, Updates(1, {place}), inflows.back());
  }
  OutPacket packet;
  CHECK_FALSE(NextOf(&sender, &outbox, 3, 0, &packet));
  std::vector<Letter> said = outbox.To(3);
  REQUIRE_EQ(said.size(), kUpdatesAtOnce);  // all of these at once, and no more
  inflows[1]->bytes = 24;                   // the first has still to come
  REQUIRE_TRUE(NextOf(&sender, &outbox, 3, 0, &packet));
  CHECK_EQ(packet.header.tensor, As<UpdatesLetter>(said[1]).number);
  CHECK_FALSE(NextOf(&sender, &outbox, 3, 0, &packet));
  CHECK_EQ(outbox.OneTo<UpdatesLetter>(3).places[0], int64_t{kUpdatesAtOnce} + 1);
  inflows[0]->aborted = true;
  inflows[2]->bytes = 8;
  CHECK_FALSE(sender.Next(3, 0, &packet));
  CHECK_EQ(outbox.OneTo<AbortedLetter>(3).number, As<UpdatesLetter>(said[0]).number);
  REQUIRE_TRUE(NextOf(&sender, &outbox, 3, 0, &packet));
  CHECK_EQ(packet.header.tensor, As<UpdatesLetter>(said[2]).number);
  sender.Abandon();
  CHECK_EQ(outbox.To(3).size(), kUpdatesAtOnce - 1);  // what is still under way
}
