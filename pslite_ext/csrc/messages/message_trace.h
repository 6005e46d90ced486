// The tap of the classic path: what a push, confirmation, request or answer is in a trace.
//
// In zmq mode each of the four is an event. In mercury mode a tensor that goes the classic way
// (initial values, row-sparse, compressed and asynchronous gradients) is a tensor in one packet a
// message: the push's message is its first and last, the answer's the sum's; confirmations and
// requests are nothing that packets have.
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
