// Whose doing a job's failure is, as its text says: every such text begins with the node it befell
// or that brought it about.
//
// Thread-safety: pure functions. Ownership: none. Invariant: a failure that names nobody is blamed
// on nobody else.
#pragma once

#include "base/node_name.h"
#include "base/status.h"

namespace mercury {

// Whether it is another node's than `me`; `me` is 0 as long as it has no rank, and thus no name.
bool BlamesAnother(const Status& status, int me);

}  // namespace mercury
