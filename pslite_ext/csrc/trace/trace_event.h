// What a tap tells the trace: one message, or one share of a tensor that has begun or ended to
// move. Fixed in size, so that a ring can hold it; all that a record says beyond it is worked out
// later, by trace_numbering.h.
//
// Thread-safety: plain values. Invariant: the codes are those of docs/trace-format.md.
#pragma once

#include <cstdint>

#include "base/node_name.h"

namespace mercury {

// Of the four operations of a set, in the order of their numbers; a worker's codes are these, a
// server's the same plus four.
enum TraceStage : uint8_t { kTracePush, kTraceConfirm, kTraceRequest, kTraceAnswer };
constexpr int kTraceStages = 4;

enum TraceOperation : uint8_t {
  kTraceCommand = 8,
  kTraceReply = 9,      // to a command
  kTraceRegister = 10,  // to send; to receive it is the code above, as for the next three
  kTraceBarrier = 12,
  kTraceHeartbeat = 14,
  kTraceTerminate = 16,
  kTraceFirstPacket = 18,  // of a push, sent
};

// What a node has with the scheduler, rather than with the other end of its training traffic.
constexpr bool IsSchedulerTraffic(uint8_t operation) {
  return operation >= kTraceRegister && operation < kTraceFirstPacket;
}

enum class TraceRole : uint8_t { kWorker, kServer, kScheduler };

// One number for a node, as the binary form has it.
constexpr uint32_t TraceNode(TraceRole role, uint32_t rank) {
  return rank * 3 + static_cast<uint32_t>(role);
}
inline TraceRole Traced(Role role) {
  return role == Role::kWorker   ? TraceRole::kWorker
         : role == Role::kServer ? TraceRole::kServer
                                 : TraceRole::kScheduler;
}
// By ps-lite's number.
inline uint32_t TraceNodeOf(int node_id) {
  return TraceNode(Traced(RoleOf(node_id)), static_cast<uint32_t>(RankOf(node_id)));
}
constexpr TraceRole TraceRoleOf(uint32_t node) { return static_cast<TraceRole>(node % 3); }
constexpr uint32_t TraceRankOf(uint32_t node) { return node / 3; }

struct TraceEvent {
  int64_t time_us = 0;        // of the process's monotonic clock
  int64_t length = 0;         // bytes
  uint32_t key = 0;           // index of the parameter
  uint32_t node = 0;          // the other end
  int32_t number = 0;         // of the push or pull, in the order of its worker's dispatch
  uint16_t parts = 1;         // events that make up this record: messages
  uint8_t operation = 0;      // a stage, or one of TraceOperation
  bool initial = false;       // worker 0 brings in the first value
  bool asynchronous = false;  // a push of a tensor whose server waits for nobody
  bool by_host = false;       // seen by the sums of this host, not by the worker that makes them
  bool ahead = false;         // a request right behind its push: it did not wait for a confirmation
};

}  // namespace mercury
