// Which way a model goes to the workers that have asked for it: who passes it on to whom.
//
// The plan is Distribute's (distribution.h). Distributors are the askers themselves, one on a host,
// those with the fastest ways out: they are served first, and by the way.
//
// Thread-safety: plain values and a pure function. Invariants: each asker gets the model once, from
// the server or from one that gets it by an edge before; nobody gives it to itself.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/live/fleet_hosts.h"
#include "fabric/live/orders.h"
#include "fabric/network.h"

namespace mercury::fabric {

// `from` gives the model to `to`; nodes.
struct Edge {
  int from = kServerNode;
  int to = 0;

  bool operator==(const Edge& other) const { return from == other.from && to == other.to; }
};

// Of `askers`, workers of the fleet, at most so many `distributors` pass `bytes` on. With none, all
// get it from the server.
std::vector<Edge> ModelTree(const FleetHosts& hosts, const std::vector<HostLink>& links,
                            const std::vector<int>& askers, int64_t bytes, size_t distributors);

}  // namespace mercury::fabric
