#include "fabric/live/replica_ledger.h"

#include <algorithm>

#include "fabric/replication.h"

namespace mercury::fabric {
namespace {

bool Contains(const std::vector<int64_t>& places, int64_t place) {
  return std::find(places.begin(), places.end(), place) != places.end();
}

}  // namespace

void ReplicaLedger::Arrived(const std::vector<int64_t>& places) {
  if (places.empty()) return;
  const auto theirs = [&](const Group& group) {
    return std::any_of(group.places.begin(), group.places.end(),
                       [&](int64_t place) { return Contains(places, place); });
  };
  coming_.erase(std::remove_if(coming_.begin(), coming_.end(), theirs), coming_.end());
  arrived_[places.front()] = places;
}

void ReplicaLedger::Voided(int64_t place) {
  for (auto group = arrived_.begin(); group != arrived_.end();) {
    group = Contains(group->second, place) ? arrived_.erase(group) : std::next(group);
  }
  const auto useless = [place](const Group& group) { return Contains(group.places, place); };
  coming_.erase(std::remove_if(coming_.begin(), coming_.end(), useless), coming_.end());
}

std::vector<UpdateId> ReplicaLedger::Applied(int64_t place, double history_norm) {
  std::vector<UpdateId> left;
  while (!log_.empty() && log_.begin()->first <= place) {
    left.push_back(log_.begin()->second.id);
    log_.erase(log_.begin());
  }
  arrived_.erase(arrived_.begin(), arrived_.upper_bound(place));
  history_norm_ = history_norm;
  return left;
}

std::vector<UpdateId> ReplicaLedger::Clear() {
  std::vector<UpdateId> left;
  left.reserve(log_.size());
  for (const auto& [place, entry] : log_) left.push_back(entry.id);
  log_.clear();
  coming_.clear();
  arrived_.clear();
  return left;
}

size_t ReplicaLedger::Ready(const Log& log) const {
  size_t ready = 0;
  for (auto next = log.begin(); next != log.end();) {
    const auto group = arrived_.find(next->first);
    if (group == arrived_.end()) break;
    for (const int64_t place : group->second) {
      if (next == log.end() || next->first != place) return ready;
      ++next;
    }
    ready += group->second.size();
  }
  return ready;
}

double ReplicaLedger::BoundAfter(const Log& next, double momentum) const {
  Log log = log_;
  log.insert(next.begin(), next.end());
  std::vector<double> norms;
  norms.reserve(log.size());
  for (const auto& [place, entry] : log) norms.push_back(entry.norm);
  return DivergenceBound(momentum, history_norm_, norms, log.size(), Ready(log));
}

}  // namespace mercury::fabric
