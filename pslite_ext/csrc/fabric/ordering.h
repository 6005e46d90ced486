// In which order updates are sent, and which are not: Algorithms 1 and 2 of MLfabric.
//
// Thread-safety: pure functions, no clock. The network is as before when they return. Invariants:
// with deadlines, the i-th update of the order has a deadline of i or later; an update is in the
// order or dropped, never both; without deadlines nothing is dropped.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/network.h"
#include "fabric/shipment.h"

namespace mercury::fabric {

enum class DropReason { kDeadline, kOvertaken };

// An update that is not sent, and what spoke against it.
struct Drop {
  size_t shipment = 0;
  DropReason reason = DropReason::kDeadline;
  double end_s = 0;        // when it would have ended
  size_t rival = 0;        // overtaken: by whom,
  double rival_end_s = 0;  // who ends then
  int64_t contested = 0;   // deadline: so many first places were wanted by more; 0: it was too late
  bool exchanged = false;  // the local search has dropped it in another's place
};

struct Ordering {
  std::vector<size_t> order;
  std::vector<Drop> dropped;
};

// Algorithm 1: the shortest transfer first.
Ordering ShortestFirst(Network* network, const std::vector<Shipment>& shipments,
                       const Target& target);

// Algorithm 2: `deadlines[g]` is the last place in the order at which g is fresh enough. An update
// that would end after the next one has is dropped.
Ordering WithDeadlines(Network* network, const std::vector<Shipment>& shipments,
                       const Target& target, const std::vector<int64_t>& deadlines);

// The rank is the order, and what is not fresh enough at its place is dropped: what the others are
// better than.
Ordering AsTheyCome(Network* network, const std::vector<Shipment>& shipments, const Target& target,
                    const std::vector<int64_t>& deadlines);

// When all parts of `shipment` would have arrived; as Network::End and Network::Reserve.
double DirectEnd(Network* network, const Shipment& shipment, const Target& target);
double ReserveDirect(Network* network, const Shipment& shipment, const Target& target);

}  // namespace mercury::fabric
