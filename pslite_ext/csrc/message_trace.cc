#include "message_trace.h"

#include <algorithm>

#include "membership.h"
#include "server_store.h"

namespace mercury {
namespace {

uint32_t NodeOf(int node_id) {
  return TraceNode(Traced(RoleOf(node_id)), static_cast<uint32_t>(RankOf(node_id)));
}

}  // namespace

TraceRole Traced(Role role) {
  return role == Role::kWorker   ? TraceRole::kWorker
         : role == Role::kServer ? TraceRole::kServer
                                 : TraceRole::kScheduler;
}

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
  event.node = NodeOf(node_id);
  event.length = bytes;
  event.time_us = now_us;
  log->ring()->Add(event);
}

void TraceMessage(TraceLog* log, const ps::Meta& meta, int64_t bytes, bool sends, int64_t now_us) {
  if (!sends && meta.sender == ps::Meta::kEmpty) return;  // who has no rank yet
  if (!meta.control.empty()) {
    return TraceControl(log, meta.control.cmd, sends ? meta.recver : meta.sender, bytes, sends,
                        now_us);
  }
  TraceEvent event;
  event.node = NodeOf(sends ? meta.recver : meta.sender);
  event.time_us = now_us;
  event.length = bytes;
  if (meta.simple_app) {
    if (!sends || !meta.request || meta.head == kTraceSwitchHead) return;
    event.operation = kTraceCommand;
    log->ring()->Add(event);
    return;
  }
  if (!meta.request && meta.option != 0) return;  // an error instead of an answer
  event.key = static_cast<uint32_t>(meta.recv_key);
  event.number = meta.push_pull_operation;
  event.parts = static_cast<uint16_t>(std::clamp(MessagesOf(meta.head), 1, 65535));
  event.initial = (meta.head & ((1 << kHeadBits) - 1)) == static_cast<int>(StoreOperation::kInit);
  event.asynchronous = meta.push && meta.request && (meta.option & kAsynchronousBit) != 0;
  if (!log->mercury()) {
    event.operation = meta.push ? (meta.request ? kTracePush : kTraceConfirm)
                                : (meta.request ? kTraceRequest : kTraceAnswer);
    log->ring()->Add(event);
    return;
  }
  if (meta.push != meta.request) return;
  event.operation = meta.push ? kTracePush : kTraceRequest;
  event.length = 0;
  log->ring()->Add(event);
  ++event.operation;
  event.length = bytes;
  log->ring()->Add(event);
}

}  // namespace mercury
