#include "packets/packet_trace.h"

#include <algorithm>

namespace mercury {

TraceEvent PacketTrace::Event(int peer, uint32_t key, bool sum, const Flow& flow) const {
  TraceEvent event;
  event.key = key;
  const auto node = nodes_.find(peer);
  event.node = node != nodes_.end()
                   ? node->second
                   : TraceNode(on_server_ ? TraceRole::kWorker : TraceRole::kServer,
                               static_cast<uint32_t>(peer));
  event.number = flow.number < 0 ? 0 : flow.number + (sum ? 1 : 0);
  event.operation = sum ? kTraceRequest : kTracePush;
  event.initial = !sum && flow.initial;
  event.asynchronous = !sum && flow.asynchronous;
  event.by_host = by_host_;
  return event;
}

void PacketTrace::NoteHandedOver(int peer, uint32_t key, int64_t now_us) {
  TraceEvent event = Event(peer, key, false, *FlowOf(peer, key));
  event.time_us = now_us;
  latest_us_ = std::max(latest_us_, now_us);
  ring_->Add(event);
}

void PacketTrace::Note(int peer, uint32_t key, const Share& share, uint64_t bytes, bool slot_done,
                       int64_t now_us) {
  Flow* flow = FlowOf(peer, key);
  TraceEvent event = Event(peer, key, !on_server_, *flow);
  event.time_us = latest_us_ = std::max(latest_us_, now_us);
  if (flow->in.bytes == 0) ring_->Add(event);
  flow->in.bytes += bytes + overhead_;
  flow->in.slots += slot_done ? 1 : 0;
  if (flow->in.slots < share.count) return;
  ++event.operation;
  event.length = static_cast<int64_t>(flow->in.bytes);
  ring_->Add(event);
  flow->in = Passed();
}

void PacketTrace::Mark(int peer, uint32_t key, const Share& share, bool slot_done, int64_t now_us,
                       OutPacket* packet) {
  Flow* flow = FlowOf(peer, key);
  TraceMark mark;
  mark.first = flow->out.bytes == 0;
  flow->out.bytes += packet->header.length + overhead_;
  flow->out.slots += slot_done ? 1 : 0;
  mark.last = flow->out.slots >= share.count;
  if (!mark.first && !mark.last) return;
  mark.event = Event(peer, key, on_server_, *flow);
  mark.last_operation = on_server_ ? kTraceAnswer : kTraceConfirm;
  if (!on_server_) mark.event.operation = kTraceFirstPacket;
  mark.event.length = static_cast<int64_t>(flow->out.bytes);
  if (mark.last) flow->out = Passed();
  if (one_lane_) {
    packet->trace = mark;
    return;
  }
  TraceEvent event = mark.event;
  event.time_us = latest_us_ = std::max(latest_us_, now_us);
  event.length = 0;
  if (mark.first) ring_->Add(event);
  event.operation = mark.last_operation;
  event.length = mark.event.length;
  if (mark.last) ring_->Add(event);
}

}  // namespace mercury
