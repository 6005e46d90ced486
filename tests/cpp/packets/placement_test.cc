#include "packets/placement.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

uint64_t Convolution(uint64_t out, uint64_t in, uint64_t size) { return out * in * size * size; }

// The elements of each tensor, in order of keys.
std::vector<uint64_t> Vgg16() {
  std::vector<uint64_t> elements;
  uint64_t in = 3;
  for (const uint64_t out : {64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512}) {
    elements.push_back(Convolution(out, in, 3));
    elements.push_back(out);
    in = out;
  }
  uint64_t width = 512 * 7 * 7;
  for (const uint64_t out : {4096, 4096, 1000}) {
    elements.push_back(width * out);
    elements.push_back(out);
    width = out;
  }
  return elements;
}

std::vector<uint64_t> ResNet50() {
  std::vector<uint64_t> elements;
  const auto convolution = [&](uint64_t out, uint64_t in, uint64_t size) {
    elements.push_back(Convolution(out, in, size));
    elements.push_back(out);  // batch normalisation
    elements.push_back(out);
  };
  convolution(64, 3, 7);
  uint64_t in = 64;
  const uint64_t blocks[] = {3, 4, 6, 3};
  for (uint64_t stage = 0; stage < 4; ++stage) {
    const uint64_t middle = uint64_t{64} << stage;
    for (uint64_t block = 0; block < blocks[stage]; ++block) {
      convolution(middle, in, 1);
      convolution(middle, middle, 3);
      convolution(4 * middle, middle, 1);
      if (block == 0) convolution(4 * middle, in, 1);
      in = 4 * middle;
    }
  }
  elements.push_back(2048 * 1000);
  elements.push_back(1000);
  return elements;
}

std::vector<uint64_t> BytesByServer(const std::vector<uint64_t>& elements, uint64_t packet_bytes,
                                    int servers) {
  std::vector<uint64_t> bytes(static_cast<size_t>(servers), 0);
  for (size_t key = 0; key < elements.size(); ++key) {
    const Placement placement(key, elements[key], 4, packet_bytes, ServerShares(servers));
    for (int s = 0; s < servers; ++s)
      bytes[static_cast<size_t>(s)] += Share(placement, s).Elements() * 4;
  }
  return bytes;
}

double Spread(const std::vector<uint64_t>& bytes) {
  const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
  double sum = 0;
  for (const uint64_t b : bytes) sum += static_cast<double>(b);
  return static_cast<double>(*most - *least) / (sum / static_cast<double>(bytes.size()));
}

ServerShares Shares(const std::string& text, int servers) {
  ServerShares shares(servers);
  REQUIRE_OK(ServerShares::FromText(text, servers, &shares));
  return shares;
}

// Equal ones in half of all cases.
ServerShares SomeShares(mercury::testing::Random* random, int servers) {
  if (random->OneIn(2)) return ServerShares(servers);
  std::string text = std::to_string(random->Between(1, 20));
  for (int s = 1; s < servers; ++s) text += "," + std::to_string(random->Below(20));
  return Shares(text, servers);
}

}  // namespace

TEST(slots_cover_a_tensor_once_each_on_one_server) {
  mercury::testing::Random random;
  for (int trial = 0; trial < 2000; ++trial) {
    const uint64_t key = random();
    const uint64_t packet =
        random.OneIn(3) ? random.Below(5000) : uint64_t{1} << random.Between(10, 22);
    const int servers = static_cast<int>(random.Between(1, 64));
    const uint64_t slots_about = random.Below(random.OneIn(4) ? 2000 : 100);
    const uint64_t bytes = random.OneIn(10) ? 0 : slots_about * packet + random.Below(packet + 1);
    const Placement p(key, bytes, 1, packet, SomeShares(&random, servers));
    uint64_t end = 0;
    for (uint64_t slot = 0; slot < p.slots; ++slot) {
      REQUIRE_EQ(p.Begin(slot), end);
      REQUIRE_EQ(p.Begin(slot) % 64, 0U);
      const uint64_t length = p.Elements(slot);
      CHECK_TRUE(length <= std::max<uint64_t>(packet, 64));
      CHECK_TRUE(length != 0 || (bytes == 0 && p.slots == 1));
      CHECK_TRUE(length == p.slot_elements || slot + 1 == p.slots);
      end += length;
    }
    REQUIRE_EQ(end, bytes);
    uint64_t count = 0;
    uint64_t share_bytes = 0;
    for (int s = 0; s < servers; ++s) {
      const Share share(p, s);
      count += share.count;
      share_bytes += share.Elements();
      for (uint64_t i = 0; i < share.count; ++i) {
        const uint64_t slot = share.Slot(i);
        REQUIRE_TRUE(slot < p.slots);
        CHECK_EQ(p.Server(slot), s);
        uint64_t found = ~uint64_t{0};
        const uint64_t length = p.Elements(slot);
        CHECK_TRUE(share.Find(p.Begin(slot) + random.Below(length), &found));
        CHECK_EQ(found, i);
      }
      for (int probe = 0; probe < 4; ++probe) {  // what Find says is right
        const uint64_t offset = random.OneIn(2) ? random() : random.Below(bytes + 2 * packet + 64);
        uint64_t found;
        const uint64_t slot = offset / p.slot_elements;
        CHECK_EQ(share.Find(offset, &found), slot < p.slots && p.Server(slot) == s);
      }
    }
    CHECK_EQ(count, p.slots);
    CHECK_EQ(share_bytes, bytes);
  }
}

TEST(large_tensors_are_even_and_small_ones_are_not_crumbled) {
  for (int servers = 1; servers <= 64; ++servers) {
    const Placement large(5, 100 << 20, 1, 64 << 10, ServerShares(servers));
    std::vector<uint64_t> bytes;
    for (int s = 0; s < servers; ++s) bytes.push_back(Share(large, s).Elements());
    // Slots are rounded up to 64 bytes, so that the last servers may miss one.
    const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
    CHECK_TRUE(*most - *least <= large.slot_elements);
    CHECK_EQ(Placement(5, 1000, 1, 64 << 10, ServerShares(servers)).slots, 1U);
    const Placement small(5, 40000, 1, 64 << 10, ServerShares(servers));
    CHECK_TRUE(small.slot_elements >= kSlotBytesMin);
  }
}

TEST(the_numbers_are_part_of_the_protocol) {
  // Workers and servers of one version must come to the same; so must those of two builds of it.
  const Placement p(42, 1000000, 1, 65536, ServerShares(3));
  CHECK_EQ(p.slots, 18U);
  CHECK_EQ(p.slot_elements, 55616U);
  CHECK_EQ(p.Elements(17), 54528U);
  CHECK_EQ(p.start, 2U);
  CHECK_EQ(Share(p, 1).count, 6U);
}

TEST(a_server_has_its_share_of_the_bytes) {
  const ServerShares shares = Shares("3,3,0,1", 4);
  const Placement p(42, 7000000, 1, 65536, shares);
  CHECK_EQ(p.slots % 7, 0U);
  for (const auto& [server, part] : {std::pair(0, 3.0 / 7), {1, 3.0 / 7}, {2, 0.0}, {3, 1.0 / 7}}) {
    const auto bytes = static_cast<double>(Share(p, server).Elements());
    CHECK_TRUE(std::abs(bytes / 7000000 - part) < 0.002);
  }
  // Of many small ones, each with one server, too.
  std::vector<int> count(4);
  for (uint64_t key = 0; key < 7000; ++key) {
    ++count[static_cast<size_t>(Placement(key, 100, 1, 65536, shares).Server(0))];
  }
  CHECK_TRUE(std::abs(count[0] - 3000) < 20 && std::abs(count[1] - 3000) < 20);
  CHECK_TRUE(count[2] == 0 && std::abs(count[3] - 1000) < 20);
}

TEST(tensors_of_the_largest_size) {
  for (const uint64_t packet : {uint64_t{1} << 10, uint64_t{4} << 20}) {
    const uint64_t bytes = uint64_t{1} << 44;
    const Placement p(7, bytes, 1, packet, ServerShares(7));
    CHECK_EQ(p.Begin(p.slots - 1) + p.Elements(p.slots - 1), bytes);
    uint64_t sum = 0;
    for (int s = 0; s < 7; ++s) sum += Share(p, s).Elements();
    CHECK_EQ(sum, bytes);
  }
}

// The servers' bytes differ by 2 % of their mean at most, with packets of the default size.
TEST(servers_have_equal_bytes_for_real_models) {
  const struct {
    const char* name;
    std::vector<uint64_t> elements;
    uint64_t parameters;
  } models[] = {{"VGG-16", Vgg16(), 138357544}, {"ResNet-50", ResNet50(), 25557032}};
  for (const auto& model : models) {
    uint64_t parameters = 0;
    for (const uint64_t n : model.elements) parameters += n;
    CHECK_EQ(parameters, model.parameters);
    double worst = 0;
    for (int servers = 1; servers <= 64; ++servers) {
      CHECK_TRUE(Spread(BytesByServer(model.elements, 64 << 10, servers)) <= 0.02);
      for (const uint64_t packet : {8 << 10, 16 << 10, 128 << 10, 1 << 20}) {
        worst = std::max(worst, Spread(BytesByServer(model.elements, packet, servers)));
      }
    }
    std::printf("%s: other packet sizes differ by %.4f at worst\n", model.name, worst);
    CHECK_TRUE(worst <= 0.03);
  }
}
