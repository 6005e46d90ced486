#include "packets/slot_sum.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace mercury {

bool SlotSum::MakeRoom(const Codec& codec, uint64_t elements, PacketPool* pool, Block* block) {
  *block = pool->Get(std::max<uint64_t>(codec.bytes(elements), 1));
  return *block != nullptr;
}

bool SlotSum::Add(UnderWay* to, const Coded& coded, uint64_t at, uint64_t count,
                  uint64_t slot_elements, Block* part, PacketPool* pool) {
  const Codec& codec = *coded.codec;
  if (to->sum == nullptr && codec.is_sum() && at == 0) {
    to->sum = std::move(*part);
    to->filled = count;
    return true;
  }
  const Codec& sum = SumCodec(codec);
  if (to->sum == nullptr && !MakeRoom(sum, slot_elements, pool, &to->sum)) return false;
  MERCURY_CHECK(at <= to->filled && at + count <= slot_elements);
  // Another worker may be ahead or behind: what is there already is added to, the rest is new.
  const uint64_t known = std::min(count, to->filled - std::min(at, to->filled));
  char* into = to->sum.get() + sum.bytes(at);
  if (known != 0 && known != count) {
    codec.add(coded.parameter, part->get(), known, into, Into::kSum);
    codec.add(coded.parameter, part->get() + codec.bytes(known), count - known,
              into + sum.bytes(known), Into::kRoom);
  } else {
    codec.add(coded.parameter, part->get(), count, into, known == 0 ? Into::kRoom : Into::kSum);
  }
  to->filled = std::max(to->filled, at + count);
  return true;
}

bool SlotSum::GoesOn(size_t worker, const Coded& coded, uint64_t at) const {
  if (at == 0) return true;
  if (worker >= copies_.size() || copies_[worker].block == nullptr) return false;
  const Coded& before = copies_[worker].coded;
  return before.codec == coded.codec && before.parameter == coded.parameter;
}

void SlotSum::Keep(size_t worker, size_t workers, const Coded& coded, uint64_t at, uint64_t count,
                   Block* part) {
  copies_.resize(workers);
  Copy& copy = copies_[worker];
  copy.coded = coded;
  if (at == 0) {
    copy.block = std::move(*part);
  } else {
    std::memcpy(copy.block.get() + coded.codec->bytes(at), part->get(), coded.codec->bytes(count));
  }
}

bool SlotSum::Apply(size_t worker, uint64_t slot_elements, PacketPool* pool) {
  Copy copy = std::move(copies_[worker]);
  const Codec& codec = *copy.coded.codec;
  const Codec& plain = PlainCodec(codec.dtype);
  if (value_ == nullptr && codec.plain) {
    SetValue(std::move(copy.block), plain);
    return true;
  }
  const bool first = value_ == nullptr;
  Block into = value_;
  value_.reset();
  if (first || into.use_count() > 1) {  // it may be on its way to a worker: it stays as it is
    Block fresh;
    if (!MakeRoom(plain, slot_elements, pool, &fresh)) {
      value_ = std::move(into);
      return false;
    }
    if (!first) std::memcpy(fresh.get(), into.get(), plain.bytes(slot_elements));
    into = std::move(fresh);
  }
  MERCURY_CHECK(into.use_count() == 1);
  checks_of_ = nullptr;
  if (codec.plain) {
    mercury::Add(codec.dtype, into.get(), copy.block.get(), plain.bytes(slot_elements));
  } else {
    codec.add(copy.coded.parameter, copy.block.get(), slot_elements, into.get(),
              first ? Into::kRoom : Into::kSum);
  }
  SetValue(std::move(into), plain);
  return true;
}

void SlotSum::Begin(size_t worker) {
  Copy& copy = copies_[worker];
  SetValue(std::move(copy.block), *copy.coded.codec);
}

bool SlotSum::Answer(const Codec& back, uint64_t count, uint64_t slot_elements, PacketPool* pool) {
  if (back.is_sum()) {
    answer_ = under_way_.sum;
    return true;
  }
  if (answer_ == nullptr && !MakeRoom(back, slot_elements, pool, &answer_)) return false;
  const char* sum = under_way_.sum.get() + SumCodec(back).bytes(answered_);
  back.encode(0, sum, nullptr, count - answered_, answer_.get() + back.bytes(answered_));
  answered_ = count;
  return true;
}

// In the order of ranks.
bool SlotSum::AddKept(uint64_t slot_elements, PacketPool* pool) {
  for (Copy& copy : copies_) {
    if (copy.block == nullptr) continue;
    if (!Add(copy.coded, 0, slot_elements, slot_elements, &copy.block, pool)) return false;
    copy.block.reset();
  }
  return true;
}

bool SlotSum::Finish(const Codec& back, uint64_t slot_elements, PacketPool* pool) {
  const bool done =
      AddKept(slot_elements, pool) && Answer(back, slot_elements, slot_elements, pool);
  if (!done) return false;
  SetValue(std::exchange(answer_, nullptr), back);
  answered_ = 0;
  under_way_ = {};
  return true;
}

bool SlotSum::FinishWith(const char* first, const Codec& plain, uint64_t slot_elements,
                         size_t workers, PacketPool* pool, Block* copy) {
  if (copies_.empty()) {
    MERCURY_CHECK(under_way_.filled == slot_elements);
    plain.add(0, first, slot_elements, under_way_.sum.get(), Into::kSum);
  } else {
    // In the order of ranks, of which it is the first.
    Block own;
    if (!MakeRoom(plain, slot_elements, pool, &own)) return false;
    std::memcpy(own.get(), first, plain.bytes(slot_elements));
    Keep(0, workers, {&plain, 0}, 0, slot_elements, &own);
    if (!AddKept(slot_elements, pool)) return false;
  }
  *copy = Take().sum;
  return true;
}

Block SlotSum::PlainValue(uint64_t slot_elements, PacketPool* pool) const {
  Block plain;
  if (value_codec_->plain) return value_;
  if (MakeRoom(PlainCodec(value_codec_->dtype), slot_elements, pool, &plain)) {
    value_codec_->add(0, value_.get(), slot_elements, plain.get(), Into::kRoom);
  }
  return plain;
}

void SlotSum::SetValue(Block value, const Codec& codec) {
  // Another sum may get the room of the one that goes now.
  if (value_ != nullptr && checks_of_ == value_.get()) checks_of_ = nullptr;
  value_ = std::move(value);
  value_codec_ = &codec;
}

const std::shared_ptr<PayloadChecks>& SlotSum::Checks(const Block& sum) {
  if (checks_of_ != sum.get()) checks_ = std::make_shared<PayloadChecks>();
  checks_of_ = sum.get();
  return checks_;
}

}  // namespace mercury
