#include "transport/gate.h"

#include <utility>

namespace mercury {
namespace {

// Rows are their owner's only until Submit returns.
void KeepRows(Operation* op) {
  struct Rows {
    std::vector<int64_t> numbers;
    std::vector<char> values;
  };
  Operation::Rows& rows = op->rows;
  auto kept = std::make_shared<Rows>();
  kept->numbers.assign(rows.numbers, rows.numbers + rows.count);
  kept->values.assign(rows.values, rows.values + rows.count * rows.row_bytes);
  rows.numbers = kept->numbers.data();
  rows.values = kept->values.data();
  op->keep = std::move(kept);
}

}  // namespace

void Gate::Take(std::shared_ptr<Operation> op) {
  if (open()) return pass_(std::move(op));
  Status refusal;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!decided_) {
      if (op->kind == Operation::Kind::kRows) KeepRows(op.get());
      return waiting_.push_back(std::move(op));
    }
    refusal = refusal_;
  }
  if (!refusal.ok()) return op->Finish(refusal);
  pass_(std::move(op));
}

void Gate::Decide(const Status& status) {
  std::vector<std::shared_ptr<Operation>> waiting;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (decided_) return;
    decided_ = true;
    refusal_ = status;
    open_.store(status.ok(), std::memory_order_release);
    waiting.swap(waiting_);
  }
  for (auto& op : waiting) {
    if (status.ok()) {
      pass_(std::move(op));
    } else {
      op->Finish(status);
    }
  }
}

Status Gate::refusal() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return refusal_;
}

}  // namespace mercury
