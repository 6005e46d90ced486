#include "base/crc32c.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

// Bit by bit, as the definition has it.
uint32_t Plain(uint32_t crc, const uint8_t* data, size_t bytes) {
  crc = ~crc;
  for (size_t i = 0; i < bytes; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

uint32_t ByAll(const void* data, size_t bytes) {
  for (const Crc32cWay& way : Crc32cWays()) {
    CHECK_EQ(Crc32c(0, data, bytes), way.sum(0, data, bytes));
  }
  return Crc32c(0, data, bytes);
}

}  // namespace

// RFC 3720, B.4, and the check value of the Castagnoli polynomial.
TEST(known_answers) {
  for (const Crc32cWay& way : Crc32cWays()) std::printf("  %s\n", way.name);
  CHECK_EQ(ByAll("123456789", 9), 0xe3069283U);
  CHECK_EQ(ByAll("", 0), 0U);
  std::vector<uint8_t> data(32, 0);
  CHECK_EQ(ByAll(data.data(), 32), 0x8a9136aaU);
  data.assign(32, 0xff);
  CHECK_EQ(ByAll(data.data(), 32), 0x62a8ab43U);
  for (size_t i = 0; i < 32; ++i) data[i] = static_cast<uint8_t>(i);
  CHECK_EQ(ByAll(data.data(), 32), 0x46dd794eU);
  for (size_t i = 0; i < 32; ++i) data[i] = static_cast<uint8_t>(31 - i);
  CHECK_EQ(ByAll(data.data(), 32), 0x113fdb5cU);
}

TEST(every_length_up_to_a_few_strides) {
  mercury::testing::Random random;
  std::vector<uint8_t> data(1400);
  random.Fill(data.data(), data.size());
  for (size_t bytes = 0; bytes <= 1300; ++bytes) {
    const uint8_t* at = &data[bytes % 67];
    const uint32_t expected = Plain(0, at, bytes);
    for (const Crc32cWay& way : Crc32cWays()) CHECK_EQ(way.sum(0, at, bytes), expected);
  }
}

TEST(all_ways_agree_at_every_length_alignment_and_cut) {
  mercury::testing::Random random;
  std::vector<uint8_t> data(70000);
  random.Fill(data.data(), data.size());
  for (int trial = 0; trial < 1000; ++trial) {
    const size_t at = random.Below(64);
    const size_t bytes = random.Below(random.OneIn(20) ? 69000 : random.OneIn(3) ? 8000 : 700);
    const uint32_t start = random.OneIn(2) ? 0 : static_cast<uint32_t>(random());
    const uint32_t whole = Plain(start, &data[at], bytes);
    const size_t cut = random.Below(bytes + 1);
    for (const Crc32cWay& way : Crc32cWays()) {
      CHECK_EQ(whole, way.sum(start, &data[at], bytes));
      CHECK_EQ(whole, way.sum(way.sum(start, &data[at], cut), &data[at + cut], bytes - cut));
    }
  }
}

TEST(any_burst_of_up_to_32_bits_shows) {
  mercury::testing::Random random;
  std::vector<uint8_t> data(600);
  random.Fill(data.data(), data.size());
  const uint32_t right = Crc32c(0, data.data(), data.size());
  for (int trial = 0; trial < 5000; ++trial) {
    std::vector<uint8_t> bad = data;
    const size_t first = random.Below(bad.size() * 8 - 32);
    const uint64_t burst = (random() & 0xffffffff) | 1;
    for (size_t i = 0; i < 32; ++i) {
      if ((burst >> i & 1) != 0) bad[(first + i) / 8] ^= static_cast<uint8_t>(1 << (first + i) % 8);
    }
    CHECK_TRUE(Crc32c(0, bad.data(), bad.size()) != right);
  }
}
