// Where a parameter's operations wait until it is known that all workers have the same: first the
// same type and shape, then, before their first sum and whenever one sums in another manner, the
// same manner.
//
//   closed --all that was asked is agreed on--> open: what waits passes, and all that comes later
//          --something is not-> refused: what waits fails, and all that comes later
//   open --a sum in another manner--> closed
//
// Thread-safety: all functions from any thread. Ownership: operations that wait. Invariants: the
// first refusal sticks; nothing is called under the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "transport/operation.h"

namespace mercury {

// How a sum is made: what all workers must do alike in each of its rounds.
struct Manner {
  bool rows = false;             // as sets of rows; or whole
  const Codec* codec = nullptr;  // null: the plain one
  float parameter = 0;
  std::string use;  // what all make of it: "SGD"; may be empty

  static Manner Of(const Operation& op);
  bool operator==(const Manner& other) const {
    return rows == other.rows && codec == other.codec && parameter == other.parameter &&
           use == other.use;
  }
};
std::string Text(const Manner& manner);  // "row_sparse arrays for SGD"

class Gate {
 public:
  using Pass = std::function<void(std::shared_ptr<Operation>)>;

  // Closed, until the one question that is asked already is decided. `about` is the parameter.
  Gate(Subject about, Pass pass) : about_(std::move(about)), pass_(std::move(pass)) {}

  const Subject& about() const { return about_; }

  // Of a parameter that others have agreed on before this worker came: it is open, and so many
  // manners have been, of which this was the last.
  struct Agreed {
    uint64_t manners = 0;
    Manner last;
  };
  Agreed agreed() const;
  void OpenAs(const Agreed& agreed);
  // Closes before a sum in another manner than the last: whether that must be agreed on, as the
  // parameter's question of this number, from 1.
  bool ClosesFor(const Manner& manner, uint64_t* number);
  void Take(std::shared_ptr<Operation> op);
  // Of one question.
  void Decide(const Status& status);
  bool open() const { return open_.load(std::memory_order_acquire); }
  // Why nothing passes; ok if it is open or may still be opened.
  Status refusal() const;

 private:
  const Subject about_;
  const Pass pass_;
  std::atomic<bool> open_{false};
  mutable std::mutex mutex_;  // guards what follows
  int undecided_ = 1;
  Status refusal_;
  Manner manner_;
  uint64_t manners_ = 0;  // so far
  std::vector<std::shared_ptr<Operation>> waiting_;
};

}  // namespace mercury
