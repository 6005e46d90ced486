// A plan in words: why each update goes where it goes, waits, or is dropped. And the tree by which
// the model gets back to the workers.
//
// Thread-safety: pure functions. Invariant: every update, and every get, is spoken of, each in a
// line of its own.
#pragma once

#include <string>

#include "fabric/batch.h"

namespace mercury::fabric {

std::string Explain(const Batch& batch, const Plan& plan);

// Each worker of the batch asks for as many bytes as its update has, when that is available; the
// aggregators are the distributors. The batch has one server.
std::string ExplainTree(const Batch& batch);

}  // namespace mercury::fabric
