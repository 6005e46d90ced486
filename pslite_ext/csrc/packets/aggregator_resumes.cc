// An aggregator that takes the place of a lost server's: it knows nothing of its slots, and asks
// the workers (resumption.h).
//
//   slot:  unknown --all have said where they stand--> known --> empty, after that round
//                                                      some are behind --given--> empty
//
// Only those who have been let in since the last round are ahead of others and have no sum to give:
// what they were given comes of it, and who gave it is lost, too. Nobody else can get that sum any
// more, so it is the newcomers who cannot stay.
#include <algorithm>
#include <utility>

#include "base/node_name.h"
#include "packets/summed_tensor.h"

namespace mercury {

// Workers keep dense sums, and values that they have fetched; not rows.
Aggregator::Held Aggregator::OnlyHere() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  Held held;
  for (const auto& [key, tensor] : tensors_) {
    if (!tensor->failed.ok()) continue;
    if (tensor->rows()) return {tensor->declared.name, true, false};
    for (const Slot& slot : tensor->slots) {
      if (slot.is_first && !slot.fetched) held.tensor = tensor->declared.name;
      held.fetched = held.fetched || (slot.is_first && slot.fetched);
    }
  }
  return held;
}

bool Aggregator::Stands(const SummedTensor& tensor, uint64_t mine) {
  return tensor.resumptions.empty() || tensor.resumptions[mine].over();
}

Status Aggregator::Resume(int worker, const Header& header) {
  SummedTensor* tensor = peers_[static_cast<size_t>(worker)]->tensors[header.tensor].tensor;
  if (!tensor->failed.ok()) return Status::Ok();
  uint64_t mine = 0;
  if (!tensor->share.FindSlot(header.offset, &mine) || tensor->resumptions.empty() ||
      !tensor->resumptions[mine].Stands(static_cast<size_t>(worker), header.round,
                                        header.priority)) {
    return Corrupt(tensor->declared, "where it stands with slot " + std::to_string(header.offset) +
                                         ", which it has said before, or which is another's");
  }
  if (!tensor->resumptions[mine].over()) {
    TryResume(tensor, mine);
    return Status::Ok();
  }
  // It was let in since then, and stands where the others do.
  if (header.round != tensor->slots[mine].round) {
    return Corrupt(tensor->declared, "it was let in, and stands at another round");
  }
  SayResumed(tensor, mine, worker);
  return Status::Ok();
}

void Aggregator::SayResumed(SummedTensor* tensor, uint64_t mine, int worker) {
  const auto number = tensor->number_of[static_cast<size_t>(worker)];
  OutPacket resumed =
      TextPacket(PacketKind::kResumed, static_cast<uint32_t>(number), tensor->share.Slot(mine), "");
  resumed.header.round = tensor->slots[mine].round;
  Send(worker, std::move(resumed));
}

// As far as it is known where all stand.
void Aggregator::TryResume(SummedTensor* tensor, uint64_t mine) {
  const Resumption& resumption = tensor->resumptions[mine];
  if (live_ == 0 || !resumption.Known()) return;
  if (!resumption.Consistent()) {
    return FailTensor(tensor, Status::Internal("workers are more than one round apart"));
  }
  if (resumption.AnyBehind()) return AskForSum(tensor, mine);
  Resumed(tensor, mine);
}

void Aggregator::AskForSum(SummedTensor* tensor, uint64_t mine) {
  Resumption& resumption = tensor->resumptions[mine];
  if (resumption.asked >= 0) return;
  const int giver = resumption.Giver();
  if (giver < 0 && !tensor->rows() && options_.unfit) {
    for (const int worker : resumption.Ahead()) options_.unfit(worker);
    return;
  }
  if (giver < 0) {
    return FailTensor(tensor, Status::PeerLost("its last sum was lost with " +
                                               NodeName(Role::kServer, options_.server)));
  }
  resumption.asked = giver;
  const auto number = tensor->number_of[static_cast<size_t>(giver)];
  OutPacket wanted =
      TextPacket(PacketKind::kWanted, static_cast<uint32_t>(number), tensor->share.Slot(mine), "");
  wanted.header.round = resumption.round();
  Send(giver, std::move(wanted));
}

Status Aggregator::BeginGiven(Receiving* link, int worker, const Header& header, char** target) {
  SummedTensor* tensor = link->named.tensor;
  const Codec& codec = *link->named.coded.codec;
  uint64_t mine = 0;
  const bool asked = tensor->share.FindSlot(header.offset, &mine) && !tensor->rows() &&
                     !tensor->resumptions.empty() && tensor->resumptions[mine].asked == worker &&
                     header.round == tensor->resumptions[mine].round();
  const bool fits = asked && (codec.plain || codec.back) &&
                    header.length == codec.bytes(tensor->share.Elements(mine)) &&
                    header.priority >= 0 && header.priority <= options_.num_workers;
  if (!fits) return Corrupt(tensor->declared, "a sum that nobody asked it for");
  link->block = pool_.Get(std::max<uint64_t>(header.length, 1));
  if (link->block == nullptr) {
    FailTensor(tensor, Status::Exhausted(NoMemory("its sum")));
    link->named = Named();
    return Status::Ok();
  }
  link->mine = mine;
  *target = link->block.get();
  return Status::Ok();
}

Status Aggregator::EndGiven(Receiving* link, int worker, const Header& header) {
  SummedTensor* tensor = std::exchange(link->named.tensor, nullptr);
  Block sum = std::move(link->block);
  if (tensor == nullptr || !tensor->failed.ok()) return Status::Ok();
  Resumption& resumption = tensor->resumptions[link->mine];
  Slot& slot = tensor->slots[link->mine];
  if (resumption.asked != worker) return Status::Ok();  // it has been dropped meanwhile
  resumption.asked = -1;
  if (slot.sum.value() == nullptr) {
    slot.sum.Resume(std::move(sum), *link->named.coded.codec);
    slot.workers = header.priority;
  }
  if (resumption.over()) {
    GiveWaiting(tensor, link->mine);
  } else {
    Resumed(tensor, link->mine);
  }
  return Status::Ok();
}

void Aggregator::Resumed(SummedTensor* tensor, uint64_t mine) {
  Resumption& resumption = tensor->resumptions[mine];
  Slot& slot = tensor->slots[mine];
  resumption.End();
  slot.round = resumption.round();
  for (size_t w = 0; w < peers_.size(); ++w) {
    if (peers_[w]->out || !resumption.HasSaid(w)) continue;  // it has been let in, and will say
    const int worker = static_cast<int>(w);
    SayResumed(tensor, mine, worker);
    if (!resumption.Behind(w)) continue;
    if (resumption.Wants(w)) {
      Queue(worker, tensor->priority,
            {tensor, mine, slot.sum.value(), &slot.sum.value_codec(), 0, slot.round, slot.workers,
             true, 0});
    } else {
      SayTaken(tensor, mine, worker, slot.workers);
    }
  }
  if (slot.waiting.empty()) return;
  if (slot.sum.value() != nullptr) return GiveWaiting(tensor, mine);
  AskForValue(tensor, mine);
}

// Somebody fetches what the lost server had.
void Aggregator::AskForValue(SummedTensor* tensor, uint64_t mine) {
  const Resumption& resumption = tensor->resumptions[mine];
  if (resumption.Giver() >= 0 && tensor->slots[mine].round == resumption.round()) {
    return AskForSum(tensor, mine);
  }
  if (tensor->slots[mine].round == 0 && resumption.AwaitsFirst()) return;  // it comes anew
  if (tensor->slots[mine].round != resumption.round()) return;             // a sum is under way
  FailTensor(tensor, Status::PeerLost("its value was lost with " +
                                      NodeName(Role::kServer, options_.server)));
}

}  // namespace mercury
