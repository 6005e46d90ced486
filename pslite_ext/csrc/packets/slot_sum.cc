#include "packets/slot_sum.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/crc32c.h"

namespace mercury {
namespace {

// Parts whose check is remembered. Workers whose links are slow get a sum in more of them; then a
// check costs nothing beside the link.
constexpr size_t kPartsMax = 16;

}  // namespace

bool SlotSum::Begins(size_t at, bool deterministic) const {
  return at == 0 && (deterministic || filled_ == 0);
}

void SlotSum::Add(DType dtype, size_t at, size_t length, Block* piece) {
  if (filled_ == 0 && sum_ == nullptr && at == 0) {
    sum_ = std::move(*piece);
    filled_ = static_cast<uint32_t>(length);
    return;
  }
  // Another worker may be ahead or behind: what is there already is added to, the rest is new.
  const size_t known = std::min(length, filled_ - std::min<size_t>(at, filled_));
  mercury::Add(dtype, sum_.get() + at, piece->get(), known);
  std::memcpy(sum_.get() + at + known, piece->get() + known, length - known);
  filled_ = std::max(filled_, static_cast<uint32_t>(at + length));
}

void SlotSum::Keep(size_t worker, size_t workers, size_t at, size_t length, Block* piece) {
  copies_.resize(workers);
  Block& copy = copies_[worker];
  if (copy == nullptr) {
    copy = std::move(*piece);
  } else {
    std::memcpy(copy.get() + at, piece->get(), length);
  }
}

void SlotSum::Finish(DType dtype, size_t slot_bytes) {
  if (!copies_.empty()) {
    sum_ = std::move(copies_[0]);
    for (size_t i = 1; i < copies_.size(); ++i) {
      mercury::Add(dtype, sum_.get(), copies_[i].get(), slot_bytes);
    }
    copies_.clear();
  }
  // Another sum may get the room of the one that goes now.
  if (last_ != nullptr && parts_of_ == last_.get()) parts_of_ = nullptr;
  last_ = std::move(sum_);
  sum_.reset();
  filled_ = 0;
}

uint32_t SlotSum::Crc(const Block& sum, uint32_t at, uint32_t length) {
  if (parts_of_ != sum.get()) parts_.clear();
  parts_of_ = sum.get();
  for (const Part& part : parts_) {
    if (part.at == at && part.length == length) return part.crc;
  }
  const uint32_t crc = Crc32c(0, sum.get() + at, length);
  if (parts_.size() < kPartsMax) parts_.push_back({at, length, crc});
  return crc;
}

}  // namespace mercury
