// What arrives is added while other lanes have their turns: that takes longer than all else that is
// done in one. A lane that brings a part to a slot whose sum another has taken leaves it to that
// one.
#include <utility>
#include <vector>

#include "packets/summed_tensor.h"

namespace mercury {

void Aggregator::AddArrived(int lane, SummedTensor* tensor, uint64_t mine) {
  const uint64_t slot_elements = tensor->share.Elements(mine);
  SlotSum::UnderWay sum;
  std::vector<Arrived> added;
  bool room = true;
  for (bool begun = false;; begun = true) {
    {
      const LaneTurn turn(&mutex_, &torn_);
      lane_ = lane;
      if (!tensor->failed.ok()) return;
      Slot& slot = tensor->slots[mine];
      if (!room) return FailTensor(tensor, Status::Exhausted(NoMemory("its sum")));
      if (begun) slot.sum.PutBack(std::move(sum));
      for (const Arrived& part : added) {
        if (part.whole) CopyComplete(tensor, mine, part.workers, false);
        if (!tensor->failed.ok()) return;
      }
      added.clear();
      slot.adds = !slot.arrived.empty();
      // Meanwhile, who was still awaited may have gone.
      if (!slot.adds && AllAreIn(slot)) SlotComplete(tensor, mine);
      if (!slot.adds) return;
      added.swap(slot.arrived);
      sum = slot.sum.Take();
    }
    for (Arrived& part : added) {
      room = room && SlotSum::Add(&sum, part.coded, part.at, part.count, slot_elements, &part.block,
                                  &pool_);
      part.block.reset();
    }
  }
}

}  // namespace mercury
