// Where a tensor's operations wait until it is known that all workers have the same tensor.
//
//   closed --all agree--> open: what waits passes, and all that comes later
//          --they do not-> refused: what waits fails, and all that comes later
//
// Thread-safety: all functions from any thread. Ownership: operations that wait. Invariant: the
// first decision sticks; nothing is called under the lock.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/operation.h"

namespace mercury {

class Gate {
 public:
  using Pass = std::function<void(std::shared_ptr<Operation>)>;

  explicit Gate(Pass pass) : pass_(std::move(pass)) {}

  void Take(std::shared_ptr<Operation> op);
  void Decide(const Status& status);
  bool open() const { return open_.load(std::memory_order_acquire); }
  // Why nothing passes; ok if it is open or may still be opened.
  Status refusal() const;

 private:
  const Pass pass_;
  std::atomic<bool> open_{false};
  mutable std::mutex mutex_;  // guards what follows
  bool decided_ = false;
  Status refusal_;
  std::vector<std::shared_ptr<Operation>> waiting_;
};

}  // namespace mercury
