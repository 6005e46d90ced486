// What the server has applied and the replica has not, what is in flight to the replica, and how
// far apart that leaves the two models. A round counts as one step of the model.
//
// Thread-safety: none, one owner; no clock. Invariants: the log rises by place and begins after
// what the replica has applied; a group counts as applied only if it is exactly what comes next in
// the log, a round only if all of it is there.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "fabric/live/orders.h"

namespace mercury::fabric {

class ReplicaLedger {
 public:
  struct Entry {
    UpdateId id;
    double norm = 0;
    int64_t round = 0;  // as Placed has it
  };
  using Log = std::map<int64_t, Entry>;  // by place
  struct SentGroup {
    std::vector<int64_t> places;
    int aggregator = kReplicaNode;  // kReplicaNode: straight from its worker
  };

  void Committed(int64_t place, const Entry& entry) { log_.emplace(place, entry); }
  void Sent(SentGroup group) { coming_.push_back(std::move(group)); }
  // A group is there, perhaps without members that were skipped.
  void Arrived(const std::vector<int64_t>& places);
  // This update will never be applied: groups with it are of no use.
  void Voided(int64_t place);
  // Nothing more is awaited of what is on its way.
  void GiveUp() { coming_.clear(); }
  void Replace(std::vector<SentGroup> coming) { coming_ = std::move(coming); }
  // The replica has applied all up to `place`; `history_norm`: of its model's last step. Those that
  // leave the log.
  std::vector<UpdateId> Applied(int64_t place, double history_norm);
  // There is no replica any more. Those that leave the log.
  std::vector<UpdateId> Clear();

  const Log& log() const { return log_; }
  const std::vector<SentGroup>& coming() const { return coming_; }
  double history_norm() const { return history_norm_; }
  // Nothing is on its way, and nothing that is there will be applied without more commits.
  bool Quiet() const { return coming_.empty() && StepsOf(log_).ready == 0; }
  // How far apart the models can be when the server has applied `next`, too, and the replica all
  // that it then can with what is there.
  double BoundAfter(const Log& next, double momentum) const;

 private:
  // Steps of the model that a log makes, and how many of them the replica can apply.
  struct Steps {
    std::vector<double> norms;
    size_t ready = 0;
  };
  Steps StepsOf(const Log& log) const;
  bool Have(const std::set<int64_t>& round) const;
  size_t ReadyAt(const Log& log, Log::const_iterator next) const;

  Log log_;
  std::vector<SentGroup> coming_;
  std::map<int64_t, std::vector<int64_t>> arrived_;  // by the first place
  double history_norm_ = 0;
};

}  // namespace mercury::fabric
