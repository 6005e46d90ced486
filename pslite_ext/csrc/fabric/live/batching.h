// What a batch is in each kind of job: which of the waiting updates are planned together.
//
//   asynchronous        all that wait, up to `kBatchMost`; each makes a version
//   stale-synchronous   the same, as a round: its sum makes a version
//   synchronous         a round of one update of each worker: the n-th of all
//   an all-reduce       in any job: one of each worker, the n-th of all; no version
//
// Thread-safety: none, one owner; no clock. Invariants: a round that needs everybody is taken as a
// whole, and the n-th before the next; each update that was added is taken once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "fabric/live/update_id.h"

namespace mercury::fabric {

constexpr size_t kBatchMost = 1024;  // planned in some tenths of a second, and told in one letter

// How far a job's slowest worker may lag. A job that has a bound drops and loses no update.
struct Staleness {
  static constexpr int64_t kAny = -1;
  int64_t updates = kAny;  // 0: synchronous

  bool bounded() const { return updates >= 0; }
  bool everybody() const { return updates == 0; }
};

// What is planned together.
struct Chosen {
  std::vector<UpdateId> updates;
  bool round = false;
  bool reduce = false;
};

class Batching {
 public:
  Batching(Staleness staleness, size_t workers) : staleness_(staleness), workers_(workers) {}

  // A worker's update, for the first time: its turn among those of its kind.
  int64_t NextTurn(int worker, bool reduce) { return ++turns_[{worker, reduce}]; }
  void Wait(UpdateId id, int64_t turn, bool reduce);
  // A worker is gone, and what waits of it with it: these.
  std::vector<UpdateId> Forget(int worker);

  bool Ready() const;
  // If it is ready; else nothing.
  Chosen Take();
  bool NeedsEverybody(bool reduce) const { return reduce || staleness_.everybody(); }
  // Who is gone, and others wait for.
  std::optional<int> Missing() const;
  size_t size() const;

 private:
  using Rounds = std::map<int64_t, std::map<int, UpdateId>>;  // by turn and worker
  bool Whole(const Rounds& rounds) const;

  const Staleness staleness_;
  const size_t workers_;
  std::map<std::pair<int, bool>, int64_t> turns_;  // so many each worker has asked for, by kind
  std::vector<UpdateId> list_;                     // of no round, in the order of the requests
  Rounds rounds_;
  Rounds reduces_;
  std::set<int> gone_;
};

}  // namespace mercury::fabric
