#include "sums/sparse_sum.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <string>

#include "base/check.h"

namespace mercury {
namespace {

constexpr size_t kCountBytes = sizeof(int64_t);

// Wire form is aligned to nothing.
int64_t GetInt64(const char* in) {
  int64_t value;
  std::memcpy(&value, in, sizeof(value));
  return value;
}

int64_t GetRow(const char* rows, size_t index) { return GetInt64(rows + index * sizeof(int64_t)); }

}  // namespace

Status SparseSum::Check(const void* set, size_t bytes, size_t* count) const {
  const auto* encoded = static_cast<const char*>(set);
  const size_t element_bytes = ElementBytes(dtype_);
  if (element_bytes == 0 || row_bytes_ == 0 || row_bytes_ % element_bytes != 0) {
    return Status::InvalidArgument("rows of " + std::to_string(row_bytes_) + " bytes of " +
                                   Name(dtype_));
  }
  if (bytes < kCountBytes) return Status::Corrupt("a set of rows without its count");
  const int64_t claimed = GetInt64(encoded);
  const size_t rest = bytes - kCountBytes;
  // By division: a product with the claimed count could overflow. bytes is 8 + rest, so 8 +
  // row_bytes_ cannot either where it is looked at.
  const auto rows = static_cast<uint64_t>(claimed);
  const bool fits = claimed == 0 ? rest == 0
                                 : claimed > 0 && row_bytes_ <= rest && rest % rows == 0 &&
                                       rest / rows == sizeof(int64_t) + row_bytes_;
  if (!fits) {
    return Status::Corrupt("a set of " + std::to_string(claimed) + " rows of " +
                           std::to_string(row_bytes_) + " bytes in " + std::to_string(bytes) +
                           " bytes");
  }
  *count = static_cast<size_t>(rows);
  int64_t last = -1;
  for (size_t i = 0; i < *count; ++i) {
    const int64_t row = GetRow(encoded + kCountBytes, i);
    if (row <= last) {
      return Status::Corrupt("row " + std::to_string(row) + " after row " + std::to_string(last));
    }
    last = row;
  }
  if (*count != 0 && (GetRow(encoded + kCountBytes, 0) < first_row_ || last > last_row_)) {
    return Status::Corrupt("rows " + std::to_string(GetRow(encoded + kCountBytes, 0)) + " to " +
                           std::to_string(last) + " where there are only " +
                           std::to_string(first_row_) + " to " + std::to_string(last_row_));
  }
  return Status::Ok();
}

// How many of these, ascending, it has not yet.
size_t SparseSum::NewRows(const char* rows, size_t count) const {
  size_t fresh = 0;
  for (size_t i = 0, j = 0; j < count; ++j) {
    const int64_t row = GetRow(rows, j);
    while (i < rows_.size() && rows_[i] < row) ++i;
    fresh += i == rows_.size() || rows_[i] != row;
  }
  return fresh;
}

Status SparseSum::Growth(const void* encoded, size_t bytes, size_t* growth) const {
  size_t count = 0;
  Status status = Check(encoded, bytes, &count);
  if (!status.ok()) return status;
  const size_t fresh = NewRows(static_cast<const char*>(encoded) + kCountBytes, count);
  *growth = fresh * (sizeof(int64_t) + sum_row_bytes());
  return status;
}

bool SparseSum::Grow(size_t count) {
  const size_t before = rows_.size();
  try {
    rows_.resize(before + count);
    values_.resize(rows_.size() * sum_row_bytes());
    return true;
  } catch (const std::exception&) {  // bad_alloc or length_error
    rows_.resize(before);
    return false;
  }
}

Status SparseSum::Add(const void* encoded, size_t bytes) {
  const auto* in = static_cast<const char*>(encoded);
  size_t count = 0;
  Status status = Check(in, bytes, &count);
  if (!status.ok()) return status;
  const char* in_rows = in + kCountBytes;
  const char* in_values = in_rows + count * sizeof(int64_t);

  const size_t added = NewRows(in_rows, count);
  size_t ours = rows_.size();
  if (!Grow(added)) {
    return Status::Exhausted("no memory for " + std::to_string(added) + " more rows of " +
                             std::to_string(row_bytes_) + " bytes");
  }
  const size_t sum_bytes = sum_row_bytes();
  // From the back, so that no row of ours is overwritten before it has moved to its new place.
  size_t to = rows_.size();
  for (size_t theirs = count; theirs != 0;) {
    const int64_t row = GetRow(in_rows, theirs - 1);
    --to;
    char* value = values_.data() + to * sum_bytes;
    const char* their_value = in_values + (theirs - 1) * row_bytes_;
    if (ours != 0 && rows_[ours - 1] >= row) {
      --ours;
      rows_[to] = rows_[ours];
      if (to != ours) std::memcpy(value, values_.data() + ours * sum_bytes, sum_bytes);
      if (rows_[to] != row) continue;
      codec_->add(0, their_value, row_elements(), value, Into::kSum);
    } else {
      rows_[to] = row;
      codec_->add(0, their_value, row_elements(), value, Into::kRoom);
    }
    --theirs;
  }
  MERCURY_CHECK(IsASet());
  return Status::Ok();
}

bool SparseSum::IsASet() const {
  const auto falls = std::adjacent_find(rows_.begin(), rows_.end(), std::greater_equal<int64_t>());
  const bool inside = rows_.empty() || (rows_.front() >= first_row_ && rows_.back() <= last_row_);
  return falls == rows_.end() && inside && values_.size() == rows_.size() * sum_row_bytes();
}

void EncodeSet(const int64_t* numbers, const char* values, size_t rows, size_t row_bytes,
               char* encoded) {
  const auto count = static_cast<int64_t>(rows);
  std::memcpy(encoded, &count, kCountBytes);
  if (rows == 0) return;
  std::memcpy(encoded + kCountBytes, numbers, rows * sizeof(int64_t));
  std::memcpy(encoded + kCountBytes + rows * sizeof(int64_t), values, rows * row_bytes);
}

std::vector<char> SparseSum::Encode() const {
  std::vector<char> encoded(SetBytes(rows_.size(), row_bytes_));
  if (codec_->is_sum()) {
    EncodeSet(rows_.data(), values_.data(), rows_.size(), row_bytes_, encoded.data());
    return encoded;
  }
  std::vector<char> rounded(rows_.size() * row_bytes_);
  codec_->encode(0, values_.data(), nullptr, rows_.size() * row_elements(), rounded.data());
  EncodeSet(rows_.data(), rounded.data(), rows_.size(), row_bytes_, encoded.data());
  return encoded;
}

void SparseSum::Clear() {
  rows_.clear();
  values_.clear();
}

}  // namespace mercury
