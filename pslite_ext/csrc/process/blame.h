// Whose doing a job's failure is, as its text says: every such text begins with the node it befell
// or that brought it about.
//
// Thread-safety: pure functions. Ownership: none. Invariant: a failure that names nobody is blamed
// on nobody else.
#pragma once

#include <string>

#include "base/node_name.h"
#include "base/status.h"

namespace mercury {

// Whether it is another node's than `me`, as texts call it; "" as long as it has no rank.
bool BlamesAnother(const Status& status, const std::string& me);
bool BlamesAnother(const Status& status, int me);  // by ps-lite's number; 0: it has no rank

}  // namespace mercury
