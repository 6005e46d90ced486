#include "messages/classic_value.h"

#include <cstring>
#include <memory>

#include "sums/sparse_sum.h"

namespace mercury {

Status TakeValue(const ps::SArray<char>& payload, const Piece& piece, size_t i, Operation* op) {
  if (op->kind == Operation::Kind::kRows) {
    const uint32_t row_bytes = op->rows.row_bytes;
    const uint64_t end = piece.offset + piece.bytes;
    const SparseSum set(op->tensor->traits.dtype, row_bytes,
                        static_cast<int64_t>(piece.offset / row_bytes),
                        static_cast<int64_t>(end / row_bytes) - 1);
    size_t count;
    auto owner = std::make_shared<ps::SArray<char>>(payload);
    op->answers[i] = {owner, owner->data(), owner->size()};
    return set.Check(payload.data(), payload.size(), &count);
  }
  if (payload.size() != piece.bytes) {
    return Status::Corrupt(std::to_string(payload.size()) + " bytes instead of " +
                           std::to_string(piece.bytes));
  }
  if (piece.bytes != 0) std::memcpy(op->dst + piece.offset, payload.data(), piece.bytes);
  return Status::Ok();
}

}  // namespace mercury
