#include "base/buffer.h"

#include <cstdlib>

namespace mercury {
namespace {

constexpr size_t kAlignment = 64;

}  // namespace

Buffer Buffer::Allocate(size_t bytes) {
  // One byte at least: a tensor of size zero has a value too.
  const size_t rounded = (bytes + kAlignment) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, rounded);
  if (memory == nullptr) return {};
  return {std::shared_ptr<void>(memory, std::free), static_cast<char*>(memory), bytes};
}

}  // namespace mercury
