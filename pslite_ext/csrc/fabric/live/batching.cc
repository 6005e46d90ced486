#include "fabric/live/batching.h"

#include <algorithm>
#include <iterator>

namespace mercury::fabric {

void Batching::Wait(UpdateId id, int64_t turn, bool reduce) {
  if (!NeedsEverybody(reduce)) return list_.push_back(id);
  (reduce ? reduces_ : rounds_)[turn][id.worker] = id;
}

std::vector<UpdateId> Batching::Forget(int worker) {
  gone_.insert(worker);
  std::vector<UpdateId> theirs;
  std::vector<UpdateId> others;
  for (const UpdateId& id : list_) (id.worker == worker ? theirs : others).push_back(id);
  list_ = std::move(others);
  for (Rounds* rounds : {&rounds_, &reduces_}) {
    for (auto round = rounds->begin(); round != rounds->end();) {
      const auto its = round->second.find(worker);
      if (its != round->second.end()) {
        theirs.push_back(its->second);
        round->second.erase(its);
      }
      round = round->second.empty() ? rounds->erase(round) : std::next(round);
    }
  }
  return theirs;
}

bool Batching::Whole(const Rounds& rounds) const {
  return !rounds.empty() && rounds.begin()->second.size() == workers_;
}

bool Batching::Ready() const { return Whole(reduces_) || Whole(rounds_) || !list_.empty(); }

Chosen Batching::Take() {
  Chosen chosen;
  for (Rounds* rounds : {&reduces_, &rounds_}) {
    if (!Whole(*rounds)) continue;
    for (const auto& [worker, id] : rounds->begin()->second) chosen.updates.push_back(id);
    chosen.round = true;
    chosen.reduce = rounds == &reduces_;
    rounds->erase(rounds->begin());
    return chosen;
  }
  const auto end = list_.begin() + std::min(list_.size(), kBatchMost);
  chosen.updates.assign(list_.begin(), end);
  list_.erase(list_.begin(), end);
  chosen.round = staleness_.bounded();
  return chosen;
}

std::optional<int> Batching::Missing() const {
  for (const Rounds* rounds : {&rounds_, &reduces_}) {
    for (const auto& [turn, round] : *rounds) {
      for (const int worker : gone_) {
        if (round.count(worker) == 0) return worker;
      }
    }
  }
  return std::nullopt;
}

size_t Batching::size() const {
  size_t size = list_.size();
  for (const Rounds* rounds : {&rounds_, &reduces_}) {
    for (const auto& [turn, round] : *rounds) size += round.size();
  }
  return size;
}

}  // namespace mercury::fabric
