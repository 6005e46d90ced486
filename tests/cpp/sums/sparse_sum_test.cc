#include "sums/sparse_sum.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "harness.h"

using namespace mercury;
using mercury::testing::Random;

namespace {

constexpr DType kAll[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kUint8,
                          DType::kInt32,   DType::kInt8,    DType::kInt64,   DType::kBfloat16};

using Rows = std::map<int64_t, std::vector<char>>;

std::vector<char> Encoded(int64_t count, const std::vector<int64_t>& rows,
                          const std::vector<char>& values) {
  std::string out(reinterpret_cast<const char*>(&count), sizeof(count));
  out.append(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(int64_t));
  out.append(values.data(), values.size());
  return {out.begin(), out.end()};
}

std::vector<char> Encoded(const Rows& set) {
  std::vector<int64_t> rows;
  std::vector<char> values;
  for (const auto& [row, value] : set) {
    rows.push_back(row);
    values.insert(values.end(), value.begin(), value.end());
  }
  return Encoded(static_cast<int64_t>(rows.size()), rows, values);
}

// A set with the same float in each row.
std::vector<char> Floats(const std::vector<int64_t>& rows, float value) {
  Rows set;
  for (const int64_t row : rows) {
    set[row].resize(sizeof(value));
    std::memcpy(set[row].data(), &value, sizeof(value));
  }
  return Encoded(set);
}

Rows SomeRows(Random* random, size_t row_bytes, size_t count_max, uint64_t row_end) {
  Rows set;
  for (size_t n = random->Below(count_max + 1); n != 0; --n) {
    auto& value = set[static_cast<int64_t>(random->Below(row_end))];
    value.resize(row_bytes);
    for (char& byte : value) byte = static_cast<char>(random->Below(60));  // no NaN in any type
  }
  return set;
}

Status AddTo(SparseSum* sum, const std::vector<char>& encoded) {
  // An exact copy on the heap at an odd address: the sanitizer sees any byte read too many.
  std::vector<char> odd(encoded.size() + 1);
  if (!encoded.empty()) std::memcpy(odd.data() + 1, encoded.data(), encoded.size());
  size_t growth = 0;
  const size_t before = sum->bytes();
  const Status foretold = sum->Growth(odd.data() + 1, encoded.size(), &growth);
  Status status = sum->Add(odd.data() + 1, encoded.size());
  CHECK_TRUE(foretold.code() == status.code());
  CHECK_EQ(sum->bytes(), before + growth);
  return status;
}

Status AddTo(SparseSum&& sum, const std::vector<char>& encoded) { return AddTo(&sum, encoded); }

}  // namespace

TEST(rows_beyond_the_range_are_refused) {
  SparseSum sum(DType::kFloat32, sizeof(float), 10, 19);
  CHECK_OK(AddTo(&sum, Floats({10, 15, 19}, 1)));
  CHECK_OK(AddTo(&sum, Floats({}, 1)));
  for (const std::vector<int64_t>& rows :
       {std::vector<int64_t>{9}, {9, 15}, {10, 20}, {20}, {int64_t{1} << 62}}) {
    CHECK_STATUS(Code::kCorrupt, AddTo(&sum, Floats(rows, 1)));
  }
  CHECK_EQ(sum.num_rows(), 3U);
  size_t count = 0;
  const std::vector<char> set = Floats({11, 12}, 1);
  CHECK_OK(sum.Check(set.data(), set.size(), &count));
  CHECK_EQ(count, 2U);
  CHECK_STATUS(Code::kCorrupt, sum.Check(set.data(), set.size() - 1, &count));
}

TEST(rows_are_merged) {
  SparseSum sum(DType::kFloat32, 4);
  CHECK_OK(AddTo(&sum, Floats({1, 5, 9}, 1)));
  CHECK_OK(AddTo(&sum, Floats({0, 5, 10}, 2)));
  CHECK_EQ(sum.num_rows(), 5);
  const float expected[] = {2, 1, 3, 1, 2};
  std::vector<char> values(sizeof(expected));
  std::memcpy(values.data(), expected, sizeof(expected));
  CHECK_TRUE(sum.Encode() == Encoded(5, {0, 1, 5, 9, 10}, values));
}

TEST(an_empty_set_changes_nothing) {
  SparseSum sum(DType::kFloat32, 4);
  CHECK_OK(AddTo(&sum, Encoded(Rows())));
  CHECK_TRUE(sum.Encode() == Encoded(Rows()));
  CHECK_OK(AddTo(&sum, Floats({3}, 1)));
  CHECK_OK(AddTo(&sum, Encoded(Rows())));
  CHECK_TRUE(sum.Encode() == Floats({3}, 1));
}

TEST(clear_starts_again) {
  SparseSum sum(DType::kFloat32, 4);
  CHECK_OK(AddTo(&sum, Floats({3, 4}, 1)));
  sum.Clear();
  CHECK_EQ(sum.num_rows(), 0);
  CHECK_OK(AddTo(&sum, Floats({4}, 2)));
  CHECK_TRUE(sum.Encode() == Floats({4}, 2));
}

TEST(as_a_map_of_rows) {
  Random random;
  for (int run = 0; run < 400; ++run) {
    const DType dtype = kAll[random.Below(std::size(kAll))];
    const size_t row_bytes = ElementBytes(dtype) * static_cast<size_t>(random.Between(1, 20));
    const uint64_t row_end = random.OneIn(3) ? uint64_t{1} << 62 : 1 + random.Below(60);
    const Codec& codec = PlainCodec(dtype);
    const uint64_t elements = row_bytes / ElementBytes(dtype);
    SparseSum sum(dtype, row_bytes);
    Rows reference;  // as sums are kept
    for (int worker = 0; worker < 5; ++worker) {
      const Rows set = SomeRows(&random, row_bytes, 30, row_end);
      for (const auto& [row, value] : set) {
        const auto [at, is_new] = reference.try_emplace(row);
        at->second.resize(elements * ElementBytes(codec.sum));
        codec.add(0, value.data(), elements, at->second.data(), is_new ? Into::kRoom : Into::kSum);
      }
      Rows rounded = reference;
      for (auto& [row, value] : rounded) {
        if (codec.is_sum()) continue;
        value.resize(row_bytes);
        codec.encode(0, reference.at(row).data(), nullptr, elements, value.data());
      }
      REQUIRE_OK(AddTo(&sum, Encoded(set)));
      REQUIRE_EQ(sum.num_rows(), reference.size());
      REQUIRE_TRUE(sum.Encode() == Encoded(rounded));
    }
  }
}

TEST(halves_are_rounded_once) {
  SparseSum sum(DType::kFloat16, 2);
  for (const uint16_t half : {0x6800, 0x3c00, 0x3c00}) {  // 2048, 1, 1
    std::vector<char> value(2);
    std::memcpy(value.data(), &half, 2);
    CHECK_OK(AddTo(&sum, Encoded(Rows{{7, value}})));
  }
  const std::vector<char> got = sum.Encode();
  uint16_t half = 0;
  std::memcpy(&half, got.data() + got.size() - 2, 2);
  CHECK_EQ(half, 0x6801);  // 2050; rounded each time, it would be 2048
}

TEST(bad_rows_are_refused) {
  const std::vector<char> values(8);
  SparseSum sum(DType::kFloat32, 4);
  CHECK_OK(AddTo(&sum, Floats({7}, 1)));
  CHECK_STATUS(Code::kCorrupt, AddTo(&sum, Encoded(2, {-1, 4}, values)));
  CHECK_STATUS(Code::kCorrupt, AddTo(&sum, Encoded(2, {INT64_MIN, 4}, values)));
  CHECK_STATUS(Code::kCorrupt, AddTo(&sum, Encoded(2, {5, 4}, values)));
  CHECK_STATUS(Code::kCorrupt, AddTo(&sum, Encoded(2, {4, 4}, values)));
  CHECK_STATUS(Code::kCorrupt, AddTo(&sum, Encoded(2, {4, -4}, values)));
  CHECK_TRUE(sum.Encode() == Floats({7}, 1));
  CHECK_OK(AddTo(&sum, Encoded(2, {0, INT64_MAX}, values)));
}

TEST(every_other_length_is_refused) {
  const std::vector<char> good = Floats({1, 2, 3}, 1);
  SparseSum sum(DType::kFloat32, 4);
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    const std::vector<char> part(good.begin(), good.begin() + static_cast<ptrdiff_t>(bytes));
    CHECK_STATUS(Code::kCorrupt, AddTo(&sum, part));
  }
  std::vector<char> longer = good;
  for (int more = 0; more < 30; ++more) {
    longer.push_back(0);
    CHECK_STATUS(Code::kCorrupt, AddTo(&sum, longer));
  }
  CHECK_STATUS(Code::kCorrupt, sum.Add(nullptr, 0));
  CHECK_EQ(sum.num_rows(), 0);
}

// Counts whose product with the size of a row wraps around to the length that is there.
TEST(counts_that_overflow_are_refused) {
  for (const int64_t count : {int64_t{1} << 60, int64_t{1} << 61, int64_t{1} << 62, INT64_MAX,
                              INT64_MIN, int64_t{-1}, (int64_t{1} << 61) + 1}) {
    for (const size_t row_bytes : {4, 8, 24, 56, 120}) {
      SparseSum sum(DType::kFloat32, row_bytes);
      CHECK_STATUS(Code::kCorrupt, AddTo(&sum, Encoded(count, {}, {})));
      CHECK_STATUS(Code::kCorrupt, AddTo(&sum, Encoded(count, {0}, std::vector<char>(row_bytes))));
    }
  }
  // 8 + row_bytes wraps around to 4, or to 0.
  for (const size_t wrapped : {SIZE_MAX - 3, SIZE_MAX - 7}) {
    for (const int64_t count : {0, 1, 2, 4}) {
      CHECK_STATUS(count == 0 ? Code::kOk : Code::kCorrupt,
                   AddTo(SparseSum(DType::kFloat32, wrapped),
                         Encoded(count, {}, std::vector<char>(static_cast<size_t>(count) * 4))));
    }
  }
}

TEST(rows_are_whole_numbers_of_elements) {
  const std::vector<char> empty = Encoded(Rows());
  CHECK_STATUS(Code::kInvalidArgument, AddTo(SparseSum(DType::kFloat32, 0), empty));
  CHECK_STATUS(Code::kInvalidArgument, AddTo(SparseSum(DType::kFloat32, 6), empty));
  CHECK_STATUS(Code::kInvalidArgument, AddTo(SparseSum(static_cast<DType>(99), 4), empty));
}

// Whatever arrives is either refused, and then the sum is as before, or a set like any other.
TEST(mutations_are_refused_or_understood) {
  Random random;
  for (int run = 0; run < 20000; ++run) {
    const DType dtype = kAll[random.Below(std::size(kAll))];
    const size_t row_bytes = ElementBytes(dtype) * static_cast<size_t>(random.Between(1, 4));
    SparseSum sum(dtype, row_bytes);
    REQUIRE_OK(AddTo(&sum, Encoded(SomeRows(&random, row_bytes, 6, 20))));
    const std::vector<char> before = sum.Encode();
    std::vector<char> input = Encoded(SomeRows(&random, row_bytes, 6, 20));
    for (uint64_t n = random.Below(4); n != 0; --n) {
      if (random.OneIn(5)) {
        input.resize(random.Below(input.size() + 20));
      } else if (!input.empty()) {
        input[random.Below(random.OneIn(2) ? std::min<size_t>(input.size(), 24) : input.size())] =
            static_cast<char>(random());
      }
    }
    const Status status = AddTo(&sum, input);
    if (!status.ok()) {
      CHECK_STATUS(Code::kCorrupt, status);
      CHECK_TRUE(sum.Encode() == before);
    } else {
      SparseSum again(dtype, row_bytes);
      CHECK_OK(AddTo(&again, sum.Encode()));
      CHECK_TRUE(again.Encode() == sum.Encode());
    }
  }
}
