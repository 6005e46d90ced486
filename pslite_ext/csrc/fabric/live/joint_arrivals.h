// What has arrived at each of several servers: a group counts once all of them have their part of
// it.
//
// Thread-safety: none, one owner. Invariant: each memory is given back once, when its group is
// whole or dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace mercury::fabric {

class JointArrivals {
 public:
  explicit JointArrivals(size_t servers) : servers_(servers) {}

  // That server has the group of these places; `memory`: the first server's number for its part.
  // That number, once all have it.
  std::optional<int64_t> At(const std::vector<int64_t>& places, size_t server, int64_t memory) {
    Parts& group = groups_[places];
    group.at.insert(server);
    if (server == 0) group.memory = memory;
    if (group.at.size() < servers_) return std::nullopt;
    const int64_t whole = group.memory;
    groups_.erase(places);
    return whole;
  }

  // Of groups with a place that cannot be applied any more: what the first server has of them.
  std::vector<int64_t> Drop(const std::function<bool(int64_t place)>& possible) {
    std::vector<int64_t> dropped;
    for (auto it = groups_.begin(); it != groups_.end();) {
      bool stays = true;
      for (const int64_t place : it->first) stays &= possible(place);
      if (!stays && it->second.at.count(0) != 0) dropped.push_back(it->second.memory);
      it = stays ? std::next(it) : groups_.erase(it);
    }
    return dropped;
  }

 private:
  struct Parts {
    std::set<size_t> at;
    int64_t memory = 0;
  };
  const size_t servers_;
  std::map<std::vector<int64_t>, Parts> groups_;
};

}  // namespace mercury::fabric
