// What has arrived at each of several servers: a group counts once all of them have their part of
// it.
//
// Thread-safety: none, one owner. Invariant: what the first server has of a group is given back
// once, when the group is whole or dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "fabric/live/commit_order.h"

namespace mercury::fabric {

class JointArrivals {
 public:
  explicit JointArrivals(size_t servers) : servers_(servers) {}

  // The first server has its part of a group; another one has. The group, once all have it.
  std::optional<Arrival> AtFirst(Arrival arrival) {
    const std::vector<int64_t> places = arrival.places;
    groups_[places].first = std::move(arrival);
    return At(places, 0);
  }
  std::optional<Arrival> At(const std::vector<int64_t>& places, size_t server) {
    Parts& parts = groups_[places];
    parts.at.insert(server);
    if (parts.at.size() < servers_) return std::nullopt;
    Arrival whole = std::move(parts.first);
    groups_.erase(places);
    return whole;
  }

  // Of groups with a place that cannot be applied any more: what the first server has of them.
  std::vector<Arrival> Drop(const std::function<bool(int64_t place)>& possible) {
    std::vector<Arrival> dropped;
    for (auto it = groups_.begin(); it != groups_.end();) {
      bool stays = true;
      for (const int64_t place : it->first) stays &= possible(place);
      if (!stays && it->second.at.count(0) != 0) dropped.push_back(std::move(it->second.first));
      it = stays ? std::next(it) : groups_.erase(it);
    }
    return dropped;
  }

 private:
  struct Parts {
    std::set<size_t> at;
    Arrival first;
  };
  const size_t servers_;
  std::map<std::vector<int64_t>, Parts> groups_;
};

}  // namespace mercury::fabric
