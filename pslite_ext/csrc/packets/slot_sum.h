// The sum of one slot, out of the workers' copies, and the value: the sum before it, or the first
// value, which is sent to whoever wants it.
//
// The first copy becomes the sum without being copied, if it is as sums are; later ones are added
// to it as their codec says. Or, so that sums are the same in every run, copies are kept and added
// in the order of ranks. What goes back is the sum itself, or it is coded once, as far as all
// copies have it; so it is kept as the value. What is asynchronous is added to the value when a
// copy is whole.
//
// Thread-safety: none; an aggregator owns it. Ownership: blocks are shared with the packets that
// carry them. Invariants: a value that is shared is never written to, nor is a part of the answer
// under way that all copies have; each part that is sent is summed for its check once, however many
// workers it goes to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "links/payload_checks.h"
#include "packets/packet_pool.h"
#include "sums/codec.h"

namespace mercury {

class SlotSum {
 public:
  // Whether a part at `at` needs room for the whole slot as it is coded, because the sum begins
  // with it, or because it is kept.
  bool Begins(uint64_t at, const Coded& coded, bool kept) const {
    return at == 0 && (kept || (coded.codec->is_sum() && under_way_.sum == nullptr));
  }
  // The sum of what has come.
  struct UnderWay {
    Block sum;
    uint64_t filled = 0;  // elements of it that hold something
  };
  // Adds `count` elements from `at` on, in a block of their own; parts of a worker come in order.
  // False: there is no memory.
  static bool Add(UnderWay* to, const Coded& coded, uint64_t at, uint64_t count,
                  uint64_t slot_elements, Block* part, PacketPool* pool);
  bool Add(const Coded& coded, uint64_t at, uint64_t count, uint64_t slot_elements, Block* part,
           PacketPool* pool) {
    return Add(&under_way_, coded, at, count, slot_elements, part, pool);
  }
  // Until it is put back, whoever has taken it adds to it without a lock.
  UnderWay Take() { return std::exchange(under_way_, {}); }
  void PutBack(UnderWay under_way) { under_way_ = std::move(under_way); }
  // Whether a part at `at` is one of the copy of which the parts before it are kept.
  bool GoesOn(size_t worker, const Coded& coded, uint64_t at) const;
  // Keeps them until the copy is whole.
  void Keep(size_t worker, size_t workers, const Coded& coded, uint64_t at, uint64_t count,
            Block* part);
  // All copies have `count` elements: `answer` has them as they go back. False: there is no memory.
  bool Answer(const Codec& back, uint64_t count, uint64_t slot_elements, PacketPool* pool);
  const Block& answer() const { return answer_; }
  // All copies are in: the answer is the value now. False: there is no memory.
  bool Finish(const Codec& back, uint64_t slot_elements, PacketPool* pool);
  // All copies but the first worker's are in: with that one, which stays where it is, they are
  // `copy`, as sums are, and nothing is left of them here. False: there is no memory.
  bool FinishWith(const char* first, const Codec& plain, uint64_t slot_elements, size_t workers,
                  PacketPool* pool, Block* copy);
  // A kept copy is whole: it is added to the value, which is plain, or becomes it. False: there is
  // no memory.
  bool Apply(size_t worker, uint64_t slot_elements, PacketPool* pool);
  // What was kept of a copy that will never be whole.
  void Forget(size_t worker) {
    if (worker < copies_.size()) copies_[worker] = Copy();
  }
  // A kept copy is whole, plain, and the value from now on.
  void Begin(size_t worker);

  // A sum that was made elsewhere is the value.
  void Resume(Block sum, const Codec& codec) { SetValue(std::move(sum), codec); }

  // Null: there is none yet.
  const Block& value() const { return value_; }
  const Codec& value_codec() const { return *value_codec_; }
  // The value as it is without a codec of its own. Null: there is no memory.
  Block PlainValue(uint64_t slot_elements, PacketPool* pool) const;
  // Of bytes that are not written to any more, of either of the two.
  const std::shared_ptr<PayloadChecks>& Checks(const Block& sum);

 private:
  struct Copy {
    Block block;
    Coded coded;
  };
  static bool MakeRoom(const Codec& codec, uint64_t elements, PacketPool* pool, Block* block);
  bool AddKept(uint64_t slot_elements, PacketPool* pool);
  void SetValue(Block value, const Codec& codec);

  UnderWay under_way_;
  Block answer_;
  uint64_t answered_ = 0;  // elements that have been coded for it
  Block value_;
  const Codec* value_codec_ = nullptr;
  std::vector<Copy> copies_;               // by rank
  std::shared_ptr<PayloadChecks> checks_;  // of the sum in:
  const char* checks_of_ = nullptr;
};

}  // namespace mercury
