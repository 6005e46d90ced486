// Sums of row-sparse tensors: sets of (row, values) merged by row. As other sums, those of 16-bit
// floats are made in float32, and rounded once, when they are encoded.
//
// Wire form of a set of rows: [int64 count][int64 rows ascending, unique ...][row_bytes per row
// ...].
//
// Thread-safety: none (a server owns each sum from one thread). Ownership: the sum owns its rows.
// Invariants: rows are ascending and unique; a set that is refused changes nothing and allocates
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/status.h"
#include "sums/codec.h"

namespace mercury {

constexpr size_t SetBytes(size_t rows, size_t row_bytes) {
  return sizeof(int64_t) + rows * (sizeof(int64_t) + row_bytes);
}
// Writes a set in wire form; `numbers` ascend.
void EncodeSet(const int64_t* numbers, const char* values, size_t rows, size_t row_bytes,
               char* encoded);

class SparseSum {
 public:
  // `first_row`, `last_row`: what rows there can be.
  SparseSum(DType dtype, size_t row_bytes, int64_t first_row = 0,
            int64_t last_row = std::numeric_limits<int64_t>::max())
      : dtype_(dtype),
        codec_(&PlainCodec(dtype)),
        row_bytes_(row_bytes),
        first_row_(first_row),
        last_row_(last_row) {}

  // Adds an encoded set; checks count, length, order and range before it touches anything.
  // kCorrupt: not a set; kInvalidArgument: a row is no whole number of elements; kExhausted: no
  // memory.
  Status Add(const void* encoded, size_t bytes);
  // The check alone, and how many rows there are.
  Status Check(const void* encoded, size_t bytes, size_t* count) const;
  // The check alone, and how many bytes more the sum would have with the set.
  Status Growth(const void* encoded, size_t bytes, size_t* growth) const;
  // The sum so far, in wire form.
  std::vector<char> Encode() const;
  void Clear();
  size_t num_rows() const { return rows_.size(); }
  size_t bytes() const { return rows_.size() * sizeof(int64_t) + values_.size(); }

 private:
  size_t NewRows(const char* rows, size_t count) const;
  bool Grow(size_t count);
  bool IsASet() const;
  uint64_t row_elements() const { return row_bytes_ / ElementBytes(dtype_); }
  size_t sum_row_bytes() const { return row_elements() * ElementBytes(codec_->sum); }

  DType dtype_;
  const Codec* codec_;
  size_t row_bytes_;
  int64_t first_row_, last_row_;
  std::vector<int64_t> rows_;
  std::vector<char> values_;  // sum_row_bytes() for each of rows_
};

}  // namespace mercury
