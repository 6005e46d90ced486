// Which server each server's slots are summed by: its own, or, while that one is lost, the next
// one, by rank, that is there. One rule, shared by all nodes, which hear of losses, and of servers
// that come in the places of the lost, in one order.
//
// Thread-safety: a plain value. Invariant: as long as one server is there, all slots have a home
// that is.
#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

namespace mercury {

class ShardHomes {
 public:
  explicit ShardHomes(int servers = 0)
      : homes_(static_cast<size_t>(servers)), lost_(static_cast<size_t>(servers), false) {
    std::iota(homes_.begin(), homes_.end(), 0);
  }
  int Of(int shard) const { return homes_[static_cast<size_t>(shard)]; }
  // Each says whose slots have a new home by that; none if no server is left.
  std::vector<int> Lose(int server) {
    lost_[static_cast<size_t>(server)] = true;
    return Settle();
  }
  std::vector<int> Find(int server) {
    lost_[static_cast<size_t>(server)] = false;
    return Settle();
  }

 private:
  std::vector<int> Settle() {
    std::vector<int> moved;
    const size_t servers = homes_.size();
    for (size_t shard = 0; shard < servers; ++shard) {
      size_t next = shard;
      for (size_t i = 0; i < servers && lost_[next]; ++i) next = (next + 1) % servers;
      if (lost_[next] || homes_[shard] == static_cast<int>(next)) continue;
      homes_[shard] = static_cast<int>(next);
      moved.push_back(static_cast<int>(shard));
    }
    return moved;
  }

  std::vector<int> homes_;  // by server
  std::vector<bool> lost_;
};

}  // namespace mercury
