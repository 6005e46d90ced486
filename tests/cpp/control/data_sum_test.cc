#include "control/data_sum.h"

#include <cstring>
#include <memory>
#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

struct Bytes {
  explicit Bytes(size_t size) : memory(std::make_shared<std::vector<char>>(size)) {
    mercury::testing::Random random;
    random.Fill(memory->data(), memory->size());
  }
  ps::SArray<char> Array(std::shared_ptr<SumOnce> sum = nullptr) const {
    return Share(memory->data(), memory->size(), memory, std::move(sum));
  }
  std::shared_ptr<std::vector<char>> memory;
};

}  // namespace

TEST(the_sum_is_that_of_the_frames_one_after_the_other) {
  const Bytes first(16), second(5000);
  DataSum sum;
  sum.Add(Crc32c(0, first.memory->data(), 16));
  sum.Add(Crc32c(0, second.memory->data(), 5000));
  CHECK_EQ(SumOf({first.Array(), second.Array()}), sum.value());
  CHECK_TRUE(SumOf({second.Array(), first.Array()}) != sum.value());
  CHECK_EQ(SumOf({}), 0U);
}

TEST(any_flipped_bit_changes_it) {
  const Bytes bytes(67);
  const uint32_t before = SumOf({bytes.Array()});
  for (size_t bit = 0; bit < 67 * 8; ++bit) {
    (*bytes.memory)[bit / 8] ^= static_cast<char>(1 << bit % 8);
    CHECK_TRUE(SumOf({bytes.Array()}) != before);
    (*bytes.memory)[bit / 8] ^= static_cast<char>(1 << bit % 8);
  }
}

TEST(what_is_shared_is_summed_once) {
  const Bytes bytes(100);
  const auto remembered = std::make_shared<SumOnce>();
  const uint32_t sum = SumOf({bytes.Array(remembered)});
  CHECK_EQ(sum, SumOf({bytes.Array()}));
  (*bytes.memory)[0] ^= 1;  // nobody may; so this shows who looks again
  CHECK_EQ(SumOf({bytes.Array(remembered)}), sum);
  CHECK_TRUE(SumOf({bytes.Array()}) != sum);
}

TEST(an_array_keeps_its_memory_and_its_sum_through_ps_lite_s_conversions) {
  const auto remembered = std::make_shared<SumOnce>();
  std::weak_ptr<std::vector<char>> watched;
  ps::SArray<char> kept;
  uint32_t sum = 0;
  {
    Bytes bytes(1000);
    watched = bytes.memory;
    sum = SumOf({bytes.Array(remembered)});
    kept = ps::SArray<char>(ps::SArray<uint8_t>(bytes.Array(remembered)));
    bytes.memory->at(3) ^= 1;
  }
  CHECK_TRUE(!watched.expired());
  CHECK_EQ(SumOf({kept}), sum);
  kept = {};
  CHECK_TRUE(watched.expired());
}
