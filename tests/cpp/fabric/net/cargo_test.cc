#include "fabric/net/cargo.h"

#include <cstring>

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;
using mercury::OutPacket;

TEST(the_packets_of_a_cargo_are_its_bytes_and_never_of_both_vectors) {
  Random random;
  for (int round = 0; round < 300; ++round) {
    Vector sum(1 + random.Below(50));
    Vector step(sum.size());
    for (float& value : sum) value = random.Float(-1, 1);
    for (float& value : step) value = random.Float(-1, 1);
    Cargo cargo;
    cargo.sum = std::make_shared<const Vector>(sum);
    if (random.OneIn(2)) cargo.step = std::make_shared<const Vector>(step);
    const size_t vector_bytes = sum.size() * sizeof(float);
    std::string bytes;
    while (bytes.size() < cargo.bytes()) {
      const OutPacket packet = PartOf(cargo, 7, bytes.size(), 1 + random.Below(100));
      CHECK_EQ(packet.header.tensor, 7);
      CHECK_EQ(packet.header.offset, bytes.size());
      REQUIRE_TRUE(packet.header.length > 0 && packet.header.length % sizeof(float) == 0);
      CHECK_TRUE(bytes.size() % vector_bytes + packet.header.length <= vector_bytes);
      bytes.append(packet.payload, packet.header.length);
    }
    REQUIRE_EQ(bytes.size(), cargo.bytes());
    CHECK_EQ(std::memcmp(bytes.data(), sum.data(), vector_bytes), 0);
    if (cargo.step != nullptr) {
      CHECK_EQ(std::memcmp(bytes.data() + vector_bytes, step.data(), vector_bytes), 0);
    }
  }
}

TEST(a_single_update_is_both_sums) {
  Cargo cargo;
  cargo.sum = std::make_shared<const Vector>(3, 1.0F);
  CHECK_TRUE(cargo.group().step == cargo.group().sum);
  CHECK_EQ(cargo.bytes(), 12);
}

TEST(stripes_of_a_cargo_lie_on_the_wire_by_themselves_and_come_back_to_where_they_were) {
  Random random;
  for (int round = 0; round < 200; ++round) {
    const size_t servers = 2 + random.Below(3);
    const bool large = random.OneIn(10);
    Vector sum(servers + random.Below(large ? 3 * servers * kStripeBlockMost : 50)),
        step(sum.size());
    for (float& value : sum) value = random.Float(-1, 1);
    for (float& value : step) value = random.Float(-1, 1);
    Cargo cargo;
    cargo.sum = std::make_shared<const Vector>(sum);
    if (random.OneIn(2)) cargo.step = std::make_shared<const Vector>(step);
    Vector came(sum.size()), step_came(sum.size());
    for (size_t server = 0; server < servers; ++server) {
      cargo.stripe = {server, servers, sum.size()};
      const CargoShape shape = cargo.shape();
      Cargo apart = cargo;  // as a server has it
      Vector mine;
      for (size_t at = 0; at < cargo.stripe.elements(); ++at)
        mine.push_back(sum[cargo.stripe.In(at)]);
      apart.sum = std::make_shared<const Vector>(mine);
      if (apart.step != nullptr) apart.step = apart.sum;
      for (size_t offset = 0; offset < shape.bytes();) {
        const OutPacket packet = PartOf(cargo, 7, offset, 4 + random.Below(large ? 99999 : 60));
        const CargoShape::Spot spot = shape.At(offset);
        REQUIRE_TRUE(packet.header.length > 0 && packet.header.length <= spot.most);
        auto* to = reinterpret_cast<char*>((spot.step ? step_came : came).data()) + spot.at;
        std::memcpy(to, packet.payload, packet.header.length);
        const OutPacket same = PartOf(apart, 7, offset, packet.header.length);
        CHECK_EQ(same.header.length, packet.header.length);
        if (!spot.step) CHECK_EQ(std::memcmp(same.payload, packet.payload, same.header.length), 0);
        offset += packet.header.length;
        const size_t there = shape.ElementsIn(offset);
        CHECK_TRUE(shape.BytesOf(there) <= offset);
      }
      CHECK_EQ(shape.ElementsIn(shape.bytes()), cargo.stripe.elements());
    }
    CHECK_TRUE(came == sum);
    if (cargo.step != nullptr) CHECK_TRUE(step_came == step);
  }
}
