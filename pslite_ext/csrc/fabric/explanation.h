// A plan in words: why each update goes where it goes, waits, or is dropped.
//
// Thread-safety: a pure function. Invariant: every update of the batch is spoken of, each in a line
// of its own.
#pragma once

#include <string>

#include "fabric/batch.h"

namespace mercury::fabric {

std::string Explain(const Batch& batch, const Plan& plan);

}  // namespace mercury::fabric
