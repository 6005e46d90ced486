// From a batch to its plan: order, aggregation, replication.
//
// Thread-safety: pure functions, no clock. Invariants: the same batch gives the same plan; every
// update is in the plan's order or dropped; with the search, the objective is never above the one
// without it, with as many commits.
#pragma once

#include <vector>

#include "fabric/batch.h"

namespace mercury::fabric {

struct PlanOptions {
  bool search = false;        // improve on the rules by a bounded local search
  bool as_they_come = false;  // asynchronous: no order but that of the batch (AsTheyCome)
};

Plan PlanBatch(const Batch& batch, const PlanOptions& options);

// The batch as those who plan it see it.
std::vector<Shipment> ShipmentsOf(const Batch& batch);
Target TargetOf(const Batch& batch);
// Asynchronous: the last place at which each update is fresh enough. Synchronous: empty.
std::vector<int64_t> DeadlinesOf(const Batch& batch);

}  // namespace mercury::fabric
