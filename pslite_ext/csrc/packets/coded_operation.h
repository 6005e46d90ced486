// What an operation needs before it is sent: room for what its tensor's codec leaves out, or sets
// of rows, one for each slot.
//
// Thread-safety: one caller. Ownership: the operation's. Invariant: what the codec leaves out is in
// the tensor's residual, and goes with the next gradient.
#pragma once

#include "base/status.h"
#include "packets/placement.h"
#include "transport/operation.h"

namespace mercury {

// Once, before the operation is sent; kExhausted: there is no memory.
Status CodeOperation(const Placement& placement, Operation* op);

}  // namespace mercury
