#include "fabric/net/model_sender.h"

#include <utility>

namespace mercury::fabric {

void ModelSender::Send(int peer, const Waybill& waybill, Cargo cargo) {
  if (!outbox_->Linked(peer)) return;
  Sending sending;
  sending.said_after.kind = Letter::Kind::kModel;
  sending.said_after.waybill = waybill;
  sending.said_after.waybill.number = ++transfers_;
  sending.cargo = std::move(cargo);
  sending_[peer].push_back(std::move(sending));
}

size_t ModelSender::waiting(int peer) const {
  const auto found = sending_.find(peer);
  return found == sending_.end() ? 0 : found->second.size();
}

bool ModelSender::Next(int peer, OutPacket* out) {
  const auto found = sending_.find(peer);
  if (found == sending_.end()) return false;
  Sending& sending = found->second.front();
  *out = PartOf(sending.cargo, sending.said_after.waybill.number, sending.offset, packet_bytes_);
  sending.offset += out->header.length;
  if (sending.offset == sending.cargo.bytes()) {
    outbox_->Post(peer, sending.said_after);
    found->second.pop_front();
    if (found->second.empty()) sending_.erase(found);
  }
  return true;
}

}  // namespace mercury::fabric
