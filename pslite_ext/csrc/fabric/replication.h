// Which updates go to the replica with a batch, and whether the server has to wait for it.
//
// A prefix of the log (what the replica has not had, then the batch in its order) goes from the
// workers to the replica, on the network that the server's transfers leave. At the batch's last
// commit the two may differ by the divergence bound at most; if they would, the last transfer to
// the server is held until the replica is near enough.
//
// Where the replica stands on the way to the server (chains.h), it has all of a batch by itself.
// Only what it lacked before is sent to it so, and the batch's last commit waits for that.
//
// Thread-safety: pure functions, no clock. Invariants: the replica applies the server's order; what
// is frozen is a prefix of the log; the divergence at the last commit is within the bound.
#pragma once

#include <vector>

#include "fabric/batch.h"

namespace mercury::fabric {

// How far apart server and replica can be, of norms alone, after `server` and `replica` updates of
// a log with `norms`; `history` is the norm of w - w_before at the replica before the first.
double DivergenceBound(double momentum, double history, const std::vector<double>& norms,
                       size_t server, size_t replica);

// Plans the transfers to `replica`, the batch's, for `plan`, and holds its last one if need be:
// transfers, commits and the objective are then changed. `network` is the batch's, before any
// transfer.
void Replicate(const Batch& batch, const ReplicaBatch& replica,
               const std::vector<Shipment>& shipments, const Target& target, Network network,
               Plan* plan);
// The same for a plan whose target has a relay.
void ReplicateOnTheWay(const Batch& batch, const ReplicaBatch& replica,
                       const std::vector<Shipment>& shipments, const Target& target,
                       Network network, Plan* plan);

}  // namespace mercury::fabric
