// The sum of one slot of a tensor that is summed by rows: sets of rows come as bytes, in parts, and
// are merged when they are whole; the sum is a set of rows, too.
//
// Thread-safety: none; an aggregator owns it. Ownership: blocks are shared with the packets that
// carry them. Invariants: a worker's set takes no more room than rows that there can be; nothing of
// a set that is refused is in the sum.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "packets/packet_pool.h"
#include "sums/sparse_sum.h"

namespace mercury {

// A set of rows of which some bytes are there.
struct RowSet {
  Block block;
  uint64_t bytes = 0;  // of all of it; 0: not known before the first part is there
  uint64_t have = 0;
};

class RowSum {
 public:
  // Of rows `first` to `last`.
  RowSum(DType dtype, uint64_t row_bytes, int64_t first, int64_t last);

  // `length` bytes at `at` of a worker's set are to be put there in `block`: kCorrupt: they do not
  // fit; kExhausted: there is no memory.
  Status Begin(size_t worker, size_t workers, uint64_t at, uint32_t length, PacketPool* pool,
               Block* block);
  // They are there. `whole`: so is the set. kCorrupt: another part came there meanwhile.
  Status End(size_t worker, uint64_t at, uint32_t length, const Block& block, PacketPool* pool,
             bool* whole);
  // What is there of a set that will never be whole.
  void Forget(size_t worker) {
    if (worker < sets_.size()) sets_[worker] = RowSet();
  }
  // Merges a set that is whole, unless `deterministic`: then all are merged by Finish, in the order
  // of ranks.
  Status Merge(size_t worker, bool deterministic);
  // All sets are in: the sum is the value now.
  Status Finish(PacketPool* pool);
  uint64_t have(size_t worker) const { return worker < sets_.size() ? sets_[worker].have : 0; }

  const Block& value() const { return value_.block; }
  uint64_t value_bytes() const { return value_.bytes; }

 private:
  uint64_t BytesMax() const;

  const uint64_t row_bytes_;
  const int64_t first_, last_;
  SparseSum sum_;
  std::vector<RowSet> sets_;  // by rank
  RowSet value_;
};

}  // namespace mercury
