// What those hear who wait for a worker that has finished.
//
// Thread-safety: a pure function.
#pragma once

#include "base/node_name.h"
#include "base/status.h"

namespace mercury {

inline Status HasLeft(int worker) {
  return Status::PeerLost(NodeName(Role::kWorker, worker) +
                          " has finished and pushes no more, but others wait for it: have all "
                          "workers the same number of batches?")
      .By({Blame::kNamed, NodeId(Role::kWorker, worker)});
}

}  // namespace mercury
