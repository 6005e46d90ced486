// A batch on its way to the planner and back: requests become a batch of the planner's indices, and
// its plan becomes places, fates and hops.
//
// Thread-safety: plain values and a pure function. Invariants: each update has a place or a fate;
// places rise by one, in the order in which updates are to be applied; hops of one goal are in the
// order in which they were reserved; a round is planned as a synchronous batch.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "fabric/live/fleet_hosts.h"
#include "fabric/live/orders.h"
#include "fabric/live/request.h"
#include "fabric/network.h"

namespace mercury::fabric {

// What is to be planned, and what the planner is to know.
struct Matter {
  FleetHosts hosts;
  std::vector<HostLink> links;
  double now_s = 0;
  int64_t delay_bound = 0;
  double momentum = 0;
  bool search = false;
  bool as_they_come = false;
  bool coded = false;
  bool by_packets = false;
  bool round = false;       // what is planned is one
  bool reduce = false;      // of an all-reduce
  int64_t version = 0;      // after all that was planned before
  int64_t first_place = 1;  // that is free
  std::vector<Request> updates;
  std::set<UpdateId> alone;      // of these: not in a chain with others
  std::vector<int> aggregators;  // workers; for the server
  // With a replica:
  struct PendingUpdate {
    int64_t place = 0;
    Request request;
  };
  std::vector<PendingUpdate> pending;  // updates that it lacks
  std::vector<int> replica_aggregators;
  double divergence_bound = 0;
  double history_norm = 0;
};

struct Draft {
  std::vector<std::pair<UpdateId, Fate>> dropped;
  std::vector<Placed> order;
  std::vector<Hop> hops;    // to the server, then to the replica
  int64_t last_commit = 0;  // the first place of the last commit
  size_t frozen = 0;        // so many of what the replica lacks are sent to it
  double end_s = 0;         // of all
};

Draft MakeDraft(const Matter& matter);

}  // namespace mercury::fabric
