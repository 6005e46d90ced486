// What goes straight to the server, and what by way of an aggregator: Algorithm 3 of MLfabric.
//
// Thread-safety: pure functions, no clock. The network is as before when they return. Invariants:
// the order given is kept, inside groups and across them; the first n updates go straight, each
// aggregator has at most one group, in the order of use; each group but the last aggregator's is
// gathered before everything ahead of it has arrived.
#pragma once

#include <vector>

#include "fabric/course.h"
#include "fabric/network.h"
#include "fabric/shipment.h"

namespace mercury::fabric {

// The schedule that ends first; asynchronous: of those that commit, in the mean, no later than if
// everything went straight. Of equal ones the one that sends most straight.
Schedule Aggregate(Network* network, const std::vector<Shipment>& shipments, const Target& target,
                   const std::vector<size_t>& order);

// DetAgg(n): the schedule with the first n straight, whatever it costs.
Schedule AggregateAllBut(Network* network, const std::vector<Shipment>& shipments,
                         const Target& target, const std::vector<size_t>& order, size_t direct);

}  // namespace mercury::fabric
