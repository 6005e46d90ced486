#include "fabric/live/commit_order.h"

#include <algorithm>
#include <string>
#include <utility>

namespace mercury::fabric {

Status CommitOrder::Expect(const std::vector<Placed>& updates) {
  int64_t place = expected_;
  int64_t version = version_ + static_cast<int64_t>(order_.size());
  for (const Placed& update : updates) {
    const std::string who = "update " + std::to_string(update.id.number) + " of worker " +
                            std::to_string(update.id.worker);
    if (update.place <= place) {
      return Status::InvalidArgument(who + " is planned at place " + std::to_string(update.place) +
                                     ", behind place " + std::to_string(place));
    }
    place = update.place;
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

bool CommitOrder::Arrive(Arrival arrival) {
  const auto& places = arrival.places;
  const auto gone = [this](int64_t place) {
    return arrived_.count(place) != 0 || early_void_.count(place) != 0 ||
           (place <= expected_ && order_.count(place) == 0);
  };
  if (places.empty()) Void(arrival.skipped);
  if (places.empty() || groups_.size() >= kArrivalsMost ||
      std::any_of(places.begin(), places.end(), gone)) {
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

CommitOrder::Match CommitOrder::Examine(const Arrival& arrival) const {
  auto next = order_.lower_bound(arrival.places.front());
  for (const int64_t place : arrival.places) {
    if (place > expected_) return Match::kWait;
    if (next == order_.end() || next->first != place) return Match::kImpossible;
    ++next;
  }
  const bool held = !holds_.empty() && *holds_.begin() <= arrival.places.back();
  return !held && order_.begin()->first == arrival.places.front() ? Match::kApply : Match::kWait;
}

void CommitOrder::Remove(const Arrival& arrival) {
  for (const int64_t place : arrival.places) arrived_.erase(place);
}

Progress CommitOrder::Advance() {
  Progress progress;
  for (auto group = groups_.begin(); group != groups_.end();) {
    const Match match = Examine(group->second);
    if (match == Match::kWait) {
      ++group;
      continue;
    }
    Arrival arrival = std::move(group->second);
    group = groups_.erase(group);
    Remove(arrival);
    if (match == Match::kImpossible) {
      progress.given_back.push_back(std::move(arrival));
      continue;
    }
    Applied applied;
    applied.memory = arrival.memory;
    for (const int64_t place : arrival.places) {
      applied.updates.push_back(order_.begin()->second);
      order_.erase(order_.begin());
      applied_ = place;
      ++version_;
    }
    applied.version = version_;
    progress.commits.push_back(std::move(applied));
  }
  return progress;
}

std::vector<int64_t> CommitOrder::Held() const {
  if (order_.empty()) return {};
  const auto first = groups_.find(order_.begin()->first);
  if (first == groups_.end() || holds_.empty()) return {};
  const std::vector<int64_t>& places = first->second.places;
  return places.back() <= expected_ && *holds_.begin() <= places.back() ? places
                                                                        : std::vector<int64_t>{};
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
