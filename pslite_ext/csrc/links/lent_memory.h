// Memory whose blocks a process lets others of its host read, instead of copying them: a server's,
// where its sums lie.
//
// It has room for more than there is memory; a block gets its pages when it is handed out. Nothing
// comes from it before somebody borrows: where nobody does, blocks lie where they always did.
//
// Thread-safety: Lend, Holds and data from any thread; Get and Return from one at a time.
// Ownership: the mapping; what is handed out goes back, or ends with it. Invariant: blocks do not
// overlap.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "links/shared_memory.h"
#include "links/tcp.h"

namespace mercury {

constexpr size_t kLentBytes = size_t{64} << 30;  // of addresses
// Less is copied sooner than it is lent.
constexpr size_t kLoanBytesMin = 4 << 10;

class LentMemory {
 public:
  // Null: the system gives none. Then blocks are copied.
  static std::shared_ptr<LentMemory> Make();

  // Aligned to 64; null: nobody borrows, it is too small, or no room or memory is left.
  char* Get(size_t bytes);
  void Return(char* block, size_t bytes);
  bool Holds(const char* at) const { return at >= data() && at < data() + kLentBytes; }
  const char* data() const { return static_cast<const char*>(memory_.data()); }
  // The descriptor of all of it, for somebody who will borrow.
  int Lend();

 private:
  bool Provide(size_t at, size_t bytes) const;

  SharedMemory memory_;
  TcpSocket descriptor_;
  std::atomic<bool> lending_{false};
  struct Given {
    size_t made = 0;
    std::vector<char*> blocks;  // that came back; has room for all
  };
  size_t used_ = 0;                // bytes from the beginning that were ever given out
  std::map<size_t, Given> given_;  // by size
};

}  // namespace mercury
