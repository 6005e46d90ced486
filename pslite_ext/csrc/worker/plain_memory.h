// Work on memory that no engine orders: NumPy's arrays, PyTorch's tensors. It is submitted at once,
// and whoever submitted it asks its ticket when it is over.
//
// Thread-safety: SubmitMemory from the thread that orders the tensor's operations; the work's
// functions from any. Ownership: the memory is the caller's, who keeps it as it is until `released`
// says so. That may be later than the end: when a job fails, a lane may still be at work on it. The
// work itself may be dropped at any time, but one in chunks only once all of it is ready.
// Invariant: what is refused was not begun.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "transport/operation.h"
#include "worker/arrivals.h"
#include "worker/ticket.h"
#include "worker/worker.h"

namespace mercury {

struct Memory {
  void* data = nullptr;
  size_t bytes = 0;
};

struct Chunks {
  uint64_t bytes = 0;  // of each
  std::shared_ptr<ArrivalQueue> queue;
  uint64_t sum = 0;  // what the queue calls this one
};

class MemoryWork {
 public:
  // To be made before the operation is submitted.
  explicit MemoryWork(Operation* op);
  const Ticket& ticket() const { return ticket_; }
  // Whether nobody reads or writes the memory any more.
  bool released() const { return in_use_.expired(); }

  // Of a sum in chunks: so many bytes of it, from the first on, are there.
  void Ready(uint64_t bytes);

 private:
  friend Status SubmitChunks(Worker* worker, const std::shared_ptr<Tensor>& tensor,
                             const Memory& memory, int32_t priority, const Chunks& chunks,
                             std::unique_ptr<MemoryWork>* work);
  std::weak_ptr<void> in_use_;
  Ticket ticket_;
  Worker* worker_ = nullptr;
  std::shared_ptr<Operation> held_;  // until all of it is ready, where chunks are not taken
  std::weak_ptr<Operation> op_;
};

// `src` is what the kind reads, `dst` what it writes, which may be the same memory; data is null
// where it reads or writes nothing. kInvalidArgument if they are not the tensor's size, or if all
// workers are known not to have the same tensor.
Status SubmitMemory(Worker* worker, const std::shared_ptr<Tensor>& tensor, Operation::Kind kind,
                    const Memory& src, const Memory& dst, int32_t priority,
                    std::unique_ptr<MemoryWork>* work);

// As a sum in place, of which nothing is ready yet, and whose chunks come out of the queue.
Status SubmitChunks(Worker* worker, const std::shared_ptr<Tensor>& tensor, const Memory& memory,
                    int32_t priority, const Chunks& chunks, std::unique_ptr<MemoryWork>* work);

}  // namespace mercury
