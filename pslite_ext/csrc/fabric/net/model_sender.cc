#include "fabric/net/model_sender.h"

#include <algorithm>
#include <utility>

namespace mercury::fabric {

void ModelSender::Send(int peer, ModelLetter letter, Cargo cargo) {
  if (!outbox_->Linked(peer)) return;
  letter.number = transfers_ = std::max(transfers_ + 1, kNotOfHops);
  auto theirs = Find(queues_, peer);
  if (theirs == queues_.end()) theirs = queues_.insert(theirs, {peer, {}});
  theirs->models.push_back({std::move(letter), std::move(cargo)});
}

size_t ModelSender::waiting(int peer) const {
  const auto found = Find(queues_, peer);
  return found == queues_.end() ? 0 : found->models.size();
}

bool ModelSender::IsNext(int peer) const {
  const auto end = queues_.begin() + static_cast<std::ptrdiff_t>(std::min(kModelsAtOnce, peers()));
  return std::any_of(queues_.begin(), end, [&](const Queue& queue) { return queue.peer == peer; });
}

bool ModelSender::Next(int peer, OutPacket* out) {
  if (!IsNext(peer)) return false;
  std::deque<Sending>& models = Find(queues_, peer)->models;
  Sending& sending = models.front();
  *out = PartOf(sending.cargo, sending.said_after.number, sending.offset, packet_bytes_);
  sending.offset += out->header.length;
  if (sending.offset == sending.cargo.bytes()) {
    outbox_->Post(peer, sending.said_after);
    models.pop_front();
    if (models.empty()) Gone(peer);
  }
  return true;
}

void ModelSender::Gone(int peer) {
  const auto found = Find(queues_, peer);
  if (found != queues_.end()) queues_.erase(found);
}

}  // namespace mercury::fabric
