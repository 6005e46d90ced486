// How one version of the model gets to all who have asked for it: down a tree.
//
// It is Algorithm 3 of MLfabric the other way round. Distributors beside workers get the model from
// the server first and pass it on while the server serves its first group itself. The distributor
// of the last group is served first.
//
// Thread-safety: pure functions, no clock. The network is as before when they return. Invariants:
// every get is answered once; a distributor passes nothing on before it has the model; each group
// but the last one's is served by the time at which the first group is. It takes up to
// |gets|² x |distributors| steps.
#pragma once

#include <vector>

#include "fabric/network.h"
#include "fabric/shipment.h"

namespace mercury::fabric {

// One hop of the model.
struct Delivery {
  int from = kDirect;  // a distributor, else the server
  int to = kDirect;    // a distributor, else the worker of `get`
  size_t get = 0;
  int64_t bytes = 0;
  double end_s = 0;
  std::vector<RateSpan> pieces;
};

// In the order of reservation. `gets` are shipments the wrong way: hosts that want `bytes`, from
// `ready_s` on. Of the target, servers[0] has the model and the aggregators are the distributors.
std::vector<Delivery> Distribute(Network* network, const std::vector<Shipment>& gets,
                                 const Target& target);

}  // namespace mercury::fabric
