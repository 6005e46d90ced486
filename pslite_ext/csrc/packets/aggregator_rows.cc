// Rows that come to an aggregator: sets of them, slot by slot.
#include "packets/summed_tensor.h"

namespace mercury {

Status Aggregator::BeginRows(Receiving* link, int worker, const Header& header, char** target) {
  SummedTensor* tensor = link->named.tensor;
  const RowPlace place = RowPlaceOf(header.offset);
  if (!tensor->share.FindSlot(place.slot, &link->mine)) {
    return Corrupt(tensor->declared, "rows of slot " + std::to_string(place.slot) +
                                         ", which is beyond its end or on another server");
  }
  Status status = CheckRound(*tensor, link->mine, worker, place.at, header);
  if (!status.ok()) return status;
  tensor->priority = header.priority;
  status = tensor->slots[link->mine].rows->Begin(static_cast<size_t>(worker), peers_.size(),
                                                 place.at, header.length, &pool_, &link->block);
  if (status.ok()) {
    link->at = static_cast<uint32_t>(place.at);
    *target = link->block.get() + place.at;
    return status;
  }
  if (status.code() != Code::kExhausted) return Corrupt(tensor->declared, status.detail());
  FailTensor(tensor, Status::Exhausted(NoMemory("its rows")));
  link->named = Named();
  return Status::Ok();
}

Status Aggregator::EndRows(Receiving* link, int worker, const Header& header, int64_t now_us) {
  SummedTensor* tensor = link->named.tensor;
  RowSum& rows = *tensor->slots[link->mine].rows;
  const auto w = static_cast<size_t>(worker);
  bool whole = false;
  Status status = CheckRound(*tensor, link->mine, worker, link->at, header);
  if (!status.ok()) return status;
  status = rows.End(w, link->at, header.length, link->block, &pool_, &whole);
  if (status.ok() && whole) status = rows.Merge(w, options_.deterministic);
  if (status.code() == Code::kExhausted) {
    FailTensor(tensor, Status::Exhausted(NoMemory("its rows")));
    return Status::Ok();
  }
  if (!status.ok()) return Corrupt(tensor->declared, status.detail());
  trace_.Received(worker, tensor->declared.index, tensor->share, header.length, whole, now_us);
  uint32_t& progress = tensor->progress.Of(link->mine, w);
  if (progress == 0) Begins(tensor, link->mine, worker, link->named, header.kind);
  progress += header.length;
  if (!whole) return Status::Ok();
  Acknowledge(tensor, link->mine, worker, progress);
  progress = SlotProgress::kComplete;
  CopyCame(&tensor->slots[link->mine], worker, 1, now_us);
  CopyComplete(tensor, link->mine, 1, false);
  return Status::Ok();
}

}  // namespace mercury
