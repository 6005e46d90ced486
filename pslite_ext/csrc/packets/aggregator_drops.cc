// A worker has gone, and the job goes on: its slots wait for the others alone.
//
//   its copy of a slot   none of it      part of it             all of it
//   what becomes of it   not awaited     stays, not awaited     stays
//
// A part is a whole packet. Copies that are kept until they are whole (in the order of ranks, by
// rows, asynchronously) do not stay in part.
#include <algorithm>
#include <utility>

#include "packets/summed_tensor.h"

namespace mercury {

Status Aggregator::NoFirstValue() {
  return Status::PeerLost("worker 0 has gone, and had not given the first value");
}

bool Aggregator::AllAreIn(const Slot& slot) const {
  return live_ != 0 && slot.complete - slot.out == live_;
}

void Aggregator::Drop(int worker, int lane) {
  const LaneTurn turn(&mutex_, &torn_);
  lane_ = lane;
  DropNow(worker);
}

void Aggregator::DropNow(int worker) {
  Peer& peer = *peers_[static_cast<size_t>(worker)];
  if (peer.out && !peer.is_new) return;
  const bool had_copies = !std::exchange(peer.is_new, false);
  if (had_copies) --live_;
  peer.out = peer.departed = true;
  peer.first.clear();
  peer.ready.Remove([](const Ready& /*ready*/) { return true; });
  // A lane may still receive into their blocks.
  for (int l = 0; l < options_.lanes; ++l) {
    links_[static_cast<size_t>(LinkOf(worker, l, options_.lanes))]->named = Named();
  }
  for (auto& [key, tensor] : tensors_) {
    if (tensor->failed.ok()) DropFrom(tensor.get(), worker, had_copies);
  }
}

// `had_copies`: else it was a newcomer, and what there is are copies of who was there before.
void Aggregator::DropFrom(SummedTensor* tensor, int worker, bool had_copies) {
  const auto w = static_cast<size_t>(worker);
  for (uint64_t i = 0; i < tensor->slots.size() && tensor->failed.ok(); ++i) {
    Slot& slot = tensor->slots[i];
    const auto waits = std::find(slot.waiting.begin(), slot.waiting.end(), worker);
    if (waits != slot.waiting.end()) slot.waiting.erase(waits);
    if (slot.giver == worker) slot.giver = -1;
    const bool of_sum = !tensor->declared.asynchronous && tensor->progress.Takes(i, w);
    if (of_sum && had_copies) {
      DropFromSum(tensor, i, worker);
    } else if (!of_sum) {
      slot.sum.Forget(w);
      if (tensor->rows()) slot.rows->Forget(w);
      tensor->progress.Forget(i, w);
    }
    slot.in = 0;
    slot.in_from_afar = false;
    if (!slot.adds && AllAreIn(slot)) SlotComplete(tensor, i);
    if (!tensor->resumptions.empty()) DropFromResumption(tensor, i, worker);
  }
  // Nobody else gives first values.
  const bool awaits = std::any_of(tensor->slots.begin(), tensor->slots.end(),
                                  [this](const Slot& slot) { return AwaitsFirst(slot); });
  if (worker == 0 && awaits && tensor->failed.ok() && tensor->resumptions.empty()) {
    FailTensor(tensor, NoFirstValue());
  }
}

// Whether it was asked for a sum, or, later, for a value that others fetch: another one is asked.
void Aggregator::DropFromResumption(SummedTensor* tensor, uint64_t mine, int worker) {
  Resumption& resumption = tensor->resumptions[mine];
  resumption.Drop(static_cast<size_t>(worker));
  const bool asked = resumption.asked == worker;
  if (asked) resumption.asked = -1;
  if (!resumption.over()) return TryResume(tensor, mine);
  if (asked && !tensor->slots[mine].waiting.empty()) AskForValue(tensor, mine);
}

// Some of its copy has come.
void Aggregator::DropFromSum(SummedTensor* tensor, uint64_t mine, int worker) {
  Slot& slot = tensor->slots[mine];
  const auto w = static_cast<size_t>(worker);
  const bool whole = tensor->progress.Of(mine, w) == SlotProgress::kComplete;
  bool stays = whole || !(options_.deterministic || tensor->rows());
  bool counted = whole;
  // What has not been added yet is not.
  for (const Arrived& part : slot.arrived) {
    if (part.worker != worker) continue;
    stays = stays && part.at != 0;
    counted = counted && !part.whole;
  }
  slot.arrived.erase(std::remove_if(slot.arrived.begin(), slot.arrived.end(),
                                    [worker](const Arrived& p) { return p.worker == worker; }),
                     slot.arrived.end());
  if (stays) {
    if (!counted) ++slot.complete;
    ++slot.out;
    tensor->progress.Of(mine, w) = SlotProgress::kComplete;
    return AnswerPart(tensor, mine);
  }
  --slot.begun;
  slot.sum.Forget(w);
  if (tensor->rows()) slot.rows->Forget(w);
  tensor->progress.Forget(mine, w);
}

}  // namespace mercury
