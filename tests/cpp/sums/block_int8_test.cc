#include "sums/block_int8.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "harness.h"
#include "sums/half_kernels.h"
#include "sums/sets.h"

using namespace mercury;
using mercury::testing::Random;
using mercury::testing::Sets;

namespace {

float ScaleAt(const char* block, uint64_t elements) {
  uint16_t bits;
  std::memcpy(&bits, block + elements, sizeof(bits));
  const uint32_t wide = uint32_t{bits} << 16;
  float scale;
  std::memcpy(&scale, &wide, sizeof(scale));
  return scale;
}

// By the definition, with doubles.
std::vector<char> Expected(const std::vector<float>& values) {
  std::vector<char> blocks(BlockBytes(values.size()));
  char* at = blocks.data();
  for (size_t begin = 0; begin < values.size(); begin += kBlockElements) {
    const size_t count = std::min<size_t>(kBlockElements, values.size() - begin);
    float most = 0;
    bool finite = true;
    for (size_t i = begin; i < begin + count; ++i) {
      most = std::max(most, std::abs(values[i]));
      finite = finite && std::isfinite(values[i]);
    }
    const float due = most / 127;
    uint32_t bits;
    std::memcpy(&bits, &due, sizeof(bits));
    if ((bits & 0xffff) != 0) bits += 0x10000;
    auto scale = static_cast<uint16_t>(bits >> 16);
    if (!finite) scale = 0x7fc0;
    std::memcpy(at + count, &scale, sizeof(scale));
    const float by = ScaleAt(at, count);
    for (size_t i = 0; i < count; ++i) {
      const double q = finite && by != 0 ? std::nearbyint(double{values[begin + i] / by}) : 0;
      at[i] = static_cast<char>(static_cast<int8_t>(std::min(std::max(q, -127.0), 127.0)));
    }
    at += count + kBlockScaleBytes;
  }
  return blocks;
}

std::vector<char> Quantised(const std::string& set, const std::vector<float>& values) {
  std::vector<char> blocks(BlockBytes(values.size()));
  CHECK_TRUE(QuantiseBlocksWith(set, reinterpret_cast<const char*>(values.data()), values.size(),
                                blocks.data()));
  return blocks;
}

std::vector<float> Read(const std::string& set, const std::vector<char>& blocks, size_t elements) {
  std::vector<float> values(elements, 7);
  CHECK_TRUE(AddBlocksWith(set, blocks.data(), elements, reinterpret_cast<char*>(values.data()),
                           Into::kRoom));
  return values;
}

}  // namespace

TEST(blocks_are_as_defined) {
  Random random;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<float> values(random.Below(300));
    const int spread = static_cast<int>(random.Below(60));
    const int around = static_cast<int>(random.Between(-149, 120));
    for (float& value : values) {
      const int exponent =
          around + static_cast<int>(random.Below(static_cast<uint64_t>(spread + 1)));
      value = std::ldexp(random.Float(-1, 1), std::min(exponent, 127));
      if (random.OneIn(20)) value = 0;
      if (trial % 5 == 0 && random.OneIn(200)) value = random.OneIn(2) ? NAN : -INFINITY;
    }
    const std::vector<char> expected = Expected(values);
    for (const std::string& set : Sets()) CHECK_TRUE(Quantised(set, values) == expected);
  }
}

TEST(a_value_is_off_by_half_a_step_at_most) {
  Random random;
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<float> values(1 + random.Below(200));
    for (float& value : values) value = random.Float(-1, 1) * random.Float(0, 100);
    for (const std::string& set : Sets()) {
      const std::vector<char> blocks = Quantised(set, values);
      const std::vector<float> read = Read(set, blocks, values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t begin = i / kBlockElements * kBlockElements;
        const size_t count = std::min<size_t>(kBlockElements, values.size() - begin);
        const float scale = ScaleAt(blocks.data() + BlockBytes(begin), count);
        CHECK_TRUE(std::abs(read[i] - values[i]) <= 0.5000001F * scale);
        float most = 0;
        for (size_t j = begin; j < begin + count; ++j) most = std::max(most, std::abs(values[j]));
        CHECK_TRUE(scale >= most / 127 && scale <= 1.0081F * most / 127);
      }
    }
  }
}

TEST(what_is_not_finite_stays_so_in_its_block_alone) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> values(130, 0.5F);
    values[70] = bad;
    for (const std::string& set : Sets()) {
      const std::vector<float> read = Read(set, Quantised(set, values), values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        CHECK_EQ(std::isnan(read[i]), i >= 64 && i < 128);
      }
    }
  }
}

TEST(zeros_are_zeros) {
  for (const std::string& set : Sets()) {
    const std::vector<float> read = Read(set, Quantised(set, std::vector<float>(100, -0.0F)), 100);
    CHECK_TRUE(read == std::vector<float>(100, 0.0F));
  }
}

TEST(any_bytes_can_be_added_and_all_sets_do_it_alike) {
  Random random;
  for (int trial = 0; trial < 300; ++trial) {
    const uint64_t elements = random.Below(300), offset = random.Below(4);
    std::vector<char> blocks(BlockBytes(elements) + offset), sum(4 * elements + offset), first;
    random.Fill(blocks.data(), blocks.size());
    for (uint64_t i = 0; i < elements; ++i) {
      const float start = random.Float(-1e4F, 1e4F);
      std::memcpy(sum.data() + offset + 4 * i, &start, sizeof(start));
    }
    for (const std::string& set : Sets()) {
      std::vector<char> added = sum;
      AddBlocksWith(set, blocks.data() + offset, elements, added.data() + offset, Into::kSum);
      for (uint64_t i = 0; i < elements; ++i) {  // one NaN is as good as another
        float value;
        std::memcpy(&value, added.data() + offset + 4 * i, sizeof(value));
        if (std::isnan(value)) value = 0;
        std::memcpy(added.data() + offset + 4 * i, &value, sizeof(value));
      }
      if (first.empty()) first = added;
      CHECK_TRUE(added == first);
    }
  }
}

TEST(the_widest_set_is_used) {
  const std::vector<float> values(100, 1.0F);
  std::vector<char> blocks(BlockBytes(100));
  QuantiseBlocks(reinterpret_cast<const char*>(values.data()), 100, blocks.data());
  CHECK_TRUE(blocks == Expected(values));
  std::vector<float> sum(100, 1.0F);
  AddBlocks(blocks.data(), 100, reinterpret_cast<char*>(sum.data()), Into::kSum);
  CHECK_TRUE(std::abs(sum[99] - 2.0F) < 0.01F);
  CHECK_FALSE(QuantiseBlocksWith("altivec", nullptr, 0, nullptr));
}
