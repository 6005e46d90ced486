// The tap of the control plane: what a control message is in a trace.
//
// Thread-safety: all functions from any thread. Ownership: none.
#pragma once

#include <cstdint>

#include "ps/internal/message.h"
#include "trace/trace_log.h"

namespace mercury {

// A control message from or to the node of this ps-lite id.
void TraceControl(TraceLog* log, ps::Control::Command command, int node_id, int64_t bytes,
                  bool sends, int64_t now_us);

}  // namespace mercury
