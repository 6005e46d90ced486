// What somebody waits for who has no engine that would tell him: Python, for a command or for rows.
//
// Thread-safety: all functions from any thread. Ownership: the answers; not the operation, whose
// transport alone may hold it. A ticket may be dropped while the operation is under way.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "transport/operation.h"

namespace mercury {

class Ticket {
 public:
  // To be made before the operation is submitted.
  explicit Ticket(Operation* op) : row_bytes_(op->rows.row_bytes) {
    op->done = [op, state = state_](const Status& status) {
      const std::lock_guard<std::mutex> lock(state->mutex);
      // Else a lane may receive into them still, and the operation is what it holds.
      if (status.ok()) state->answers = std::move(op->answers);
      state->status = status;
      state->over = true;
      state->changed.notify_all();
    };
  }
  // At most so long; false: not yet.
  bool Wait(int slice_ms, Status* status) const;
  // Once it is over:
  size_t num_rows() const;
  void CopyRows(int64_t* numbers, char* values) const;

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
    Status status;
    std::vector<Buffer> answers;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  const size_t row_bytes_;
};

}  // namespace mercury
