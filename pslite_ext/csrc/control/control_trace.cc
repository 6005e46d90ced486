#include "control/control_trace.h"

#include "base/node_name.h"

namespace mercury {

void TraceControl(TraceLog* log, ps::Control::Command command, int node_id, int64_t bytes,
                  bool sends, int64_t now_us) {
  if (node_id < kSchedulerId) return;  // one that has no rank
  TraceEvent event;
  switch (command) {
    case ps::Control::ADD_NODE:
      event.operation = kTraceRegister;
      break;
    case ps::Control::BARRIER:
      event.operation = kTraceBarrier;
      break;
    case ps::Control::HEARTBEAT:
      event.operation = kTraceHeartbeat;
      break;
    case ps::Control::TERMINATE:
      event.operation = kTraceTerminate;
      break;
    default:
      return;
  }
  if (!sends) ++event.operation;
  event.node = TraceNodeOf(node_id);
  event.length = bytes;
  event.time_us = now_us;
  log->ring()->Add(event);
}

}  // namespace mercury
