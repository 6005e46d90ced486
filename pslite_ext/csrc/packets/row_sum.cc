#include "packets/row_sum.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/little_endian.h"

namespace mercury {
namespace {

constexpr uint64_t kCountBytes = sizeof(int64_t);
constexpr uint64_t kSetBytesMax = uint64_t{1} << 31;  // of a worker, in one slot

Status NoMemory() { return Status::Exhausted("no memory for its rows"); }

}  // namespace

RowSum::RowSum(DType dtype, uint64_t row_bytes, int64_t first, int64_t last)
    : row_bytes_(row_bytes),
      first_(first),
      last_(last),
      sum_(dtype, static_cast<size_t>(row_bytes), first, last) {}

uint64_t RowSum::BytesMax() const {
  const auto rows = static_cast<uint64_t>(std::max<int64_t>(last_ - first_ + 1, 0));
  return kCountBytes + rows * (sizeof(int64_t) + row_bytes_);
}

Status RowSum::Begin(size_t worker, size_t workers, uint64_t at, uint32_t length, PacketPool* pool,
                     Block* block) {
  sets_.resize(workers);
  RowSet& set = sets_[worker];
  if (at != set.have || (at == 0 && length < kCountBytes) || length > BytesMax() - at ||
      (at != 0 && (length == 0 || at + length > set.bytes))) {
    return Status::Corrupt("a part of " + std::to_string(length) + " bytes at " +
                           std::to_string(at) + " of a set of rows, which does not fit");
  }
  if (at == 0) set.block = pool->Get(length);
  if (set.block == nullptr) return NoMemory();
  *block = set.block;
  return Status::Ok();
}

Status RowSum::End(size_t worker, uint64_t at, uint32_t length, const Block& block,
                   PacketPool* pool, bool* whole) {
  RowSet& set = sets_[worker];
  if (at != set.have || (at != 0 && block != set.block)) {
    return Status::Corrupt("the same of a set of rows on two links at once");
  }
  if (at == 0) {
    set.block = block;
    const auto count = Load<uint64_t>(reinterpret_cast<const uint8_t*>(set.block.get()));
    if (count > (BytesMax() - kCountBytes) / (sizeof(int64_t) + row_bytes_)) {
      return Status::Corrupt("a set of " + std::to_string(count) + " rows, more than there are");
    }
    set.bytes = kCountBytes + count * (sizeof(int64_t) + row_bytes_);
    if (set.bytes > kSetBytesMax) return NoMemory();
    if (length > set.bytes) return Status::Corrupt("a set of rows with more behind it");
    if (length < set.bytes) {  // now it is known how much room it takes
      set.block = pool->Get(set.bytes);
      if (set.block == nullptr) return NoMemory();
      std::memcpy(set.block.get(), block.get(), length);
    }
  }
  set.have += length;
  MERCURY_CHECK(set.have <= set.bytes && set.bytes <= BytesMax());
  *whole = set.have == set.bytes;
  return Status::Ok();
}

Status RowSum::Merge(size_t worker, bool deterministic) {
  RowSet& set = sets_[worker];
  MERCURY_CHECK(set.have == set.bytes);
  size_t count = 0;
  if (deterministic) return sum_.Check(set.block.get(), set.bytes, &count);
  const Status status = sum_.Add(set.block.get(), set.bytes);
  set.block.reset();
  return status;
}

Status RowSum::Finish(PacketPool* pool) {
  for (RowSet& set : sets_) {
    if (set.block != nullptr) {
      const Status status = sum_.Add(set.block.get(), set.bytes);
      if (!status.ok()) return status;
    }
    set = RowSet();
  }
  const std::vector<char> encoded = sum_.Encode();
  sum_.Clear();
  value_ = {pool->Get(encoded.size()), encoded.size(), encoded.size()};
  if (value_.block == nullptr) return NoMemory();
  std::memcpy(value_.block.get(), encoded.data(), encoded.size());
  return Status::Ok();
}

}  // namespace mercury
