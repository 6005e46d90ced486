// Which workers are in the job, as a node hears of it, and how far newcomers are (control/roster.h
// decides it).
//
// Thread-safety: none; a node locks. No I/O. Invariant: nobody is in and a newcomer.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "control/membership.h"

namespace mercury {

class WorkersPresent {
 public:
  void Begin(const std::set<int>& ranks) { in_ = ranks; }
  // It has left, or is lost.
  void Out(int rank) {
    in_.erase(rank);
    newcomers_.erase(rank);
  }
  void Admits(int rank, uint8_t entry, Admission admission) {
    newcomers_.erase(rank);
    entries_[rank] = entry;
    if (admission == Admission::kIn) {
      in_.insert(rank);
    } else {
      newcomers_[rank] = admission;
    }
  }

  int workers() const { return static_cast<int>(in_.size()); }
  // Who lets others in: the first worker that is in.
  bool IsFirst(int rank) const { return !in_.empty() && *in_.begin() == rank; }
  // The first newcomer that is ready to be let in; -1: none is.
  int Ready() const {
    for (const auto& [rank, admission] : newcomers_) {
      if (admission == Admission::kReady) return rank;
    }
    return -1;
  }
  uint8_t EntryOf(int rank) const {
    const auto found = entries_.find(rank);
    return found != entries_.end() ? found->second : 0;
  }
  // Whether the newcomer that came as that is so far, and whether it is still there.
  bool IsAt(int rank, uint8_t entry, Admission admission) const {
    if (EntryOf(rank) != entry) return false;
    if (in_.count(rank) != 0) return true;
    const auto found = newcomers_.find(rank);
    return found != newcomers_.end() && found->second >= admission;
  }
  bool IsThere(int rank, uint8_t entry) const {
    return EntryOf(rank) == entry && in_.count(rank) + newcomers_.count(rank) != 0;
  }

 private:
  std::set<int> in_;
  std::map<int, Admission> newcomers_;
  std::map<int, uint8_t> entries_;
};

}  // namespace mercury
