// Whose doing a job's failure is: a process whose job failed for what another did ends with an exit
// code of its own.
//
// Thread-safety: pure functions. Ownership: none. Invariant: a failure that names nobody is blamed
// on nobody else.
#pragma once

#include <optional>

#include "base/status.h"

namespace mercury {

// Whether it is another node's than `me`; null as long as it has no rank.
bool BlamesAnother(const Status& status, const std::optional<Party>& me);
bool BlamesAnother(const Status& status, int me);  // by ps-lite's number; 0: it has no rank

}  // namespace mercury
