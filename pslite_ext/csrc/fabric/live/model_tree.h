// How a model gets to the workers that have asked for it: who passes it on to whom.
//
// The plan is Distribute's (distribution.h). The distributors are askers themselves, one on each
// host, those with the fastest outgoing links: they are served first, and pass the model on. Packet
// by packet, the model goes down a chain of all (PassDown in chains.h).
//
// Thread-safety: plain values and a pure function. Invariants: each asker gets the model once, from
// the server or from one that an earlier edge serves; no edge leads from a node to itself; down a
// tree, all have it no later than if the server served each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/live/fleet_hosts.h"
#include "fabric/live/orders.h"
#include "fabric/network.h"

namespace mercury::fabric {

// Of the server's way out, what models take that still leave it when others that wait begin: one
// that goes to a slow host keeps nobody waiting.
constexpr double kWayFull = 0.9;
constexpr size_t kTreeLeast = 2;  // that have asked: fewer get it straight from the server
constexpr size_t kDistributorsMost = 8;

// `from` gives the model to `to`; nodes.
struct Edge {
  int from = kServerNode;
  int to = 0;

  bool operator==(const Edge& other) const { return from == other.from && to == other.to; }
};

// `askers` are workers of the fleet. Each but the last passes `bytes` on as they come; unless they
// have them sooner, in the mean, straight from the server.
std::vector<Edge> ModelChain(const FleetHosts& hosts, const std::vector<HostLink>& links,
                             const std::vector<int>& askers, int64_t bytes);
// At most so many `distributors` pass them on when all are there. With none, all get them from the
// server.
std::vector<Edge> ModelTree(const FleetHosts& hosts, const std::vector<HostLink>& links,
                            const std::vector<int>& askers, int64_t bytes, size_t distributors);
// Models that leave the server down a tree: what they take of its way out, 1 at most, and how long.
struct Leaving {
  double share = 1;
  double takes_s = 0;
};
Leaving LeavingOf(const FleetHosts& hosts, const std::vector<HostLink>& links,
                  const std::vector<Edge>& tree, int64_t bytes);

}  // namespace mercury::fabric
