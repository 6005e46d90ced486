// Sums of row-sparse tensors: sets of (row, values) merged by row.
//
// Wire form of a set of rows: [int64 count][int64 rows ascending, unique ...][row_bytes per row ...].
// Thread-safety: none (a server owns each sum from one thread). Ownership: the sum owns its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "status.h"
#include "sum_kernels.h"

namespace mercury {

class SparseSum {
 public:
  SparseSum(DType dtype, size_t row_bytes) : dtype_(dtype), row_bytes_(row_bytes) {}

  // Adds an encoded set; checks count, length and order before it touches anything.
  Status Add(const void* encoded, size_t bytes);
  // The sum so far, in wire form.
  std::vector<char> Encode() const;
  void Clear() { rows_.clear(); }
  size_t num_rows() const { return rows_.size(); }

 private:
  DType dtype_;
  size_t row_bytes_;
  std::map<int64_t, std::vector<char>> rows_;
};

}  // namespace mercury
