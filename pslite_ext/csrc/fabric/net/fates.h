// What became of a worker's updates: counts of all, and the fate of each recent one.
//
//   Add -> unsettled --Settle--> committed --Settle--> lost
//                       \------> dropped, by reason
//
// Thread-safety: none, one owner. Invariants: numbers rise from 1; at most the last `kFatesKept`
// updates are kept individually; a committed update may be settled once more, as lost, and then
// counts as both.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "fabric/live/orders.h"

namespace mercury::fabric {

constexpr size_t kFatesKept = 4096;

class Fates {
 public:
  // The number of the next update.
  int64_t Add();
  void Settle(int64_t number, Fate fate);
  bool all_settled() const { return unsettled_.empty(); }
  // Nothing: it is not known yet, or not any more.
  std::optional<Fate> Of(int64_t number) const;
  // The members of a JSON object.
  std::string Figures() const;

 private:
  int64_t pushed_ = 0;
  std::set<int64_t> unsettled_;
  std::map<Fate, int64_t> counts_;
  std::map<int64_t, Fate> last_;
};

}  // namespace mercury::fabric
