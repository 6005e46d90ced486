#include "sums/compress.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "harness.h"

using namespace mercury;
using mercury::testing::Random;

namespace {

constexpr Compression kAll[] = {Compression::kNone, Compression::kOneBit, Compression::kTwoBit};

// The rules of compress.h, one element and one bit at a time.
struct Slow {
  Compression kind;
  float threshold;
  std::vector<float> residual;

  // What every element is sent as.
  std::vector<float> Round(const std::vector<float>& grad) {
    if (kind == Compression::kNone) return grad;
    std::vector<float> sent(grad.size());
    for (size_t i = 0; i < grad.size(); ++i) {
      residual[i] += grad[i];
      if (kind == Compression::kOneBit) {
        sent[i] = residual[i] > threshold ? 1.0F : -1.0F;
      } else if (residual[i] >= threshold) {
        sent[i] = threshold;
      } else if (residual[i] <= -threshold) {
        sent[i] = -threshold;
      }
      residual[i] -= sent[i];
    }
    return sent;
  }

  std::vector<uint8_t> Packed(const std::vector<float>& sent) const {
    std::vector<uint8_t> packed;
    if (kind == Compression::kNone) {
      packed.resize(sent.size() * sizeof(float));
      if (!sent.empty()) std::memcpy(packed.data(), sent.data(), packed.size());
      return packed;
    }
    std::vector<bool> bits;
    for (const float value : sent) {
      bits.push_back(value > 0);
      if (kind == Compression::kTwoBit) bits.push_back(value != 0);
    }
    while (bits.size() % 8 != 0) bits.push_back(false);
    packed.assign(bits.size() / 8, 0);
    for (size_t i = 0; i < bits.size(); ++i) {
      packed[i / 8] = static_cast<uint8_t>(packed[i / 8] | bits[i] << (i % 8));
    }
    return packed;
  }
};

std::vector<float> Gradients(Random* random, size_t elements, float scale) {
  std::vector<float> grad(elements);
  for (float& value : grad) value = random->OneIn(10) ? 0 : random->Float(-scale, scale);
  return grad;
}

size_t SomeSize(Random* random) { return random->Below(random->OneIn(5) ? 3000 : 20); }

}  // namespace

TEST(sizes) {
  CHECK_EQ(CompressedBytes(Compression::kOneBit, 0), 0);
  CHECK_EQ(CompressedBytes(Compression::kOneBit, 1), 1);
  CHECK_EQ(CompressedBytes(Compression::kOneBit, 8), 1);
  CHECK_EQ(CompressedBytes(Compression::kOneBit, 9), 2);
  CHECK_EQ(CompressedBytes(Compression::kTwoBit, 4), 1);
  CHECK_EQ(CompressedBytes(Compression::kTwoBit, 5), 2);
  CHECK_EQ(CompressedBytes(Compression::kNone, 5), 20);
  CHECK_EQ(CompressedBytes(Compression::kOneBit, SIZE_MAX), SIZE_MAX / 8 + 1);
  CHECK_EQ(CompressedBytes(Compression::kTwoBit, SIZE_MAX), SIZE_MAX / 4 + 1);
  CHECK_EQ(CompressedBytes(static_cast<Compression>(9), 5), 0);
}

TEST(codes_as_documented) {
  const float grad[] = {0.5F, -0.5F, 0.4F, 2.0F, -3.0F};
  float residual[5] = {};
  uint8_t packed[2] = {0xff, 0xff};
  Compress(Compression::kTwoBit, 0.5F, grad, residual, 5, packed);
  CHECK_EQ(packed[0], 3 | 2 << 2 | 0 << 4 | 3 << 6);
  CHECK_EQ(packed[1], 2);
  CHECK_EQ(residual[2], 0.4F);
  CHECK_EQ(residual[4], -2.5F);
  float one_bit_residual[5] = {};
  Compress(Compression::kOneBit, 0.45F, grad, one_bit_residual, 5, packed);
  CHECK_EQ(packed[0], 1 | 8);
  CHECK_EQ(one_bit_residual[1], 0.5F);
}

TEST(as_the_slow_reference) {
  Random random;
  for (int run = 0; run < 300; ++run) {
    const Compression kind = kAll[random.Below(3)];
    const size_t elements = SomeSize(&random);
    const float threshold = random.OneIn(10) ? 0.0F : random.Float(0.01F, 2.0F);
    Slow slow{kind, threshold, std::vector<float>(elements)};
    std::vector<float> residual(elements);
    for (int round = 0; round < 5; ++round) {
      const auto grad = Gradients(&random, elements, 2.0F);
      const auto sent = slow.Round(grad);
      std::vector<uint8_t> packed(CompressedBytes(kind, elements));
      random.Fill(packed.data(), packed.size());
      Compress(kind, threshold, grad.data(), residual.data(), elements, packed.data());
      CHECK_TRUE(residual == slow.residual);
      if (threshold != 0) CHECK_TRUE(packed == slow.Packed(sent));

      std::vector<float> sum = Gradients(&random, elements, 10.0F);
      std::vector<float> expected = sum;
      for (size_t i = 0; i < elements; ++i) expected[i] += sent[i];
      Decompress(kind, threshold, packed.data(), elements, sum.data(), Into::kSum);
      CHECK_TRUE(sum == expected);
      Decompress(kind, threshold, packed.data(), elements, sum.data(), Into::kRoom);
      CHECK_TRUE(sum == sent);
    }
  }
}

TEST(nothing_is_lost_over_many_rounds) {
  Random random;
  for (const Compression kind : {Compression::kOneBit, Compression::kTwoBit}) {
    const size_t elements = 100 + random.Below(100);
    const float threshold = random.Float(0.1F, 1.0F);
    constexpr int kRounds = 2000;
    std::vector<float> residual(elements);
    std::vector<double> given(elements);
    std::vector<double> sent(elements);
    std::vector<double> magnitude(elements);  // of all that was ever rounded
    std::vector<float> values(elements);
    std::vector<uint8_t> packed(CompressedBytes(kind, elements));
    for (int round = 0; round < kRounds; ++round) {
      const auto grad = Gradients(&random, elements, 0.9F * threshold);
      Compress(kind, threshold, grad.data(), residual.data(), elements, packed.data());
      Decompress(kind, threshold, packed.data(), elements, values.data(), Into::kRoom);
      for (size_t i = 0; i < elements; ++i) {
        given[i] += grad[i];
        sent[i] += values[i];
        magnitude[i] += std::fabs(residual[i]) + 2 * std::fabs(values[i]) + std::fabs(grad[i]);
      }
    }
    for (size_t i = 0; i < elements; ++i) {
      const double lost = std::fabs(sent[i] + residual[i] - given[i]);
      CHECK_TRUE(lost <= magnitude[i] * std::numeric_limits<float>::epsilon());
      // What is held back stays small: that is what makes compression work.
      CHECK_TRUE(std::fabs(residual[i]) <= 2.0F + threshold);
    }
  }
}

TEST(nothing_at_all) {
  for (const Compression kind : kAll) {
    Compress(kind, 0.5F, nullptr, nullptr, 0, nullptr);
    Decompress(kind, 0.5F, nullptr, 0, nullptr, Into::kRoom);
    Decompress(kind, 0.5F, nullptr, 0, nullptr, Into::kSum);
  }
}

TEST(not_a_number_is_held_back) {
  const float grad[] = {std::numeric_limits<float>::quiet_NaN()};
  float residual[1] = {};
  uint8_t packed[1];
  float value[1];
  Compress(Compression::kTwoBit, 0.5F, grad, residual, 1, packed);
  Decompress(Compression::kTwoBit, 0.5F, packed, 1, value, Into::kRoom);
  CHECK_EQ(value[0], 0.0F);
  CHECK_TRUE(std::isnan(residual[0]));
}

TEST(any_bytes_can_be_decompressed) {
  Random random;
  for (int run = 0; run < 2000; ++run) {
    const Compression kind = kAll[random.Below(3)];
    const size_t elements = SomeSize(&random);
    std::vector<uint8_t> packed(CompressedBytes(kind, elements));
    random.Fill(packed.data(), packed.size());
    float threshold;
    random.Fill(&threshold, sizeof(threshold));
    const size_t shift = random.Below(4);  // sums may lie anywhere
    std::vector<char> sum(elements * sizeof(float) + shift);
    auto* at = reinterpret_cast<float*>(sum.data() + shift);
    Decompress(kind, threshold, packed.data(), elements, at,
               random.OneIn(2) ? Into::kRoom : Into::kSum);
    if (kind == Compression::kNone) continue;
    Decompress(kind, 0.25F, packed.data(), elements, at, Into::kRoom);
    for (size_t i = 0; i < elements; ++i) {
      float value;
      std::memcpy(&value, sum.data() + shift + i * sizeof(value), sizeof(value));
      const bool quantised = kind == Compression::kOneBit
                                 ? std::fabs(value) == 1.0F
                                 : value == 0.0F || std::fabs(value) == 0.25F;
      CHECK_TRUE(quantised);
    }
  }
}
