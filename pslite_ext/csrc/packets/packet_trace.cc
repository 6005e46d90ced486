#include "packets/packet_trace.h"

#include <algorithm>

namespace mercury {

TraceEvent PacketTrace::Event(int peer, uint32_t key, const Share& share, bool sum,
                              const Flow& flow) const {
  TraceEvent event;
  event.key = key;
  event.node =
      TraceNode(on_server_ ? TraceRole::kWorker : TraceRole::kServer, static_cast<uint32_t>(peer));
  event.parts = static_cast<uint16_t>(std::max<uint64_t>(share.lanes(), 1));
  event.number = flow.number < 0 ? 0 : flow.number + (sum ? 1 : 0);
  event.operation = sum ? kTraceRequest : kTracePush;
  event.initial = !sum && flow.initial;
  event.asynchronous = !sum && flow.asynchronous;
  return event;
}

void PacketTrace::NoteHandedOver(int peer, uint32_t key, const Share& share, int64_t now_us) {
  TraceEvent event = Event(peer, key, share, false, *FlowOf(peer, key));
  event.time_us = now_us;
  ring_->Add(event);
}

void PacketTrace::Note(int peer, uint32_t key, const Share& share, uint64_t bytes, bool slot_done,
                       int64_t now_us) {
  Flow* flow = FlowOf(peer, key);
  TraceEvent event = Event(peer, key, share, !on_server_, *flow);
  event.time_us = now_us;
  if (flow->in.bytes == 0) ring_->Add(event);
  flow->in.bytes += bytes + overhead_;
  flow->in.slots += slot_done ? 1 : 0;
  if (flow->in.slots < share.count) return;
  ++event.operation;
  event.length = static_cast<int64_t>(flow->in.bytes);
  ring_->Add(event);
  flow->in = Way();
}

void PacketTrace::Mark(int peer, uint32_t key, const Share& share, bool slot_done,
                       OutPacket* packet) {
  Flow* flow = FlowOf(peer, key);
  packet->trace.first = flow->out.bytes == 0;
  flow->out.bytes += packet->header.length + overhead_;
  flow->out.slots += slot_done ? 1 : 0;
  packet->trace.last = flow->out.slots >= share.count;
  if (!packet->trace.first && !packet->trace.last) return;
  packet->trace.event = Event(peer, key, share, on_server_, *flow);
  packet->trace.last_operation = on_server_ ? kTraceAnswer : kTraceConfirm;
  if (!on_server_) packet->trace.event.operation = kTraceFirstPacket;
  packet->trace.event.length = static_cast<int64_t>(flow->out.bytes);
  if (packet->trace.last) flow->out = Way();
}

}  // namespace mercury
