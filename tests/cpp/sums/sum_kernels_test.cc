#include "sums/sum_kernels.h"

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

constexpr DType kAll[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kUint8,
                          DType::kInt32,   DType::kInt8,    DType::kInt64,   DType::kBfloat16};

// A small binary floating-point format, by arithmetic on doubles (which hold all sums that occur
// here exactly or, after rounding to float32, as the kernels are said to compute them).
struct Format {
  int digits;  // after the leading one
  int bias;
  uint16_t infinity;
  uint16_t quiet_nan;

  double Decode(uint16_t bits) const {
    const int magnitude = bits & 0x7fff;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (magnitude > infinity) return std::numeric_limits<double>::quiet_NaN();
    if (magnitude == infinity) return sign * std::numeric_limits<double>::infinity();
    const int exponent = magnitude >> digits;
    const int fraction = magnitude & ((1 << digits) - 1);
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - digits);
    return sign * std::ldexp(fraction + (1 << digits), exponent - bias - digits);
  }

  uint16_t Encode(double value) const {
    if (std::isnan(value)) return quiet_nan;
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const double magnitude = std::fabs(value);
    if (magnitude == 0) return sign;
    if (std::isinf(magnitude)) return sign | infinity;
    int exponent = std::max(std::ilogb(magnitude), 1 - bias);
    double fraction = std::nearbyint(std::ldexp(magnitude, digits - exponent));  // to even
    if (fraction >= 2 << digits) {
      fraction /= 2;
      ++exponent;
    }
    if (exponent > bias) return sign | infinity;
    if (fraction < 1 << digits) return static_cast<uint16_t>(sign | static_cast<int>(fraction));
    return static_cast<uint16_t>(
        sign | ((exponent + bias) << digits | (static_cast<int>(fraction) - (1 << digits))));
  }

  uint16_t Sum(uint16_t a, uint16_t b) const {
    return Encode(static_cast<float>(Decode(a)) + static_cast<float>(Decode(b)));
  }
};

constexpr Format kFloat16 = {10, 15, 0x7c00, 0x7e00};
constexpr Format kBfloat16 = {7, 127, 0x7f80, 0x7fc0};

const Format& FormatOf(DType dtype) { return dtype == DType::kFloat16 ? kFloat16 : kBfloat16; }

template <typename T>
void AddOne(char* dst, const char* src) {
  T a, b;
  std::memcpy(&a, dst, sizeof(T));
  std::memcpy(&b, src, sizeof(T));
  a = static_cast<T>(a + b);
  std::memcpy(dst, &a, sizeof(T));
}

void AddOne16(const Format& format, char* dst, const char* src) {
  uint16_t a, b;
  std::memcpy(&a, dst, sizeof(a));
  std::memcpy(&b, src, sizeof(b));
  a = format.Sum(a, b);
  std::memcpy(dst, &a, sizeof(a));
}

void Reference(DType dtype, char* dst, const char* src, size_t bytes) {
  const size_t step = ElementBytes(dtype);
  for (size_t i = 0; i < bytes; i += step) {
    switch (dtype) {
      case DType::kFloat32:
        AddOne<float>(dst + i, src + i);
        break;
      case DType::kFloat64:
        AddOne<double>(dst + i, src + i);
        break;
      case DType::kFloat16:
      case DType::kBfloat16:
        AddOne16(FormatOf(dtype), dst + i, src + i);
        break;
      case DType::kUint8:
      case DType::kInt8:
        AddOne<uint8_t>(dst + i, src + i);
        break;
      case DType::kInt32:
        AddOne<uint32_t>(dst + i, src + i);
        break;
      case DType::kInt64:
        AddOne<uint64_t>(dst + i, src + i);
        break;
    }
  }
}

// Equal bit for bit, but that any NaN of float32 and float64 is as good as another.
template <typename T>
bool SameFloat(const char* a, const char* b) {
  T x, y;
  std::memcpy(&x, a, sizeof(T));
  std::memcpy(&y, b, sizeof(T));
  return std::memcmp(a, b, sizeof(T)) == 0 || (std::isnan(x) && std::isnan(y));
}

bool Same(DType dtype, const char* a, const char* b, size_t bytes) {
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64) return std::memcmp(a, b, bytes) == 0;
  for (size_t i = 0; i < bytes; i += ElementBytes(dtype)) {
    const bool same =
        dtype == DType::kFloat32 ? SameFloat<float>(a + i, b + i) : SameFloat<double>(a + i, b + i);
    if (!same) return false;
  }
  return true;
}

// Sums of `a` with a fixed other element, by every instruction set, against the reference.
void CheckAllWith(DType dtype, uint16_t other) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  const std::vector<uint16_t> others(all.size(), other);
  for (const std::string& set : Sets()) {
    for (const bool swapped : {false, true}) {
      std::vector<uint16_t> sum = swapped ? others : all;
      REQUIRE_TRUE(
          AddWith(set, dtype, sum.data(), (swapped ? all : others).data(), sum.size() * 2));
      for (size_t i = 0; i < all.size(); ++i) {
        if (sum[i] == FormatOf(dtype).Sum(all[i], other)) continue;
        CHECK_EQ(set + ": " + std::to_string(i) + " + " + std::to_string(other), "");
        REQUIRE_EQ(sum[i], FormatOf(dtype).Sum(all[i], other));
      }
    }
  }
}

}  // namespace

TEST(types_have_names_and_sizes) {
  for (const DType dtype : kAll) {
    DType parsed = DType::kInt8;
    CHECK_TRUE(ParseDType(Name(dtype), &parsed));
    CHECK_EQ(parsed, dtype);
  }
  CHECK_EQ(ElementBytes(DType::kFloat32), 4);
  CHECK_EQ(ElementBytes(DType::kFloat64), 8);
  CHECK_EQ(ElementBytes(DType::kBfloat16), 2);
  CHECK_EQ(ElementBytes(DType::kInt8), 1);
  DType untouched = DType::kInt32;
  CHECK_FALSE(ParseDType("float8", &untouched));
  CHECK_FALSE(ParseDType("", &untouched));
  CHECK_EQ(untouched, DType::kInt32);
  for (int flag = 0; flag < 256; ++flag) {
    bool known = false;
    for (const DType dtype : kAll) known = known || static_cast<int>(dtype) == flag;
    CHECK_EQ(ElementBytes(static_cast<DType>(flag)) != 0, known);
  }
  CHECK_EQ(std::string(Name(static_cast<DType>(99))), "unknown");
}

TEST(the_reference_reads_back_what_it_writes) {
  for (const Format& format : {kFloat16, kBfloat16}) {
    for (int bits = 0; bits < 65536; ++bits) {
      const auto half = static_cast<uint16_t>(bits);
      const bool nan = (half & 0x7fff) > format.infinity;
      CHECK_EQ(format.Encode(format.Decode(half)), nan ? format.quiet_nan : half);
    }
  }
  CHECK_EQ(kFloat16.Decode(0x3c00), 1.0);
  CHECK_EQ(kFloat16.Decode(0x7bff), 65504.0);
  CHECK_EQ(kFloat16.Decode(0x0001), 0x1p-24);
  CHECK_EQ(kFloat16.Encode(65519.0), 0x7bff);
  CHECK_EQ(kFloat16.Encode(65520.0), 0x7c00);
  CHECK_EQ(kBfloat16.Decode(0x3f80), 1.0);
  CHECK_EQ(kBfloat16.Encode(1.0 + 0x1p-8), 0x3f80);  // ties to even
  CHECK_EQ(kBfloat16.Encode(1.0 + 3 * 0x1p-8), 0x3f82);
}

TEST(every_float16_with_chosen_ones) {
  for (const uint16_t other :
       {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400, 0x1400, 0x3c00, 0xbc00, 0x3c01,
        0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01, 0x7e00, 0xffff}) {
    CheckAllWith(DType::kFloat16, other);
  }
}

TEST(every_bfloat16_with_chosen_ones) {
  for (const uint16_t other :
       {0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x0080, 0x8080, 0x3b80, 0x3f80, 0xbf80, 0x3f81,
        0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81, 0x7fc0, 0xffff}) {
    CheckAllWith(DType::kBfloat16, other);
  }
}

TEST(every_16_bit_float_with_random_ones) {
  Random random;
  for (int round = 0; round < 10; ++round) {
    CheckAllWith(DType::kFloat16, static_cast<uint16_t>(random()));
    CheckAllWith(DType::kBfloat16, static_cast<uint16_t>(random()));
  }
}

TEST(random_bits_of_every_type_length_and_alignment) {
  Random random;
  for (int round = 0; round < 3000; ++round) {
    const DType dtype = kAll[random.Below(std::size(kAll))];
    const size_t bytes = random.Below(random.OneIn(10) ? 500 : 40) * ElementBytes(dtype);
    const size_t dst_at = random.Below(70);
    const size_t src_at = random.Below(70);
    std::vector<char> dst(dst_at + bytes + random.Below(70));
    std::vector<char> src(src_at + bytes);  // ends with its last element: the sanitizer watches
    random.Fill(dst.data(), dst.size());
    random.Fill(src.data(), src.size());
    std::vector<char> expected = dst;
    Reference(dtype, expected.data() + dst_at, src.data() + src_at, bytes);
    const std::vector<char> src_before = src;
    for (const std::string& set : Sets()) {
      std::vector<char> sum = dst;
      REQUIRE_TRUE(AddWith(set, dtype, sum.data() + dst_at, src.data() + src_at, bytes));
      CHECK_TRUE(Same(dtype, sum.data() + dst_at, expected.data() + dst_at, bytes));
      CHECK_TRUE(
          std::equal(sum.begin(), sum.begin() + static_cast<ptrdiff_t>(dst_at), expected.begin()));
      CHECK_TRUE(std::equal(sum.begin() + static_cast<ptrdiff_t>(dst_at + bytes), sum.end(),
                            expected.begin() + static_cast<ptrdiff_t>(dst_at + bytes)));
      CHECK_TRUE(src == src_before);
    }
    Add(dtype, dst.data() + dst_at, src.data() + src_at, bytes);
    CHECK_TRUE(Same(dtype, dst.data() + dst_at, expected.data() + dst_at, bytes));
  }
}

TEST(integers_wrap_around) {
  int32_t a[] = {INT32_MAX, INT32_MIN, -1};
  const int32_t b[] = {1, -1, 1};
  Add(DType::kInt32, a, b, sizeof(a));
  CHECK_EQ(a[0], INT32_MIN);
  CHECK_EQ(a[1], INT32_MAX);
  CHECK_EQ(a[2], 0);
}

TEST(nothing_is_added_to_nothing) {
  for (const DType dtype : kAll) {
    for (const std::string& set : Sets()) CHECK_TRUE(AddWith(set, dtype, nullptr, nullptr, 0));
  }
}

TEST(an_unknown_instruction_set_does_nothing) {
  float a = 1;
  const float b = 2;
  CHECK_FALSE(AddWith("mmx", DType::kFloat32, &a, &b, sizeof(a)));
  CHECK_EQ(a, 1.0F);
}
