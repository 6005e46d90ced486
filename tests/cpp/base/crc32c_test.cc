#include "base/crc32c.h"

#include <cstring>
#include <string>
#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

uint32_t Both(const void* data, size_t bytes) {
  CHECK_EQ(Crc32c(0, data, bytes), Crc32cByTable(0, data, bytes));
  return Crc32c(0, data, bytes);
}

}  // namespace

// RFC 3720, B.4, and the check value of the Castagnoli polynomial.
TEST(known_answers) {
  CHECK_EQ(Both("123456789", 9), 0xe3069283U);
  CHECK_EQ(Both("", 0), 0U);
  std::vector<uint8_t> data(32, 0);
  CHECK_EQ(Both(data.data(), 32), 0x8a9136aaU);
  data.assign(32, 0xff);
  CHECK_EQ(Both(data.data(), 32), 0x62a8ab43U);
  for (size_t i = 0; i < 32; ++i) data[i] = static_cast<uint8_t>(i);
  CHECK_EQ(Both(data.data(), 32), 0x46dd794eU);
  for (size_t i = 0; i < 32; ++i) data[i] = static_cast<uint8_t>(31 - i);
  CHECK_EQ(Both(data.data(), 32), 0x113fdb5cU);
}

TEST(both_ways_agree_at_every_length_alignment_and_cut) {
  mercury::testing::Random random;
  std::vector<uint8_t> data(4096);
  random.Fill(data.data(), data.size());
  for (int trial = 0; trial < 2000; ++trial) {
    const size_t at = random.Below(64);
    const size_t bytes = random.Below(random.OneIn(4) ? 4000 : 70);
    const uint32_t start = random.OneIn(2) ? 0 : static_cast<uint32_t>(random());
    const uint32_t whole = Crc32c(start, &data[at], bytes);
    CHECK_EQ(whole, Crc32cByTable(start, &data[at], bytes));
    const size_t cut = random.Below(bytes + 1);
    CHECK_EQ(whole, Crc32c(Crc32c(start, &data[at], cut), &data[at + cut], bytes - cut));
  }
}

TEST(any_burst_of_up_to_32_bits_shows) {
  mercury::testing::Random random;
  std::vector<uint8_t> data(300);
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
