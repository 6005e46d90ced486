// Prophet's scheduled queue in front of the classic path: which whole gradients are handed over
// now. In the backward pass blocks by Algorithm 1; afterwards one gradient after another, the most
// urgent first.
//
// The next goes when what was handed over is confirmed, or when it should have been sent by the
// prediction, whichever is first: a confirmation waits for all workers, and workers that choose
// different orders would wait for each other. Until a profile and a bandwidth are known,
// everything goes at once, as without this queue.
//
// Thread-safety: none; no I/O, no clock, and `now_us` may jump. Invariants: what was made ready is
// handed over exactly once; while anything waits, Take gives something now or at WakeAt.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "policy/policy.h"
#include "policy/prophet/bandwidth_monitor.h"
#include "policy/prophet/block_record.h"
#include "policy/prophet/prophet_profile.h"

namespace mercury {

class ProphetQueue {
 public:
  explicit ProphetQueue(int steps_max) : profile_(steps_max) {}

  ProphetProfile& profile() { return profile_; }

  // `id` is never used twice.
  void Ready(uint64_t id, uint64_t key, uint64_t bytes, int32_t priority, int64_t now_us);
  // What to hand over now, in order.
  std::vector<uint64_t> Take(int64_t now_us);
  // The servers have it, from all workers.
  void Confirmed(uint64_t id, int64_t now_us);
  // Its sum is in, or it has failed.
  void Done(uint64_t id, int64_t now_us);
  // When Take may change its mind by time alone.
  int64_t WakeAt() const { return wake_at_us_; }

  BlockFigures blocks() const;
  // What the user should know, since the last call.
  std::vector<std::string> TakeNotices();

 private:
  struct Gradient {
    uint64_t key = 0;
    uint64_t bytes = 0;
  };

  bool Plans() const { return profile_.known() && monitor_.known(); }
  bool Busy(int64_t now_us) const;
  size_t BlockSize(int64_t now_us);
  size_t OneOrHold(int64_t now_us, double room_us, double transfer_us);

  ProphetProfile profile_;
  // A confirmation waits for all workers: what was sent meanwhile is confirmed with it.
  BandwidthMonitor monitor_{BandwidthMonitor::Basis::kAll};
  std::map<std::pair<int64_t, uint64_t>, Gradient> waiting_;  // by urgency, then id
  std::unordered_map<uint64_t, Gradient> handed_over_;        // and not done
  std::unordered_set<uint64_t> unconfirmed_;
  // What was handed over last.
  std::unordered_set<uint64_t> block_;
  int64_t block_started_us_ = 0, block_ends_us_ = 0;
  bool in_backward_ = false;  // when that was
  bool is_planned_ = false;   // by Algorithm 1
  int64_t wake_at_us_ = kNever;
  BlockRecord record_;
};

}  // namespace mercury
