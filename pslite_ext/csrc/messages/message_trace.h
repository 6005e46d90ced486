// The tap of the classic path: each push, confirmation, request and answer is an event of a trace.
//
// Thread-safety: from any thread. Ownership: none.
#pragma once

#include <cstdint>

#include "ps/internal/message.h"
#include "trace/trace_log.h"

namespace mercury {

// `bytes`: meta and data. Of a message received, the sender is its meta's.
void TraceMessage(TraceLog* log, const ps::Meta& meta, int64_t bytes, bool sends, int64_t now_us);

}  // namespace mercury
