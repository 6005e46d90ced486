// The taps of the ZMQ van: what a message of ps-lite's is in a trace.
//
// In zmq mode push, confirmation, request and answer are an event each. In mercury mode a tensor
// that goes the classic way (initial values, row-sparse, compressed and asynchronous gradients) is
// a tensor in one packet a message: the push's message is its first and last, the answer's the
// sum's; confirmations and requests are nothing that packets have.
//
// Thread-safety: all functions from any thread. Ownership: none.
#pragma once

#include <cstdint>

#include "membership.h"
#include "ps/internal/message.h"
#include "trace_log.h"

namespace mercury {

// The head of a push's or pull's message: its StoreOperation, and how many messages share the
// tensor's part on that server; the answer brings it back.
constexpr int kHeadBits = 8;
constexpr int MessagesOf(int head) { return head >> kHeadBits; }
// In the option of a push's or pull's request.
constexpr int kAsynchronousBit = 1 << 16;
// The command by which a worker's script switches the servers' recording.
constexpr int kTraceSwitchHead = -0x74726163;

TraceRole Traced(Role role);

// `bytes`: meta and data. Of a message received, the sender is its meta's.
void TraceMessage(TraceLog* log, const ps::Meta& meta, int64_t bytes, bool sends, int64_t now_us);
// A control message from or to the node of this ps-lite id.
void TraceControl(TraceLog* log, ps::Control::Command command, int node_id, int64_t bytes,
                  bool sends, int64_t now_us);

}  // namespace mercury
