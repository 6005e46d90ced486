#include "transport/gate.h"

#include <sstream>
#include <utility>

namespace mercury {
namespace {

// Rows are their owner's only until Submit returns.
void KeepRows(Operation* op) {
  struct KeptRows {
    std::vector<int64_t> numbers;
    std::vector<char> values;
  };
  Operation::Rows& rows = op->rows;
  auto kept = std::make_shared<KeptRows>();
  kept->numbers.assign(rows.numbers, rows.numbers + rows.count);
  kept->values.assign(rows.values, rows.values + rows.count * rows.row_bytes);
  rows.numbers = kept->numbers.data();
  rows.values = kept->values.data();
  op->keep = std::move(kept);
}

}  // namespace

Manner Manner::Of(const Operation& op) {
  Manner manner;
  manner.rows = op.kind == Operation::Kind::kRows;
  manner.use = op.use;
  if (manner.rows || op.codec == nullptr) return manner;
  manner.codec = op.codec;
  if (op.codec->has_parameter) manner.parameter = op.parameter;
  return manner;
}

std::string Text(const Manner& manner) {
  std::ostringstream text;
  text << (manner.rows ? "row_sparse arrays" : "whole arrays");
  if (!manner.use.empty()) text << " for " << manner.use;
  if (manner.codec != nullptr) text << ", " << manner.codec->name << " compressed";
  if (manner.codec != nullptr && manner.codec->has_parameter) {
    text << " with a threshold of " << manner.parameter;
  }
  return text.str();
}

bool Gate::ClosesFor(const Manner& manner, uint64_t* number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!refusal_.ok() || (manners_ != 0 && manner == manner_)) return false;
  manner_ = manner;
  *number = ++manners_;
  ++undecided_;
  open_.store(false, std::memory_order_release);
  return true;
}

Gate::Agreed Gate::agreed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {manners_, manner_};
}

void Gate::OpenAs(const Agreed& agreed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  manners_ = agreed.manners;
  manner_ = agreed.last;
  undecided_ = 0;
  open_.store(true, std::memory_order_release);
}

void Gate::Take(std::shared_ptr<Operation> op) {
  if (open()) return pass_(std::move(op));
  Status refusal;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    refusal = refusal_;
    if (refusal.ok() && undecided_ != 0) {
      if (op->kind == Operation::Kind::kRows) KeepRows(op.get());
      return waiting_.push_back(std::move(op));
    }
  }
  if (!refusal.ok()) return op->Finish(refusal);
  pass_(std::move(op));
}

void Gate::Decide(const Status& status) {
  std::vector<std::shared_ptr<Operation>> waiting;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!refusal_.ok()) return;
    refusal_ = status;
    if (status.ok() && --undecided_ != 0) return;
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
