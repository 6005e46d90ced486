#include "packets/coded_operation.h"

#include <algorithm>

#include "sums/sparse_sum.h"

namespace mercury {
namespace {

Status MakeSets(const Placement& placement, Operation* op) {
  const Operation::Rows& rows = op->rows;
  const uint64_t row_elements = rows.row_bytes / ElementBytes(op->tensor->traits.dtype);
  size_t begin = 0;
  for (uint64_t slot = 0; slot < placement.slots; ++slot) {
    const int64_t end_row = placement.Rows(slot, row_elements).end;
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
      if (op->codec != nullptr && op->codec->has_residual) {
        op->tensor->residual.resize(op->tensor->traits.elements(), 0.0F);
      }
      return Status::Ok();
    default:
      return Status::Ok();
  }
}

}  // namespace mercury
