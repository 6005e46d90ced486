// Which part of all bytes each server sums, and which server a tensor begins at: one rule for all
// transports and all nodes.
//
// Servers take turns, and one with twice the share has twice the turns, spread over the cycle. With
// equal shares it is server 0, 1, 2 and so on.
//
// Thread-safety: immutable; copies are cheap. Invariants: every turn is some server's; a server
// whose share is 0 has none; the rule never changes within a protocol version.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace mercury {

class ServerShares {
 public:
  explicit ServerShares(int servers = 1);  // equal ones
  // "3,3,2": one number for each server, of any size: only their ratios count, to a sixteenth of an
  // equal share. Empty: equal ones.
  static Status FromText(const std::string& text, int servers, ServerShares* shares);

  int servers() const { return static_cast<int>(cycle_->turns_of.size()); }
  uint64_t turns() const { return cycle_->servers.size(); }  // of a cycle
  int Server(uint64_t turn) const { return cycle_->servers[turn % turns()]; }
  const std::vector<uint64_t>& TurnsOf(int server) const {
    return cycle_->turns_of[static_cast<size_t>(server)];
  }
  // Where a key begins. Consecutive keys are spread evenly.
  uint64_t HomeTurn(uint64_t key) const;
  int Home(uint64_t key) const { return Server(HomeTurn(key)); }

 private:
  struct Cycle {
    std::vector<int> servers;                     // by turn
    std::vector<std::vector<uint64_t>> turns_of;  // by server, in order
  };
  static std::shared_ptr<const Cycle> CycleOf(const std::vector<uint64_t>& shares);

  std::shared_ptr<const Cycle> cycle_;
};

}  // namespace mercury
