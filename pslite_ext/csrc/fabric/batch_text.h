// A batch from its text: format 1, and format 2 with several servers (docs/fabric-plan.md).
//
// Thread-safety: a pure function. Invariants: whatever does not keep the format's rules is refused
// with one line that names the field; nothing that is not asked for is looked at.
#pragma once

#include <string_view>

#include "base/status.h"
#include "fabric/batch.h"

namespace mercury::fabric {

Status ReadBatch(std::string_view text, Batch* batch);

}  // namespace mercury::fabric
