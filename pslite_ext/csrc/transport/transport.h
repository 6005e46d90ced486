// A way from a worker to the servers and back: all that the rest of a worker knows of one.
//
// To add one, implement this in a room of its own; process/node.cc makes the one that its job has.
// Thread-safety: all functions from any thread. Invariants: every operation is finished exactly
// once; after Fail every operation, under way or to come, fails with the first error.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "transport/operation.h"

namespace mercury {

class Transport {
 public:
  virtual ~Transport() = default;
  // Never blocks; the operation may be over when this returns.
  virtual void Submit(std::shared_ptr<Operation> op) = 0;
  // Whether an operation may be submitted before all of it is ready; then More says that there is.
  virtual bool TakesChunks() const { return false; }
  virtual void More(const std::shared_ptr<Operation>& /*op*/) {}
  virtual void Fail(const Status& status) = 0;
  // Live, as a JSON object; "{}" if there are none.
  virtual std::string Figures() = 0;
  // What it has learnt of the job, for the next run; empty if nothing.
  virtual std::string Profile() = 0;
  // What is under way, for who wants to know what this process waits for: a line for each.
  virtual std::string Waiting() { return ""; }
  // How many rounds of each tensor there have been, for a worker that comes while the job runs; and
  // of one that does, what it is told.
  virtual std::string Rounds() { return ""; }
  virtual Status TakeRounds(const std::string& /*text*/) { return Status::Ok(); }
};

// Numbers a worker's pushes and pulls in the order in which they are dispatched, whichever
// transport carries them: traces tell them apart by it. After kNumbers of them it begins again:
// what was under way with those numbers is long over.
class DispatchNumbers {
 public:
  static constexpr uint64_t kNumbers = uint64_t{1} << 30;  // in a record's field, a pull's, too

  // For a push or pull, and one more if a pull follows the push. First values have none.
  int32_t Take(const Operation& op) {
    if (op.kind == Operation::Kind::kFirstValue) return 0;
    const uint64_t taken = next_.fetch_add(op.pulls_sum() ? 2 : 1);
    return static_cast<int32_t>((taken - 1) % kNumbers + 1);
  }
  uint64_t next() const { return next_; }
  // Of who comes while the job runs: the others'.
  void GoOnFrom(uint64_t next) { next_ = next; }

 private:
  std::atomic<uint64_t> next_{1};
};

}  // namespace mercury
