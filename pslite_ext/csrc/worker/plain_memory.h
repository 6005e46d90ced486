// Work on memory that no engine orders: NumPy's arrays, PyTorch's tensors. It is submitted at once,
// and whoever submitted it asks its ticket when it is over.
//
// Thread-safety: SubmitMemory from the thread that orders the tensor's operations; the work's
// functions from any. Ownership: the memory is the caller's, who keeps it as it is until `released`
// says so. That may be later than the end: when a job fails, a lane may still be at work on it. The
// work itself may be dropped at any time. Invariant: what is refused was not begun.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "transport/operation.h"
#include "worker/ticket.h"
#include "worker/worker.h"

namespace mercury {

struct Memory {
  void* data = nullptr;
  size_t bytes = 0;
};

class MemoryWork {
 public:
  // To be made before the operation is submitted.
  explicit MemoryWork(Operation* op);
  const Ticket& ticket() const { return ticket_; }
  // Whether nobody reads or writes the memory any more.
  bool released() const { return in_use_.expired(); }

 private:
  std::weak_ptr<void> in_use_;
  Ticket ticket_;
};

// `src` is what the kind reads, `dst` what it writes, which may be the same memory; data is null
// where it reads or writes nothing. kInvalidArgument if they are not the tensor's size, or if all
// workers are known not to have the same tensor.
Status SubmitMemory(Worker* worker, const std::shared_ptr<Tensor>& tensor, Operation::Kind kind,
                    const Memory& src, const Memory& dst, int32_t priority,
                    std::unique_ptr<MemoryWork>* work);

}  // namespace mercury
