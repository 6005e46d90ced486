// A better plan near the one that the rules give: other places, other destinations, another drop.
//
// It climbs: of a schedule's neighbours it takes the first that is better, until none is or until
// it has looked at as many hops as it may, which takes milliseconds. It begins at the rules'
// schedule, then at plainer and at drawn ones, the same each time.
//
// Thread-safety: pure functions, no clock. The network is as before when they return. Invariants:
// as many updates are committed as at the start; deadlines hold; an aggregator has at most one
// group; the objective is never above the start's.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/network.h"
#include "fabric/ordering.h"
#include "fabric/shipment.h"

namespace mercury::fabric {

struct Found {
  Schedule schedule;
  std::vector<Drop> dropped;
  int64_t neighbours = 0;  // so many schedules were looked at on the way
};

// `deadlines` is empty if there are none.
Found SearchNearby(Network* network, const std::vector<Shipment>& shipments, const Target& target,
                   const std::vector<int64_t>& deadlines, const Found& start);

}  // namespace mercury::fabric
