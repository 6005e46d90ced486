#include "sums/half_kernels.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "harness.h"
#include "sums/sets.h"

using namespace mercury;
using mercury::testing::Random;
using mercury::testing::Sets;

namespace {

float Widened(const std::string& set, DType half, uint16_t bits) {
  float value = 0;
  CHECK_TRUE(AddWidenedWith(set, half, reinterpret_cast<const char*>(&bits), 1,
                            reinterpret_cast<char*>(&value), Into::kRoom));
  return value;
}

std::vector<uint16_t> Narrowed(const std::string& set, DType half, const std::vector<float>& from) {
  std::vector<uint16_t> to(from.size());
  CHECK_TRUE(NarrowWith(set, half, reinterpret_cast<const char*>(from.data()), from.size(),
                        reinterpret_cast<char*>(to.data())));
  return to;
}

// By the definition of the formats.
double Value(DType half, uint16_t bits) {
  const int digits = half == DType::kFloat16 ? 10 : 7, bias = half == DType::kFloat16 ? 15 : 127;
  const int exponent = (bits & 0x7fff) >> digits, fraction = bits & ((1 << digits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 2 * bias + 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - digits);
  return sign * std::ldexp(fraction + (1 << digits), exponent - bias - digits);
}

constexpr DType kHalves[] = {DType::kFloat16, DType::kBfloat16};

}  // namespace

TEST(every_half_is_widened_to_its_value_and_narrowed_back) {
  for (const std::string& set : Sets()) {
    for (const DType half : kHalves) {
      std::vector<float> values;
      for (uint32_t bits = 0; bits < 65536; ++bits) {
        values.push_back(Widened(set, half, static_cast<uint16_t>(bits)));
        const double value = Value(half, static_cast<uint16_t>(bits));
        CHECK_TRUE(std::isnan(value) ? std::isnan(values.back()) : value == values.back());
      }
      const std::vector<uint16_t> back = Narrowed(set, half, values);
      for (uint32_t bits = 0; bits < 65536; ++bits) {
        const uint16_t nan = half == DType::kFloat16 ? 0x7e00 : 0x7fc0;
        CHECK_EQ(back[bits], std::isnan(values[bits]) ? nan : bits);
      }
    }
  }
}

// Between two neighbours, at their middle, and just beside it.
TEST(rounded_to_nearest_even) {
  for (const std::string& set : Sets()) {
    for (const DType half : kHalves) {
      const uint16_t infinity = half == DType::kFloat16 ? 0x7c00 : 0x7f80;
      std::vector<float> values;
      std::vector<uint16_t> expected;
      for (uint16_t bits = 0; bits + 1 < infinity; ++bits) {
        const auto up = static_cast<uint16_t>(bits + 1);
        const auto even = static_cast<uint16_t>(bits % 2 == 0 ? bits : up);
        const auto middle = static_cast<float>((Value(half, bits) + Value(half, up)) / 2);
        for (const float sign : {1.0F, -1.0F}) {
          const auto signed_bits = static_cast<uint16_t>(sign < 0 ? 0x8000 : 0);
          values.push_back(sign * middle);
          expected.push_back(even | signed_bits);
          values.push_back(sign * std::nextafter(middle, 0.0F));
          expected.push_back(bits | signed_bits);
          values.push_back(sign * std::nextafter(middle, INFINITY));
          expected.push_back(up | signed_bits);
        }
      }
      CHECK_TRUE(Narrowed(set, half, values) == expected);
    }
  }
}

TEST(what_is_too_large_is_infinite) {
  for (const std::string& set : Sets()) {
    CHECK_TRUE(Narrowed(set, DType::kFloat16, {65519.0F, 65520.0F, -1e30F, INFINITY, NAN, -0.0F}) ==
               (std::vector<uint16_t>{0x7bff, 0x7c00, 0xfc00, 0x7c00, 0x7e00, 0x8000}));
    CHECK_TRUE(Narrowed(set, DType::kBfloat16, {3.4e38F, -INFINITY, NAN, -0.0F}) ==
               (std::vector<uint16_t>{0x7f80, 0xff80, 0x7fc0, 0x8000}));
  }
}

TEST(all_sets_do_the_same_at_any_length_and_address) {
  Random random;
  for (int trial = 0; trial < 300; ++trial) {
    const uint64_t elements = random.Below(200), offset = random.Below(8);
    const DType half = kHalves[random.Below(2)];
    std::vector<char> values(4 * elements + offset), sum(4 * elements + offset);
    random.Fill(values.data(), values.size());
    for (uint64_t i = 0; i < elements; ++i) {  // which NaN comes out of two is nobody's promise
      const float start = random.Float(-1e4F, 1e4F);
      std::memcpy(sum.data() + offset + 4 * i, &start, sizeof(start));
    }
    std::vector<char> first_halves, first_sum;
    for (const std::string& set : Sets()) {
      std::vector<char> halves(2 * elements + offset, '\x55');
      NarrowWith(set, half, values.data() + offset, elements, halves.data() + offset);
      if (first_halves.empty()) first_halves = halves;
      CHECK_TRUE(halves == first_halves);
      std::vector<char> added = sum;
      AddWidenedWith(set, half, halves.data() + offset, elements, added.data() + offset,
                     Into::kSum);
      if (first_sum.empty()) first_sum = added;
      CHECK_TRUE(added == first_sum);
      for (uint64_t i = 0; i < elements; ++i) {
        float before, after;
        uint16_t bits;
        std::memcpy(&before, sum.data() + offset + 4 * i, 4);
        std::memcpy(&after, added.data() + offset + 4 * i, 4);
        std::memcpy(&bits, halves.data() + offset + 2 * i, 2);
        const float due = before + static_cast<float>(Value(half, bits));
        CHECK_TRUE(due == after || (std::isnan(due) && std::isnan(after)));
      }
    }
  }
}

TEST(the_widest_set_is_used) {
  const std::vector<float> values(100, 1.0F);
  std::vector<uint16_t> halves(100);
  Narrow(DType::kBfloat16, reinterpret_cast<const char*>(values.data()), 100,
         reinterpret_cast<char*>(halves.data()));
  CHECK_TRUE(halves == std::vector<uint16_t>(100, 0x3f80));
  CHECK_FALSE(NarrowWith("altivec", DType::kFloat16, nullptr, 0, nullptr));
}
