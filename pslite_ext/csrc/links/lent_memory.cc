#include "links/lent_memory.h"

#include <sys/mman.h>

#include <new>
#include <utility>

#include "base/check.h"

namespace mercury {
namespace {

constexpr size_t kPageBytes = 4 << 10;  // on a system with larger ones, pages stay
constexpr size_t kAlignment = 64;

size_t RoundedUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

std::shared_ptr<LentMemory> LentMemory::Make() {
  auto made = std::make_shared<LentMemory>();
  const Status status = SharedMemory::Make(kLentBytes, &made->memory_, &made->descriptor_);
  if (status.ok()) return made;
  SayNotShared(status);
  return nullptr;
}

int LentMemory::Lend() {
  lending_ = true;
  return descriptor_.fd();
}

char* LentMemory::Get(size_t bytes) {
  if (!lending_ || bytes < kLoanBytesMin) return nullptr;
  if (const auto same = given_.find(bytes); same != given_.end() && !same->second.blocks.empty()) {
    char* block = same->second.blocks.back();
    if (!Provide(static_cast<size_t>(block - data()), bytes)) return nullptr;
    same->second.blocks.pop_back();
    return block;
  }
  if (bytes > kLentBytes - used_ || !Provide(used_, bytes)) return nullptr;
  try {
    Given& given = given_[bytes];
    if (given.blocks.capacity() <= given.made) given.blocks.reserve(2 * given.made + 1);
    ++given.made;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  const size_t room = RoundedUp(bytes, kAlignment);
  char* block = static_cast<char*>(memory_.data()) + used_;
  used_ += room;
  MERCURY_CHECK(used_ <= kLentBytes);
  return block;
}

bool LentMemory::Provide(size_t at, size_t bytes) const {
  const Status status = SharedMemory::Provide(descriptor_, at, bytes);
  if (!status.ok()) SayNotShared(status);
  return status.ok();
}

void LentMemory::Return(char* block, size_t bytes) {
  MERCURY_CHECK(Holds(block));
  const size_t at = static_cast<size_t>(block - data());
  const size_t first = RoundedUp(at, kPageBytes), end = (at + bytes) / kPageBytes * kPageBytes;
  if (first < end) madvise(block + (first - at), end - first, MADV_REMOVE);
  Given& given = given_.at(bytes);
  given.blocks.push_back(block);  // there is room
  MERCURY_CHECK(given.blocks.size() <= given.made);
}

}  // namespace mercury
