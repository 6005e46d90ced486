// What a script knows of its node: whether the job runs, what became of its updates, and the model
// that has come. The lane says it, the script waits for it.
//
//   phase     from      to
//   joining   begun     running
//   joining   failed    failed
//   running   ended     ended      all workers have left
//   running   failed    failed
//
// Thread-safety: all functions from any thread. Ownership: a model that has come is shared; nobody
// writes to it. Invariants: the first end sticks, and every wait ends with it; all waiters are
// woken; one model or sum is asked for at a time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "fabric/live/batching.h"
#include "fabric/live/request.h"
#include "fabric/net/cargo.h"
#include "fabric/net/fates.h"

namespace mercury::fabric {

class Answers {
 public:
  explicit Answers(bool worker) : worker_(worker) {}

  // The lane's:
  void Enter(double weight, const Staleness& staleness);
  void Begin() { End(Phase::kRunning, Status::Ok()); }
  void End() { End(Phase::kEnded, Status::Ok()); }
  void Fail(const Status& status) { End(Phase::kFailed, status); }
  void Settled(int64_t number, Fate fate);
  void Got(const Edition& edition, std::shared_ptr<const Vector> what);

  // The script's. These wait for at most so long, and say whether it is over; `status`: how.
  bool WaitBegun(int slice_ms, Status* status);
  bool WaitEnded(int slice_ms, Status* status);
  bool WaitSettled(int slice_ms, Status* status);  // of all that this worker has pushed
  // `got` null where `status` is not ok.
  bool WaitModel(int slice_ms, Status* status, std::shared_ptr<const Vector>* got,
                 int64_t* version);
  // The same, for nobody: what the script has got last stays that.
  bool Discard(int slice_ms, Status* status);
  // What the job has failed of; ok if it has not.
  Status failure() const;
  std::optional<Fate> FateOf(int64_t number) const;
  std::string Figures() const;

  // A worker's. `send` is called before another thread can ask for something, so that requests go
  // in the order of their numbers.
  using Send = std::function<void(const Request& request)>;
  // By what its updates are multiplied.
  Status Weight(double* weight) const;
  Status Push(double norm, const Send& send, int64_t* number);
  Status Reduce(const Send& send);
  // `ask`: for a model with so many updates of each worker. Not called if it has asked already.
  Status AskModel(const std::function<void(int64_t least)>& ask);

 private:
  enum class Phase { kJoining, kRunning, kEnded, kFailed };
  void End(Phase phase, const Status& status);
  bool Wait(int slice_ms, const std::function<bool()>& over, Status* status);
  Status Check() const;

  const bool worker_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Phase phase_ = Phase::kJoining;
  Status status_;
  double weight_ = 1;
  Staleness staleness_;
  int64_t updates_ = 0;  // that this worker has pushed
  Edition edition_;      // that the script has got last
  Fates fates_;          // of what this worker has pushed
  bool asked_ = false;
  bool reducing_ = false;  // what comes is no model for the script
  std::shared_ptr<const Vector> got_;
  Edition got_edition_;
};

}  // namespace mercury::fabric
