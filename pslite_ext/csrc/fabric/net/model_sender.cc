#include "fabric/net/model_sender.h"

#include <algorithm>
#include <utility>

namespace mercury::fabric {

void ModelSender::Send(int peer, const Waybill& waybill, Cargo cargo) {
  if (!outbox_->Linked(peer)) return;
  Sending sending;
  sending.said_after.kind = Letter::Kind::kModel;
  sending.said_after.waybill = waybill;
  transfers_ = std::max(transfers_ + 1, kNotOfHops);
  sending.said_after.waybill.number = transfers_;
  sending.cargo = std::move(cargo);
  std::deque<Sending>& theirs = sending_[peer];
  if (theirs.empty()) order_.push_back(peer);
  theirs.push_back(std::move(sending));
}

size_t ModelSender::waiting(int peer) const {
  const auto found = sending_.find(peer);
  return found == sending_.end() ? 0 : found->second.size();
}

bool ModelSender::IsNext(int peer) const {
  const auto end = order_.begin() + static_cast<std::ptrdiff_t>(std::min(kModelsAtOnce, peers()));
  return std::find(order_.begin(), end, peer) != end;
}

bool ModelSender::Next(int peer, OutPacket* out) {
  if (!IsNext(peer)) return false;
  std::deque<Sending>& theirs = sending_.at(peer);
  Sending& sending = theirs.front();
  *out = PartOf(sending.cargo, sending.said_after.waybill.number, sending.offset, packet_bytes_);
  sending.offset += out->header.length;
  if (sending.offset == sending.cargo.bytes()) {
    outbox_->Post(peer, sending.said_after);
    theirs.pop_front();
    if (theirs.empty()) Gone(peer);
  }
  return true;
}

void ModelSender::Gone(int peer) {
  sending_.erase(peer);
  order_.erase(std::remove(order_.begin(), order_.end(), peer), order_.end());
}

}  // namespace mercury::fabric
