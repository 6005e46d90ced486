// What an operation sends instead of its memory: elements as its tensor's codec has them, or sets
// of rows, one for each slot.
//
// Thread-safety: one caller, but for CodeElements, which lanes call for elements of their own.
// Ownership: the operation's. Invariant: what the codec leaves out is in the tensor's residual, and
// goes with the next gradient.
#pragma once

#include "base/status.h"
#include "packets/placement.h"
#include "transport/operation.h"

namespace mercury {

// Once, before the operation is sent; kExhausted: there is no memory.
Status CodeOperation(const Placement& placement, Operation* op);
// Elements of one that has a codec, just before they are sent, so that nothing waits until all are
// coded: each once, `first` a multiple of what is coded together. Where they are.
const char* CodeElements(const Operation& op, uint64_t first, uint64_t count);

}  // namespace mercury
