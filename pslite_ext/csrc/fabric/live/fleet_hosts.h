// On which host each node is, by host index, as the scheduler knows it.
//
// Thread-safety: a plain value.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "fabric/live/node_numbers.h"

namespace mercury::fabric {

struct Reserve {
  int node = 0;
  size_t host = 0;
};

struct FleetHosts {
  std::vector<size_t> workers;  // by rank
  size_t server = 0;            // of whoever is the server
  size_t servers = 1;           // that together are that
  std::optional<size_t> replica;
  int replica_node = kReplicaNode;  // which one that is
  std::deque<Reserve> reserve;      // replicas that are to follow the server after that one
};

}  // namespace mercury::fabric
