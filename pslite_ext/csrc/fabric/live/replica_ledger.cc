#include "fabric/live/replica_ledger.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "fabric/live/places.h"
#include "fabric/replication.h"

namespace mercury::fabric {

void ReplicaLedger::Arrived(const std::vector<int64_t>& places) {
  if (places.empty()) return;
  const auto theirs = [&](const SentGroup& group) {
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
  const auto useless = [place](const SentGroup& group) { return Contains(group.places, place); };
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

// Whether all of a round has arrived, in groups that have nothing else in them.
bool ReplicaLedger::Have(const std::set<int64_t>& round) const {
  size_t here = 0;
  for (const auto& [first, group] : arrived_) {
    const bool inside = std::all_of(group.begin(), group.end(),
                                    [&](int64_t place) { return round.count(place) != 0; });
    if (inside) here += group.size();
  }
  return here == round.size();
}

// How many are applied at once from `next` on: those of a group that is exactly what comes there.
size_t ReplicaLedger::ReadyAt(const Log& log, Log::const_iterator next) const {
  const auto group = arrived_.find(next->first);
  if (group == arrived_.end()) return 0;
  for (const int64_t place : group->second) {
    if (next == log.end() || next->first != place) return 0;
    ++next;
  }
  return group->second.size();
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

ReplicaLedger::Steps ReplicaLedger::StepsOf(const Log& log) const {
  Steps steps;
  int64_t round = 0;
  for (const auto& [place, entry] : log) {
    if (entry.round == 0 || entry.round != round) steps.norms.push_back(0);
    round = entry.round;
    steps.norms.back() += entry.norm;
  }
  for (auto next = log.begin(); next != log.end();) {
    round = next->second.round;
    if (round == 0) {
      const size_t applied = ReadyAt(log, next);
      if (applied == 0) break;
      steps.ready += applied;
      std::advance(next, applied);
      continue;
    }
    std::set<int64_t> places;
    for (; next != log.end() && next->second.round == round; ++next) places.insert(next->first);
    if (!Have(places)) break;
    ++steps.ready;
  }
  return steps;
}

double ReplicaLedger::BoundAfter(const Log& next, double momentum) const {
  Log log = log_;
  log.insert(next.begin(), next.end());
  const Steps steps = StepsOf(log);
  return DivergenceBound(momentum, history_norm_, steps.norms, steps.norms.size(), steps.ready);
}

}  // namespace mercury::fabric
