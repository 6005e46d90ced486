#include "worker/plain_memory.h"

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

}  // namespace

MemoryWork::MemoryWork(Operation* op) : ticket_(op) {
  op->keep = std::make_shared<char>();
  in_use_ = op->keep;
}

Status SubmitMemory(Worker* worker, const std::shared_ptr<Tensor>& tensor, Operation::Kind kind,
                    const Memory& src, const Memory& dst, int32_t priority,
                    std::unique_ptr<MemoryWork>* work) {
  // Known already: it need not be submitted to be told. A first value waits for nobody.
  if (kind != Operation::Kind::kFirstValue && tensor->gate != nullptr) {
    const Status refusal = tensor->gate->refusal();
    if (!refusal.ok()) return refusal;
  }
  // First: a tensor remembers how its last operation went.
  Status status = Check(*tensor, "reads", Operation::Reads(kind), src);
  if (status.ok()) status = Check(*tensor, "writes", Operation::Writes(kind), dst);
  if (!status.ok()) return status;
  std::shared_ptr<Operation> op = worker->NewOperation(kind, tensor, priority);
  op->src = static_cast<const char*>(src.data);
  op->dst = static_cast<char*>(dst.data);
  *work = std::make_unique<MemoryWork>(op.get());
  worker->Submit(std::move(op));
  return Status::Ok();
}

}  // namespace mercury
