// Operations that have ended, until their users may be told: they are called back, and may ask for
// the next thing at once, so nothing is locked then.
//
// Thread-safety: plain values.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "transport/operation.h"

namespace mercury {

struct Over {
  std::shared_ptr<Operation> op;
  Status status;
};

inline void FinishAll(const std::vector<Over>& over) {
  for (const Over& each : over) each.op->Finish(each.status);
}

}  // namespace mercury
