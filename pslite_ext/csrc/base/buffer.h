// Bytes with their owner: the memory of a received message, or memory of ours.
//
// Thread-safety: a plain value; the owner's count is atomic.
#pragma once

#include <cstddef>
#include <memory>

#include "base/sum_once.h"

namespace mercury {

struct Buffer {
  std::shared_ptr<void> owner;
  char* data = nullptr;
  size_t bytes = 0;
  // Of bytes that do not change any more while it is there.
  std::shared_ptr<SumOnce> sum = nullptr;
  static Buffer Allocate(size_t bytes);  // data is nullptr when there is no memory
};

}  // namespace mercury
