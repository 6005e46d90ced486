// A set of rows as a server gets it: the input's first two bytes choose type and row size, the rest
// is the set, added twice to a sum that has a row already.
#include <cstring>
#include <vector>

#include "fuzz.h"
#include "sums/sparse_sum.h"

using namespace mercury;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const auto dtype = static_cast<DType>(data[0]);
  const size_t row_bytes = data[1];
  SparseSum sum(dtype, row_bytes);
  // Row 3 alone, all ones.
  std::vector<char> first(16 + row_bytes, 1);
  const int64_t head[] = {1, 3};
  std::memcpy(first.data(), head, sizeof(head));
  const bool valid_shape = sum.Add(first.data(), first.size()).ok();
  const std::vector<char> before = sum.Encode();

  // Memory that ends where the set ends, for the sanitizer.
  const std::vector<uint8_t> set(data + 2, data + size);
  const Status status = sum.Add(set.data(), set.size());
  FUZZ_REQUIRE(status.ok() == status.text().empty());
  if (!status.ok()) {
    FUZZ_REQUIRE(status.code() == (valid_shape ? Code::kCorrupt : Code::kInvalidArgument));
    FUZZ_REQUIRE(sum.Encode() == before);
    return 0;
  }
  int64_t count;
  std::memcpy(&count, set.data(), sizeof(count));
  FUZZ_REQUIRE(set.size() == 8 + static_cast<size_t>(count) * (8 + row_bytes));
  const size_t rows = sum.num_rows();
  FUZZ_REQUIRE(rows == static_cast<size_t>(count) || rows == static_cast<size_t>(count) + 1);
  FUZZ_REQUIRE(sum.Add(set.data(), set.size()).ok());
  FUZZ_REQUIRE(sum.num_rows() == rows);
  const std::vector<char> encoded = sum.Encode();
  SparseSum again(dtype, row_bytes);
  FUZZ_REQUIRE(again.Add(encoded.data(), encoded.size()).ok());
  FUZZ_REQUIRE(again.Encode() == encoded);
  return 0;
}
