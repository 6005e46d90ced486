#include "packets/coded_operation.h"

#include <algorithm>

#include "sums/sparse_sum.h"

namespace mercury {
namespace {

Status MakeRoom(Operation* op) {
  const uint64_t elements = op->tensor->traits.elements();
  op->coded = Buffer::Allocate(op->codec->bytes(elements));
  if (op->coded.data == nullptr) return Status::Exhausted("no memory to compress a gradient");
  op->tensor->residual.resize(elements, 0.0F);
  return Status::Ok();
}

Status MakeSets(const Placement& placement, Operation* op) {
  const Operation::Rows& rows = op->rows;
  const uint64_t row_elements = rows.row_bytes / ElementBytes(op->tensor->traits.dtype);
  size_t begin = 0;
  for (uint64_t slot = 0; slot < placement.slots; ++slot) {
    const auto end_row =
        static_cast<int64_t>((placement.Begin(slot) + placement.Elements(slot)) / row_elements);
    const auto end = static_cast<size_t>(
        std::lower_bound(rows.numbers + begin, rows.numbers + rows.count, end_row) - rows.numbers);
    Buffer set = Buffer::Allocate(SetBytes(end - begin, rows.row_bytes));
    if (set.data == nullptr) return Status::Exhausted("no memory for a row-sparse push");
    EncodeSet(rows.numbers + begin, rows.values + begin * rows.row_bytes, end - begin,
              rows.row_bytes, set.data);
    op->sets.push_back(std::move(set));
    begin = end;
  }
  if (begin != rows.count) return Status::InvalidArgument("a row number beyond the tensor");
  op->answers.resize(placement.slots);
  return Status::Ok();
}

}  // namespace

Status CodeOperation(const Placement& placement, Operation* op) {
  switch (op->kind) {
    case Operation::Kind::kRows:
      return MakeSets(placement, op);
    case Operation::Kind::kSum:
    case Operation::Kind::kPush:
      return op->codec != nullptr ? MakeRoom(op) : Status::Ok();
    default:
      return Status::Ok();
  }
}

const char* CodeElements(const Operation& op, uint64_t first, uint64_t count) {
  const Codec& codec = *op.codec;
  char* coded = op.coded.data + codec.bytes(first);
  codec.encode(op.parameter, op.src + PlainCodec(codec.dtype).bytes(first),
               op.tensor->residual.data() + first, count, coded);
  return coded;
}

}  // namespace mercury
