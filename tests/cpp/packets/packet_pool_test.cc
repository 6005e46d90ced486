#include "packets/packet_pool.h"

#include <cstdlib>
#include <cstring>
#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

int allocations = 0;
int failing = -1;  // the allocation that fails, and all after it; -1: none

void* Allocate(size_t alignment, size_t bytes) {
  if (failing >= 0 && allocations >= failing) return nullptr;
  ++allocations;
  return std::aligned_alloc(alignment, bytes);
}

struct Counted {
  Counted() {
    allocations = 0;
    failing = -1;
  }
};

}  // namespace

TEST(blocks_are_aligned_large_enough_and_writable) {
  PacketPool pool(0);
  for (const size_t bytes :
       {0, 1, 63, 64, 191, 192, 193, 256, 257, 384, 385, 65536, 65537, 1 << 22}) {
    const Block block = pool.Get(bytes);
    REQUIRE_TRUE(block != nullptr);
    CHECK_EQ(reinterpret_cast<uintptr_t>(block.get()) % 64, 0U);
    std::memset(block.get(), 0x5a, bytes);
  }
  CHECK_EQ(pool.bytes_handed_out(), 0U);
}

TEST(a_block_loses_at_most_a_third) {
  PacketPool pool(0);
  for (size_t bytes = 192; bytes < 300000; bytes += 997) {
    const Block block = pool.Get(bytes);
    CHECK_TRUE(pool.bytes_handed_out() >= bytes);
    CHECK_TRUE(pool.bytes_handed_out() * 2 <= bytes * 3 + 2);
  }
}

TEST(blocks_are_used_again) {
  const Counted counted;
  PacketPool pool(0, nullptr, Allocate);
  char* first = nullptr;
  for (int i = 0; i < 1000; ++i) {
    const Block block = pool.Get(5000);
    if (i == 0) first = block.get();
    CHECK_TRUE(block.get() == first);
  }
  CHECK_EQ(allocations, 1);
}

TEST(the_last_holder_gives_back) {
  PacketPool pool(0);
  Block one = pool.Get(1000);
  Block two = one;
  CHECK_EQ(pool.bytes_handed_out(), 1024U);
  one.reset();
  CHECK_EQ(pool.bytes_handed_out(), 1024U);
  two.reset();
  CHECK_EQ(pool.bytes_handed_out(), 0U);
  CHECK_EQ(pool.bytes(), 1024U);
}

TEST(blocks_lie_where_others_read_as_soon_as_they_do) {
  const auto lends = LentMemory::Make();
  PacketPool pool(1 << 20, lends);
  Block before = pool.Get(100000);
  CHECK_FALSE(lends->Holds(before.get()));
  lends->Lend();
  const Block after = pool.Get(100000), small = pool.Get(1000);
  CHECK_TRUE(lends->Holds(after.get()));
  CHECK_FALSE(lends->Holds(small.get()));
  before.reset();
  CHECK_FALSE(lends->Holds(pool.Get(100000).get()));  // it is used again
  CHECK_TRUE(pool.Get(900000) == nullptr);            // the cap is for both
}

TEST(lent_blocks_that_make_room_give_their_pages_back) {
  const auto lends = LentMemory::Make();
  lends->Lend();
  PacketPool pool(1 << 20, lends);
  Block block = pool.Get(1 << 20);
  char* at = block.get();
  std::memset(at, 1, 1 << 20);
  block.reset();
  const Block other = pool.Get(5000);
  CHECK_EQ(at[1 << 19], 0);
  CHECK_EQ(pool.bytes(), 6144U);
}

TEST(blocks_may_outlive_the_pool) {
  Block block;
  {
    PacketPool pool(1 << 20);
    block = pool.Get(3000);
    const Block other = pool.Get(3000);
  }
  std::memset(block.get(), 1, 3000);
}

TEST(the_cap_holds_and_what_is_kept_for_other_sizes_makes_room) {
  PacketPool pool(4096);
  CHECK_EQ(pool.bytes_max(), 4096U);
  {
    const Block a = pool.Get(1024), b = pool.Get(1024), c = pool.Get(1024), d = pool.Get(1024);
    CHECK_TRUE(a != nullptr && b != nullptr && c != nullptr && d != nullptr);
    CHECK_TRUE(pool.Get(1) == nullptr);
    CHECK_EQ(pool.bytes(), 4096U);
  }
  CHECK_EQ(pool.bytes(), 4096U);  // kept
  const Block whole = pool.Get(4096);
  CHECK_TRUE(whole != nullptr);
  CHECK_EQ(pool.bytes(), 4096U);
  CHECK_TRUE(pool.Get(4097) == nullptr);
}

// Of sets of rows, which may have gigabytes. Nobody writes to them here.
TEST(very_large_blocks_are_not_kept) {
  PacketPool pool(0, nullptr, [](size_t alignment, size_t /*bytes*/) {
    return std::aligned_alloc(alignment, alignment);
  });
  for (const size_t bytes : {(size_t{64} << 20) + 1, size_t{1} << 31, size_t{64} << 30}) {
    const Block block = pool.Get(bytes);
    REQUIRE_TRUE(block != nullptr);
    CHECK_TRUE(pool.bytes() >= bytes && pool.bytes() == pool.bytes_handed_out());
  }
  CHECK_EQ(pool.bytes(), 0U);
  CHECK_TRUE(pool.Get((size_t{64} << 30) + 1) == nullptr);
  CHECK_TRUE(pool.Get(~size_t{0}) == nullptr);
  pool.Get(size_t{64} << 20).reset();
  CHECK_EQ(pool.bytes(), uint64_t{64} << 20);
}

TEST(a_failed_allocation_changes_nothing) {
  const Counted counted;
  PacketPool pool(0, nullptr, Allocate);
  const Block kept = pool.Get(100);
  failing = 1;
  CHECK_TRUE(pool.Get(100) == nullptr);
  CHECK_TRUE(pool.Get(100000) == nullptr);
  CHECK_EQ(pool.bytes(), 192U);
  CHECK_EQ(pool.bytes_handed_out(), 192U);
  failing = -1;
  CHECK_TRUE(pool.Get(100000) != nullptr);
}

TEST(random_use_keeps_the_books_right) {
  mercury::testing::Random random;
  for (int trial = 0; trial < 50; ++trial) {
    const uint64_t cap = random.OneIn(4) ? 0 : random.Below(300000);
    PacketPool pool(cap);
    std::vector<std::pair<Block, uint64_t>> held;
    uint64_t handed_out = 0;
    for (uint64_t step = 0; step < 300; ++step) {
      if (!held.empty() && random.OneIn(2)) {
        const size_t i = random.Below(held.size());
        const auto byte = static_cast<char>(held[i].second);
        CHECK_EQ(*held[i].first, byte);
        held[i] = std::move(held.back());
        held.pop_back();
      } else if (Block block = pool.Get(random.Below(20000) + 1); block != nullptr) {
        *block = static_cast<char>(step);
        held.emplace_back(std::move(block), step);
      }
      CHECK_TRUE(cap == 0 || pool.bytes() <= cap);
      CHECK_TRUE(pool.bytes_handed_out() <= pool.bytes());
      CHECK_EQ(pool.bytes_handed_out() == 0, held.empty());
      handed_out = std::max(handed_out, pool.bytes_handed_out());
    }
    CHECK_TRUE(handed_out > 0 || cap < 20000);
    held.clear();
    CHECK_EQ(pool.bytes_handed_out(), 0U);
  }
}
