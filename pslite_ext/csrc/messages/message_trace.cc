#include "messages/message_trace.h"

#include <algorithm>

#include "messages/classic_wire.h"

namespace mercury {

void TraceMessage(TraceLog* log, const ps::Meta& meta, int64_t bytes, bool sends, int64_t now_us) {
  TraceEvent event;
  event.node = TraceNodeOf(sends ? meta.recver : meta.sender);
  event.time_us = now_us;
  event.length = bytes;
  if (meta.simple_app) return;  // letters/errands.h knows which of them are the script's
  if (!meta.request && meta.option != 0) return;  // an error instead of an answer
  event.key = static_cast<uint32_t>(meta.recv_key);
  event.number = meta.push_pull_operation;
  event.parts = static_cast<uint16_t>(std::clamp(MessagesOf(meta.head), 1, 65535));
  event.initial = (meta.head & ((1 << kHeadBits) - 1)) == static_cast<int>(StoreOperation::kInit);
  event.asynchronous = meta.push && meta.request && (meta.option & kAsynchronousBit) != 0;
  event.ahead = !meta.push && meta.request && (meta.option & kBehindPushBit) != 0;
  event.operation = meta.push ? (meta.request ? kTracePush : kTraceConfirm)
                              : (meta.request ? kTraceRequest : kTraceAnswer);
  log->ring()->Add(event);
}

}  // namespace mercury
