// What is applied when: on a server in the planned order, on a replica in the server's.
//
// Updates are expected (planned, on a server; committed by the server, on a replica) and arrive, in
// either order, alone or summed in groups. A group is applied when its members are the first that
// are expected and not held. What can no longer arrive is voided; what has arrived and can no
// longer be applied is given back.
//
// Updates of a round wait until all of it has arrived, or is void, and are then applied together. A
// group belongs to at most one round.
//
//   expected --------------------applied        applied: all before it are applied or void, it has
//      |  \___held___/release_____/                      arrived, and it is not held
//      \--void: it will not come                given back: a member is void, or another is
//                                                        expected between two members
//
// Thread-safety: none, one owner; no clock. Ownership: `memory` is the caller's number for what an
// arrival brought. Invariants: places are applied in rising order, each at most once; a place that
// was void is never applied; a round is applied as a whole, in one `Advance`; versions rise by one;
// no update is applied more than `delay_bound` versions after the one it was computed from; every
// arrival that was kept is applied or given back once.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/never.h"
#include "base/status.h"
#include "fabric/live/update_id.h"

namespace mercury::fabric {

// So many arrivals wait for their turn; more, if more updates are expected.
constexpr size_t kArrivalsMost = 4096;

// One update, or several that were summed on the way.
struct Arrival {
  std::vector<int64_t> places;   // of its members, rising
  std::vector<int64_t> skipped;  // planned members that never came to it
  int64_t memory = 0;
};

// What has come as one, and is applied. A round's groups follow one another.
struct Applied {
  std::vector<Placed> updates;
  int64_t memory = 0;
  int64_t version = 0;   // after them
  int64_t versions = 0;  // so many does it make; of a round, the first group makes all
  bool first = true;     // of its round
};

struct Progress {
  std::vector<Applied> commits;
  std::vector<Arrival> given_back;
};

class CommitOrder {
 public:
  // `delay_bound` mercury::kNever: whoever expects has checked it.
  CommitOrder(int64_t version, int64_t delay_bound)
      : version_(version), delay_bound_(delay_bound) {}

  // More updates, at places after all that were expected before. Nothing happens if one of them
  // would break the delay bound, even if all before it are applied.
  Status Expect(const std::vector<Placed>& updates);
  // Who is at `place` or later waits, until `Release` of that place or a later one.
  void Hold(int64_t place) { holds_.insert(place); }
  void Release(int64_t place) { holds_.erase(holds_.begin(), holds_.upper_bound(place)); }
  // What was skipped is void from now on. False: a member is void or applied, or there is none; the
  // caller keeps the memory.
  bool Arrive(Arrival arrival);
  // Those of `places` that have neither come nor been applied, and now never will be;
  // `even_arrived`: also those that have come and wait.
  std::vector<int64_t> Void(const std::vector<int64_t>& places, bool even_arrived = false);
  // What can be applied now, and what never can.
  Progress Advance();

  // The places of the group, or the round, that would be applied now if it were not held.
  std::vector<int64_t> Held() const;

  // The model is now that of `version`, after all up to `place`: a replica was sent it as a whole.
  void Jump(int64_t version, int64_t place);
  // Voids all that is still expected: a replica takes over with what it has. It keeps this bound
  // from now on.
  std::vector<Placed> TakeOver(int64_t delay_bound);

  int64_t version() const { return version_; }
  int64_t expected_through() const { return expected_; }  // the last place that was
  int64_t applied_through() const { return applied_; }    // the last place that was applied
  size_t waiting() const { return order_.size(); }
  // Whether an update of this worker's is expected, and not yet applied or void.
  bool Awaits(int worker) const;
  // Whether it may still be applied.
  bool Possible(int64_t place) const { return place > expected_ || order_.count(place) != 0; }

 private:
  bool Possible(const Arrival& arrival) const;
  std::vector<int64_t> Next() const;
  bool IsHeld(const std::vector<int64_t>& places) const;
  void Apply(int64_t last, Progress* progress);
  void Remove(const Arrival& arrival);
  int64_t Versions() const;

  int64_t version_;
  int64_t delay_bound_;
  int64_t expected_ = 0;  // the last place of all that were expected
  int64_t applied_ = 0;
  std::map<int64_t, Placed> order_;     // by place
  std::map<int64_t, Arrival> groups_;   // by the first member's place
  std::map<int64_t, int64_t> arrived_;  // a member's place: its group's
  int64_t round_ = 0;                   // that was applied last
  std::set<int64_t> early_void_;        // void before they were expected
  std::set<int64_t> holds_;
};

}  // namespace mercury::fabric
