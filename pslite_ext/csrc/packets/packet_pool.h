// Memory for packets on a server: aligned blocks, handed out again and again, below a cap; very
// large ones go back to the system. They lie where workers of this host can read them, if there are
// any.
//
// Thread-safety: all functions from any thread, and blocks may end on any. Ownership: a block goes
// back to the pool when its last holder lets go; blocks may outlive the pool. Invariant: bytes in
// blocks, handed out or kept, stay at or below `bytes_max`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "links/lent_memory.h"

namespace mercury {

using Block = std::shared_ptr<char>;

class PacketPool {
 public:
  using Allocate = void* (*)(size_t alignment, size_t bytes);

  // bytes_max 0: no cap; `lends` null: nobody borrows; `allocate` is for tests.
  explicit PacketPool(uint64_t bytes_max, std::shared_ptr<LentMemory> lends = nullptr,
                      Allocate allocate = nullptr);
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  // At least `bytes`, aligned to 64; null when there is no memory or the cap is reached.
  Block Get(size_t bytes);

  uint64_t bytes() const;  // in blocks
  uint64_t bytes_handed_out() const;
  uint64_t bytes_max() const;

 private:
  struct Shelves;
  std::shared_ptr<Shelves> shelves_;
};

}  // namespace mercury
