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
