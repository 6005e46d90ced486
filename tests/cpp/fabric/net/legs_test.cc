#include "fabric/net/legs.h"

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

namespace {

Cargo Drawn(Random* random, size_t servers) {
  const bool large = random->OneIn(4);
  Cargo whole;
  whole.sum = std::make_shared<Vector>(servers + random->Below(large ? 3 * kBlockElements : 40));
  if (random->OneIn(2)) whole.step = std::make_shared<Vector>(whole.sum->size());
  if (random->OneIn(3)) whole.codec = mercury::FindCompression("bf16");
  return whole;
}

Legs LegsOf(const Cargo& whole, size_t servers) {
  Legs legs;
  for (size_t i = 0; i < servers; ++i) legs.push_back({0, {i, servers, whole.sum->size()}});
  return legs;
}

}  // namespace

TEST(legs_keep_up_with_the_whole_and_are_never_ahead_of_it) {
  Random random;
  for (int round = 0; round < Cases(300); ++round) {
    const size_t servers = 1 + random.Below(4);
    const Cargo whole = Drawn(&random, servers);
    const CargoShape shape = whole.shape();
    Legs legs = LegsOf(whole, servers);
    size_t may = 0, sent = 0;
    while (may < shape.bytes()) {
      may = std::min(may + 1 + random.Below(shape.bytes() / 8 + 1), shape.bytes());
      for (Leg& leg : legs) {
        if (random.OneIn(3)) continue;  // its link is slow
        const size_t room = leg.Room(shape, may);
        REQUIRE_TRUE(room >= leg.offset && room <= leg.Of(whole).bytes());
        sent += room - leg.offset;
        leg.offset = room;
      }
      CHECK_TRUE(sent <= may);
    }
    for (const Leg& leg : legs) {
      CHECK_EQ(leg.Room(shape, shape.bytes()), leg.Of(whole).bytes());
      CHECK_EQ(leg.over(shape), leg.offset == leg.Of(whole).bytes());
    }
  }
}

TEST(a_leg_has_room_once_its_next_byte_may_go_and_not_before) {
  Random random;
  for (int round = 0; round < Cases(2000); ++round) {
    const size_t servers = 1 + random.Below(4);
    const Cargo whole = Drawn(&random, servers);
    const CargoShape shape = whole.shape();
    for (Leg leg : LegsOf(whole, servers)) {
      const size_t element = TransferBytes(whole.codec, 1);
      leg.offset = random.Below(leg.Of(whole).bytes()) / element * element;
      const size_t next = leg.Next(shape);
      REQUIRE_TRUE(next > 0 && next <= shape.bytes());
      CHECK_TRUE(leg.Room(shape, next) > leg.offset);
      CHECK_TRUE(leg.Room(shape, next - 1) <= leg.offset);
    }
  }
}

TEST(three_servers_take_turns_at_what_may_go) {
  Cargo whole;
  whole.sum = std::make_shared<Vector>(9 * kStripeBlockMost);
  const size_t block = kStripeBlockMost * sizeof(float);
  const Legs legs = LegsOf(whole, 3);
  const auto room = [&](size_t leg, size_t may) { return legs[leg].Room(whole.shape(), may); };
  CHECK_EQ(room(0, block / 2), block / 2);
  CHECK_EQ(room(1, block / 2), 0);
  CHECK_EQ(room(0, 3 * block), block);
  CHECK_EQ(room(1, 3 * block), block);
  CHECK_EQ(room(2, 3 * block), block);
  CHECK_EQ(legs[1].Next(whole.shape()), block + sizeof(float));
}
