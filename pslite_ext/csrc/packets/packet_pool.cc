#include "packets/packet_pool.h"

#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

#include "base/check.h"

namespace mercury {
namespace {

constexpr size_t kAlignment = 64;
// Blocks of 256 bytes ... 64 GiB: of a slot that is summed by rows, the sum may have them all.
constexpr size_t kClassMin = 8, kClassMax = 36;
constexpr size_t kKeptBytesMax = size_t{64} << 20;  // larger ones go back to the system

size_t ClassOf(size_t bytes) {
  size_t c = kClassMin;
  while (c <= kClassMax && (size_t{1} << c) < bytes) ++c;
  return c;
}

// Three quarters of a power of two exist, too: less is lost.
size_t BlockBytes(size_t c, bool short_one) {
  return short_one ? (size_t{3} << c) / 4 : size_t{1} << c;
}

}  // namespace

struct PacketPool::Shelves {
  ~Shelves() {
    for (auto& shelf : free) {
      for (char* block : shelf) {
        if (!IsLent(block)) std::free(block);  // the others go as a whole
      }
    }
  }
  std::mutex mutex;  // guards what follows
  std::array<std::vector<char*>, 2 * (kClassMax + 1)> free;
  uint64_t bytes = 0, handed_out = 0, bytes_max = 0;
  std::shared_ptr<LentMemory> lends;
  Allocate allocate = nullptr;

  bool IsLent(const char* block) const { return lends != nullptr && lends->Holds(block); }
  char* New(size_t block_bytes) const {
    char* lent = lends != nullptr ? lends->Get(block_bytes) : nullptr;
    return lent != nullptr ? lent : static_cast<char*>(allocate(kAlignment, block_bytes));
  }
  void Delete(char* block, size_t block_bytes) const {
    if (IsLent(block)) return lends->Return(block, block_bytes);
    std::free(block);
  }

  // Gives back to the system what is kept for other sizes.
  void Trim() {
    for (size_t i = 0; i < free.size(); ++i) {
      for (char* block : free[i]) {
        Delete(block, BlockBytes(i / 2, i % 2 != 0));
        bytes -= BlockBytes(i / 2, i % 2 != 0);
      }
      free[i].clear();
    }
  }
};

PacketPool::PacketPool(uint64_t bytes_max, std::shared_ptr<LentMemory> lends, Allocate allocate)
    : shelves_(std::make_shared<Shelves>()) {
  shelves_->lends = std::move(lends);
  shelves_->bytes_max = bytes_max;
  shelves_->allocate = allocate != nullptr ? allocate : std::aligned_alloc;
}

PacketPool::~PacketPool() = default;

Block PacketPool::Get(size_t bytes) {
  const size_t c = ClassOf(bytes);
  if (c > kClassMax) return nullptr;
  const bool short_one = bytes <= BlockBytes(c, true);
  const size_t block_bytes = BlockBytes(c, short_one);
  Shelves& shelves = *shelves_;
  std::unique_lock<std::mutex> lock(shelves.mutex);
  auto& shelf = shelves.free[2 * c + (short_one ? 1 : 0)];
  char* block = nullptr;
  if (!shelf.empty()) {
    block = shelf.back();
    shelf.pop_back();
  } else {
    const auto fits = [&] {
      return shelves.bytes_max == 0 || shelves.bytes + block_bytes <= shelves.bytes_max;
    };
    if (!fits()) shelves.Trim();
    if (!fits()) return nullptr;
    block = shelves.New(block_bytes);
    if (block == nullptr) return nullptr;
    shelves.bytes += block_bytes;
    // So that giving a block back needs no memory.
    const size_t blocks = shelf.size() + shelves.bytes / block_bytes;
    if (shelf.capacity() < blocks) {
      try {
        shelf.reserve(2 * blocks);
      } catch (const std::bad_alloc&) {
        shelves.Delete(block, block_bytes);
        shelves.bytes -= block_bytes;
        return nullptr;
      }
    }
  }
  shelves.handed_out += block_bytes;
  MERCURY_CHECK(shelves.handed_out <= shelves.bytes);
  MERCURY_CHECK(shelves.bytes_max == 0 || shelves.bytes <= shelves.bytes_max);
  lock.unlock();
  const size_t index = 2 * c + (short_one ? 1 : 0);
  try {
    return Block(block, [keep = shelves_, index, block_bytes](char* returned) {
      const std::lock_guard<std::mutex> back(keep->mutex);
      MERCURY_CHECK(block_bytes <= keep->handed_out);
      keep->handed_out -= block_bytes;
      if (block_bytes <= kKeptBytesMax) return keep->free[index].push_back(returned);
      keep->Delete(returned, block_bytes);
      keep->bytes -= block_bytes;
    });
  } catch (const std::bad_alloc&) {
    return nullptr;  // shared_ptr has given the block back
  }
}

uint64_t PacketPool::bytes() const {
  const std::lock_guard<std::mutex> lock(shelves_->mutex);
  return shelves_->bytes;
}

uint64_t PacketPool::bytes_handed_out() const {
  const std::lock_guard<std::mutex> lock(shelves_->mutex);
  return shelves_->handed_out;
}

uint64_t PacketPool::bytes_max() const { return shelves_->bytes_max; }

}  // namespace mercury
