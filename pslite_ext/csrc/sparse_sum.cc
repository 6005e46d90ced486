#include "sparse_sum.h"

#include <cstring>
#include <utility>

namespace mercury {

Status SparseSum::Add(const void* encoded, size_t bytes) {
  const auto* in = static_cast<const char*>(encoded);
  int64_t count = 0;
  if (bytes < sizeof(count)) return Status::Corrupt("a set of rows shorter than its count");
  std::memcpy(&count, in, sizeof(count));
  const size_t per_row = sizeof(int64_t) + row_bytes_;
  const size_t room = bytes - sizeof(count);
  if (count < 0 || static_cast<uint64_t>(count) > room / per_row ||
      static_cast<size_t>(count) * per_row != room) {
    return Status::Corrupt("a set of " + std::to_string(count) + " rows in " +
                           std::to_string(bytes) + " bytes");
  }
  const auto rows = static_cast<size_t>(count);
  const auto row_number = [in](size_t i) {
    int64_t row;
    std::memcpy(&row, in + sizeof(int64_t) * (1 + i), sizeof(row));
    return row;
  };
  for (size_t i = 0; i < rows; ++i) {
    if (row_number(i) < 0 || (i != 0 && row_number(i) <= row_number(i - 1))) {
      return Status::Corrupt("row numbers that do not ascend");
    }
  }
  const char* values = in + sizeof(int64_t) * (1 + rows);
  for (size_t i = 0; i < rows; ++i) {
    const char* value = values + i * row_bytes_;
    const auto hint = rows_.lower_bound(row_number(i));
    if (hint != rows_.end() && hint->first == row_number(i)) {
      mercury::Add(dtype_, hint->second.data(), value, row_bytes_);
    } else {
      rows_.emplace_hint(hint, row_number(i), std::vector<char>(value, value + row_bytes_));
    }
  }
  return Status::Ok();
}

std::vector<char> SparseSum::Encode() const {
  const auto count = static_cast<int64_t>(rows_.size());
  std::vector<char> out(sizeof(count) + rows_.size() * (sizeof(int64_t) + row_bytes_));
  std::memcpy(out.data(), &count, sizeof(count));
  char* numbers = out.data() + sizeof(count);
  char* values = numbers + rows_.size() * sizeof(int64_t);
  for (const auto& [row, value] : rows_) {
    std::memcpy(numbers, &row, sizeof(row));
    std::memcpy(values, value.data(), row_bytes_);
    numbers += sizeof(row);
    values += row_bytes_;
  }
  return out;
}

}  // namespace mercury
