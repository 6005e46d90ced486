// A plan as text: the JSON object of docs/fabric-plan.md, one line for each transfer and commit.
//
// Thread-safety: a pure function. Invariant: numbers are printed in full, so that replaying the
// transfers on the batch's network gives the same pieces; the text is ASCII.
#pragma once

#include <string>

#include "fabric/batch.h"

namespace mercury::fabric {

std::string PlanText(const Batch& batch, const Plan& plan);

}  // namespace mercury::fabric
