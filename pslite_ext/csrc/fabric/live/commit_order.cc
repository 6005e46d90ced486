#include "fabric/live/commit_order.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace mercury::fabric {

Status CommitOrder::Expect(const std::vector<Placed>& updates) {
  int64_t place = expected_;
  int64_t version = version_ + Versions();
  for (const Placed& update : updates) {
    const std::string who = "update " + std::to_string(update.id.number) + " of worker " +
                            std::to_string(update.id.worker);
    if (update.place <= place) {
      return Status::InvalidArgument(who + " is planned at place " + std::to_string(update.place) +
                                     ", behind place " + std::to_string(place));
    }
    place = update.place;
    if (update.round != 0) continue;
    ++version;
    if (delay_bound_ != mercury::kNever && version - update.version > delay_bound_) {
      return Status::InvalidArgument(who + " was computed from version " +
                                     std::to_string(update.version) + " and would make version " +
                                     std::to_string(version) + ": more than " +
                                     std::to_string(delay_bound_) + " later");
    }
  }
  for (const Placed& update : updates) {
    if (early_void_.count(update.place) == 0) order_.emplace(update.place, update);
  }
  expected_ = place;
  early_void_.erase(early_void_.begin(), early_void_.upper_bound(place));
  return Status::Ok();
}

bool CommitOrder::Awaits(int worker) const {
  return std::any_of(order_.begin(), order_.end(),
                     [worker](const auto& placed) { return placed.second.id.worker == worker; });
}

// That those expected will make.
int64_t CommitOrder::Versions() const {
  int64_t versions = 0;
  int64_t round = 0;
  for (const auto& [place, update] : order_) {
    if (update.round == 0 || (update.round != round && !update.reduce)) ++versions;
    round = update.round;
  }
  return versions;
}

bool CommitOrder::Arrive(Arrival arrival) {
  const auto& places = arrival.places;
  const auto gone = [this](int64_t place) {
    return arrived_.count(place) != 0 || early_void_.count(place) != 0 ||
           (place <= expected_ && order_.count(place) == 0);
  };
  if (places.empty()) Void(arrival.skipped);
  const size_t most = std::max(kArrivalsMost, order_.size());
  if (places.empty() || groups_.size() >= most || std::any_of(places.begin(), places.end(), gone)) {
    return false;
  }
  Void(arrival.skipped);
  const int64_t first = places.front();
  for (const int64_t place : places) arrived_.emplace(place, first);
  groups_.emplace(first, std::move(arrival));
  return true;
}

std::vector<int64_t> CommitOrder::Void(const std::vector<int64_t>& places, bool even_arrived) {
  std::vector<int64_t> voided;
  for (const int64_t place : places) {
    if (!even_arrived && arrived_.count(place) != 0) continue;
    const bool here =
        place > expected_ ? early_void_.insert(place).second : order_.erase(place) > 0;
    if (here) voided.push_back(place);
  }
  return voided;
}

// Whether it can still be applied: its members are neighbours, or in one round.
bool CommitOrder::Possible(const Arrival& arrival) const {
  const auto first = order_.lower_bound(arrival.places.front());
  const bool round = first != order_.end() && first->second.round != 0;
  auto next = first;
  for (const int64_t place : arrival.places) {
    if (place > expected_) return !round;  // a round is expected as a whole
    if (round) next = order_.find(place);
    if (next == order_.end() || next->first != place) return false;
    if (next->second.round != first->second.round) return false;
    ++next;
  }
  return true;
}

// The places of what is to be applied next, if it has come: a group, or a round.
std::vector<int64_t> CommitOrder::Next() const {
  if (order_.empty()) return {};
  const int64_t round = order_.begin()->second.round;
  if (round == 0) {
    const auto group = groups_.find(order_.begin()->first);
    const bool whole = group != groups_.end() && group->second.places.back() <= expected_;
    return whole ? group->second.places : std::vector<int64_t>{};
  }
  std::vector<int64_t> places;
  for (auto next = order_.begin(); next != order_.end() && next->second.round == round; ++next) {
    if (arrived_.count(next->first) == 0) return {};
    places.push_back(next->first);
  }
  return places;
}

bool CommitOrder::IsHeld(const std::vector<int64_t>& places) const {
  return !holds_.empty() && *holds_.begin() <= places.back();
}

void CommitOrder::Remove(const Arrival& arrival) {
  for (const int64_t place : arrival.places) arrived_.erase(place);
}

Progress CommitOrder::Advance() {
  Progress progress;
  for (auto group = groups_.begin(); group != groups_.end();) {
    if (Possible(group->second)) {
      ++group;
      continue;
    }
    Remove(group->second);
    progress.given_back.push_back(std::move(group->second));
    group = groups_.erase(group);
  }
  for (auto next = Next(); !next.empty() && !IsHeld(next); next = Next()) {
    Apply(next.back(), &progress);
  }
  MERCURY_CHECK(applied_ <= expected_ && (order_.empty() || order_.rbegin()->first <= expected_));
  return progress;
}

// All groups that begin at `last` or before.
void CommitOrder::Apply(int64_t last, Progress* progress) {
  while (!groups_.empty() && groups_.begin()->first <= last) {
    const Arrival arrival = std::move(groups_.begin()->second);
    groups_.erase(groups_.begin());
    Remove(arrival);
    Applied applied;
    applied.memory = arrival.memory;
    for (const int64_t place : arrival.places) {
      const auto update = order_.find(place);
      MERCURY_CHECK(update != order_.end() && (update->second.round != 0 || place > applied_));
      applied.updates.push_back(update->second);
      order_.erase(update);
    }
    applied_ = std::max(applied_, arrival.places.back());
    const Placed& update = applied.updates.front();
    applied.first = update.round == 0 || update.round != round_;
    round_ = update.round;
    if (applied.first && !update.reduce) {
      applied.versions = update.round == 0 ? static_cast<int64_t>(applied.updates.size()) : 1;
    }
    applied.version = version_ += applied.versions;
    progress->commits.push_back(std::move(applied));
  }
}

std::vector<int64_t> CommitOrder::Held() const {
  const std::vector<int64_t> next = Next();
  return !next.empty() && IsHeld(next) ? next : std::vector<int64_t>{};
}

void CommitOrder::Jump(int64_t version, int64_t place) {
  order_.erase(order_.begin(), order_.upper_bound(place));
  early_void_.erase(early_void_.begin(), early_void_.upper_bound(place));
  version_ = version;
  expected_ = std::max(expected_, place);
  applied_ = std::max(applied_, place);
}

std::vector<Placed> CommitOrder::TakeOver(int64_t delay_bound) {
  std::vector<Placed> lost;
  lost.reserve(order_.size());
  for (const auto& [place, update] : order_) lost.push_back(update);
  order_.clear();
  holds_.clear();
  delay_bound_ = delay_bound;
  return lost;
}

}  // namespace mercury::fabric
