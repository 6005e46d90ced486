#include "worker/plain_memory.h"

#include <algorithm>
#include <string>
#include <utility>

namespace mercury {
namespace {

// What an operation of such a kind is given, against what it takes.
Status Check(const Tensor& tensor, const char* verb, bool used, const Memory& memory) {
  const std::string name = "tensor '" + tensor.traits.name + "'";
  if (used != (memory.data != nullptr)) {
    return Status::InvalidArgument(name + ": an operation that " + verb +
                                   (used ? " memory was given none" : " no memory was given some"));
  }
  if (used && memory.bytes != tensor.traits.bytes()) {
    return Status::InvalidArgument(name + " has " + std::to_string(tensor.traits.bytes()) +
                                   " bytes, but the memory that is given has " +
                                   std::to_string(memory.bytes));
  }
  return Status::Ok();
}

Status NewOperation(Worker* worker, const std::shared_ptr<Tensor>& tensor, Operation::Kind kind,
                    const Memory& src, const Memory& dst, int32_t priority,
                    std::shared_ptr<Operation>* op) {
  // Known already: it need not be submitted to be told. A first value waits for nobody.
  if (kind != Operation::Kind::kFirstValue && tensor->gate != nullptr) {
    const Status refusal = tensor->gate->refusal();
    if (!refusal.ok()) return refusal;
  }
  // First: a tensor remembers how its last operation went.
  Status status = Check(*tensor, "reads", Operation::Reads(kind), src);
  if (status.ok()) status = Check(*tensor, "writes", Operation::Writes(kind), dst);
  if (!status.ok()) return status;
  *op = worker->NewOperation(kind, tensor, priority);
  (*op)->src = static_cast<const char*>(src.data);
  (*op)->dst = static_cast<char*>(dst.data);
  return status;
}

}  // namespace

MemoryWork::MemoryWork(Operation* op) : ticket_(op) {
  op->keep = std::make_shared<char>();
  in_use_ = op->keep;
}

void MemoryWork::Ready(uint64_t bytes) {
  const std::shared_ptr<Operation> op = op_.lock();
  if (op == nullptr) return;  // it is over
  const TensorTraits& traits = op->tensor->traits;
  const bool whole = bytes >= traits.bytes();
  op->ready = whole ? Operation::kWhole : bytes / ElementBytes(traits.dtype);
  if (held_ == nullptr) {
    worker_->More(op);
  } else if (whole) {
    worker_->Submit(std::move(held_));
  }
}

Status SubmitMemory(Worker* worker, const std::shared_ptr<Tensor>& tensor, Operation::Kind kind,
                    const Memory& src, const Memory& dst, int32_t priority,
                    std::unique_ptr<MemoryWork>* work) {
  std::shared_ptr<Operation> op;
  const Status status = NewOperation(worker, tensor, kind, src, dst, priority, &op);
  if (!status.ok()) return status;
  *work = std::make_unique<MemoryWork>(op.get());
  worker->Submit(std::move(op));
  return status;
}

Status SubmitChunks(Worker* worker, const std::shared_ptr<Tensor>& tensor, const Memory& memory,
                    int32_t priority, const Chunks& chunks, std::unique_ptr<MemoryWork>* work) {
  std::shared_ptr<Operation> op;
  const Status status =
      NewOperation(worker, tensor, Operation::Kind::kSum, memory, memory, priority, &op);
  if (!status.ok()) return status;
  auto made = std::make_unique<MemoryWork>(op.get());
  const TensorTraits& traits = tensor->traits;
  const uint64_t elements = std::max<uint64_t>(chunks.bytes / ElementBytes(traits.dtype), 1);
  auto arrivals = std::make_shared<Arrivals>(traits.elements(), elements, chunks.queue, chunks.sum);
  op->arrived = [arrivals](uint64_t begin, uint64_t count) { arrivals->Arrived(begin, count); };
  const bool told = worker->TakesChunks();
  op->done = [arrivals, told, all = traits.elements(),
              done = std::move(op->done)](const Status& how) {
    done(how);
    if (how.ok() && !told) arrivals->Arrived(0, all);
    arrivals->End(how.ok());
  };
  op->ready = 0;
  made->worker_ = worker;
  made->op_ = op;
  if (told) {
    worker->Submit(std::move(op));
  } else {
    op->arrived = nullptr;
    made->held_ = std::move(op);
  }
  *work = std::move(made);
  return status;
}

}  // namespace mercury
