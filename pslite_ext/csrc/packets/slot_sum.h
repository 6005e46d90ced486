// The sum of one slot, out of the workers' copies, and the one before it, which is sent to all.
//
// The first copy becomes the sum without being copied; later ones are added to it. Or, so that sums
// are the same in every run, copies are kept and added in the order of ranks.
//
// Thread-safety: none; an aggregator owns it. Ownership: blocks are shared with the packets that
// carry them. Invariants: a finished sum is never written to, nor is a part of the sum under way
// that all copies have; each part that is sent is summed for its check once, however many workers
// it goes to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "packets/packet_pool.h"
#include "sums/sum_kernels.h"

namespace mercury {

class SlotSum {
 public:
  // Whether a piece at `at` needs room for the whole slot, because the sum begins with it.
  bool Begins(size_t at, bool deterministic) const;
  // A piece, in a block of its own; pieces of a worker come in order.
  void Add(DType dtype, size_t at, size_t length, Block* piece);
  // The same where order counts.
  void Keep(size_t worker, size_t workers, size_t at, size_t length, Block* piece);
  // All copies are in: the sum is the last one now.
  void Finish(DType dtype, size_t slot_bytes);

  // Null: there is none yet.
  const Block& last() const { return last_; }
  const Block& under_way() const { return sum_; }
  // Crc32c(0, part) of a part that is not written to any more, of either of the two.
  uint32_t Crc(const Block& sum, uint32_t at, uint32_t length);

 private:
  struct Part {
    uint32_t at, length, crc;
  };

  Block sum_, last_;
  std::vector<Block> copies_;  // by rank
  uint32_t filled_ = 0;        // bytes of `sum_` that hold something
  std::vector<Part> parts_;    // of the sum in:
  const char* parts_of_ = nullptr;
};

}  // namespace mercury
