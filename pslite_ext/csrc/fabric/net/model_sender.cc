#include "fabric/net/model_sender.h"

#include <algorithm>
#include <utility>

#include "fabric/chains.h"

namespace mercury::fabric {

static_assert(kUpdatesAtOnce < kTransfersMost);

void ModelSender::Send(int peer, ModelLetter letter, Cargo cargo, double share) {
  Sending sending;
  sending.share = share;
  sending.by_packets = letter.by_packets;
  letter.two = cargo.step != nullptr;
  sending.letter = std::move(letter);
  sending.kept = std::move(cargo);
  Add(peer, std::move(sending));
}

template <typename L>
ModelSender::Sending ModelSender::Passed(L letter, std::shared_ptr<const Inflow> inflow) {
  Sending sending;
  letter.two = inflow->vectors == 2;
  sending.letter = std::move(letter);
  sending.kept = inflow->cargo();
  sending.inflow = std::move(inflow);
  return sending;
}

void ModelSender::PassOn(int peer, ModelLetter letter, std::shared_ptr<const Inflow> inflow) {
  const bool by_packets = letter.by_packets;
  Sending sending = Passed(std::move(letter), std::move(inflow));
  sending.by_packets = by_packets;
  Add(peer, std::move(sending));
}

void ModelSender::PassOn(int peer, UpdatesLetter letter, std::shared_ptr<const Inflow> inflow) {
  Sending sending = Passed(std::move(letter), std::move(inflow));
  sending.share = 0;  // of what models take
  sending.by_packets = true;
  Add(peer, std::move(sending));
}

void ModelSender::Add(int peer, Sending sending) {
  if (!outbox_->Linked(peer)) return;
  sending.number = transfers_ = std::max(transfers_ + 1, kNotOfHops);
  std::visit([&](auto& letter) { letter.number = sending.number; }, sending.letter);
  auto theirs = Find(queues_, peer);
  if (theirs == queues_.end()) theirs = queues_.insert(theirs, {peer, {}});
  theirs->waiting.push_back(std::move(sending));
}

size_t ModelSender::waiting(int peer) const {
  const auto found = Find(queues_, peer);
  return found == queues_.end() ? 0 : found->waiting.size();
}

double ModelSender::share() const {
  double share = 0;
  for (const Queue& queue : queues_) {
    for (const Sending& sending : queue.waiting) share += sending.share;
  }
  return share;
}

void ModelSender::CountNoMore() {
  for (Queue& queue : queues_) {
    for (Sending& sending : queue.waiting) sending.share = 0;
  }
}

void ModelSender::Abandon() {
  for (const Queue& queue : queues_) {
    for (const Sending& sending : queue.waiting) {
      if (sending.announced) outbox_->Post(queue.peer, AbortedLetter{sending.number});
    }
  }
  queues_.clear();
}

size_t ModelSender::Queue::Next() const {
  const bool updates = std::holds_alternative<UpdatesLetter>(waiting.front().letter);
  const size_t at_once = std::min(updates ? kUpdatesAtOnce : 1, waiting.size());
  for (size_t i = 0; i < at_once; ++i) {
    const size_t place = (turn + i) % at_once;
    if (waiting[place].has_next()) return place;
  }
  return waiting.size();
}

bool ModelSender::IsNext(int peer) const {
  const auto end =
      queues_.begin() + static_cast<std::ptrdiff_t>(std::min(kModelsAtOnce, queues_.size()));
  return std::any_of(queues_.begin(), end, [&](const Queue& queue) {
    return queue.peer == peer && queue.Next() != queue.waiting.size();
  });
}

bool ModelSender::Next(int peer, double now_s, OutPacket* out) {
  if (!IsNext(peer)) return false;
  Queue& queue = *Find(queues_, peer);
  const size_t next = queue.Next();
  Sending& sending = queue.waiting[next];
  if (!std::exchange(sending.announced, true)) {
    sending.began_s = now_s;
    std::visit([&](const auto& letter) { outbox_->Post(peer, letter); }, sending.letter);
    return false;
  }
  const bool broken = sending.broken();
  if (broken) {
    outbox_->Post(peer, AbortedLetter{sending.number});
  } else {
    const Cargo cargo = sending.cargo();
    size_t most = std::min(packet_bytes_, sending.there() - sending.offset);
    if (sending.by_packets) {
      const auto bytes = static_cast<int64_t>(cargo.bytes());
      most = std::min(most, static_cast<size_t>(PassedOnPacket_bytes(bytes)));
    }
    *out = PartOf(cargo, sending.number, sending.offset, most);
    sending.offset += out->header.length;
    queue.turn = next + 1;
    if (sending.offset < cargo.bytes()) return true;
    if (std::holds_alternative<ModelLetter>(sending.letter)) takes_s_ = now_s - sending.began_s;
  }
  queue.waiting.erase(queue.waiting.begin() + static_cast<std::ptrdiff_t>(next));
  if (queue.waiting.empty()) Gone(peer);
  return !broken;
}

void ModelSender::Drop(const std::function<bool(const UpdatesLetter&)>& these) {
  for (Queue& queue : queues_) {
    for (Sending& sending : queue.waiting) {
      const auto* updates = std::get_if<UpdatesLetter>(&sending.letter);
      sending.dropped = sending.dropped || (updates != nullptr && these(*updates));
    }
  }
}

void ModelSender::Gone(int peer) {
  const auto found = Find(queues_, peer);
  if (found != queues_.end()) queues_.erase(found);
}

}  // namespace mercury::fabric
