// A worker comes while the job runs. Until it is let in, it is a newcomer: it declares tensors and
// fetches values, and nobody waits for anything of it.
//
//   peer:  out --Expect--> newcomer --LetIn--> in
//
// A worker that is in lets it in, between two of its own rounds: of no slot is a sum complete then
// that this worker has not had, nor can one be before it sends again. So the newcomer is in all
// sums from the next one on.
#include <algorithm>
#include <utility>

#include "base/node_name.h"
#include "packets/summed_tensor.h"

namespace mercury {

void Aggregator::Expect(int worker) {
  const LaneTurn turn(&mutex_, &torn_);
  const auto w = static_cast<size_t>(worker);
  auto peer = std::make_unique<Peer>(options_.levels_max);
  peer->packet_bytes = options_.packet_bytes;
  peer->rates.resize(static_cast<size_t>(options_.lanes), 0);
  peer->out = peer->departed = peer->is_new = true;
  peers_[w] = std::move(peer);
  for (int l = 0; l < options_.lanes; ++l) {
    links_[static_cast<size_t>(LinkOf(worker, l, options_.lanes))]->named = Named();
  }
  for (auto& [key, tensor] : tensors_) {
    tensor->number_of[w] = -1;
    tensor->unit_sent[w] = 0;
    for (uint64_t i = 0; i < tensor->slots.size(); ++i) {
      // What had come of the one before it may still be in a sum under way.
      if (!tensor->progress.Takes(i, w)) tensor->progress.Forget(i, w);
    }
  }
}

Status Aggregator::LetIn(int worker, int lane) {
  const LaneTurn turn(&mutex_, &torn_);
  lane_ = lane;
  const auto w = static_cast<size_t>(worker);
  Peer& peer = *peers_[w];
  if (!peer.is_new) {
    if (!peer.out) return Status::Ok();
    return Status::Internal(NodeName(Role::kWorker, worker) + " is let in, and has not come");
  }
  for (auto& [key, tensor] : tensors_) {
    for (uint64_t i = 0; tensor->failed.ok() && i < tensor->slots.size(); ++i) {
      if (tensor->progress.Takes(i, w)) {
        return Status::Internal(NodeName(Role::kWorker, worker) +
                                " is let in while sums have copies of who was there before");
      }
    }
  }
  peer.out = peer.departed = peer.is_new = false;
  ++live_;
  for (auto& [key, tensor] : tensors_) {
    for (Slot& slot : tensor->slots) {
      slot.in = 0;
      slot.in_from_afar = false;
    }
    for (Resumption& each : tensor->resumptions) each.Expect(w);
  }
  return Status::Ok();
}

// Its values are not needed any more, by anybody.
void Aggregator::Release(uint64_t key) {
  const LaneTurn turn(&mutex_, &torn_);
  const auto found = tensors_.find({key, false});
  if (found == tensors_.end() || !found->second->failed.ok()) return;
  SummedTensor* tensor = found->second.get();
  tensor->failed = Status::Closed("tensor '" + tensor->declared.name + "' has been released");
  for (const auto& peer : peers_) {
    peer->ready.Remove([tensor](const Ready& ready) { return ready.tensor == tensor; });
  }
  for (const auto& link : links_) {
    if (link->named.tensor == tensor) link->named = Named();
  }
  kept_ -= std::exchange(tensor->kept, 0);
  tensor->slots = std::vector<Slot>();
  tensor->resumptions = std::vector<Resumption>();
  tensor->progress = SlotProgress();
}

// What only those that are in may say.
bool Aggregator::MaySay(const Peer& peer, PacketKind kind) {
  if (!peer.is_new) return true;
  return kind == PacketKind::kDeclare || kind == PacketKind::kFetch || kind == PacketKind::kAsk ||
         kind == PacketKind::kNumber || kind == PacketKind::kGoodbye || kind == PacketKind::kStands;
}

// Of those who fetch a slot's value, somebody to whom it matters that nobody will give one.
bool Aggregator::AwaitsFirst(const Slot& slot) const {
  return std::any_of(slot.waiting.begin(), slot.waiting.end(),
                     [this](int worker) { return !peers_[static_cast<size_t>(worker)]->is_new; });
}

}  // namespace mercury
