// Memory that others read: when blocks come from it, and that they go back.
#include "links/lent_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "harness.h"

using namespace mercury;
namespace {

TEST(nothing_is_lent_before_somebody_borrows) {
  const auto memory = LentMemory::Make();
  REQUIRE_TRUE(memory != nullptr);
  CHECK_TRUE(memory->Get(1 << 20) == nullptr);
  memory->Lend();
  CHECK_TRUE(memory->Get(1 << 20) != nullptr);
}

TEST(blocks_are_large_aligned_apart_and_what_a_borrower_sees) {
  const auto memory = LentMemory::Make();
  const int lent = memory->Lend();
  REQUIRE_TRUE(lent >= 0);
  CHECK_TRUE(memory->Get(kLoanBytesMin - 1) == nullptr);
  CHECK_TRUE(memory->Get(kLentBytes + 1) == nullptr);
  CHECK_TRUE(memory->Get(~size_t{0}) == nullptr);
  std::vector<std::pair<char*, size_t>> blocks;
  for (const size_t bytes : {size_t{4096}, size_t{6144}, size_t{5000}, size_t{1} << 20}) {
    char* block = memory->Get(bytes);
    REQUIRE_TRUE(block != nullptr);
    CHECK_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0U);
    CHECK_TRUE(memory->Holds(block) && memory->Holds(block + bytes - 1));
    std::memset(block, static_cast<int>(blocks.size() + 1), bytes);
    blocks.emplace_back(block, bytes);
  }
  SharedMemory borrowed;
  const TcpSocket descriptor(fcntl(lent, F_DUPFD_CLOEXEC, 0));
  REQUIRE_OK(SharedMemory::Map(descriptor, kLentBytes, SharedMemory::For::kReading, &borrowed));
  for (size_t i = 0; i < blocks.size(); ++i) {
    const char* seen =
        static_cast<const char*>(borrowed.data()) + (blocks[i].first - memory->data());
    const std::vector<char> due(blocks[i].second, static_cast<char>(i + 1));
    CHECK_EQ(std::memcmp(seen, due.data(), due.size()), 0);
  }
  const char elsewhere = 0;
  CHECK_FALSE(memory->Holds(&elsewhere));
}

TEST(what_comes_back_is_empty_and_serves_again) {
  const auto memory = LentMemory::Make();
  memory->Lend();
  constexpr size_t kBytes = 3 << 20;
  char* block = memory->Get(kBytes);
  char* neighbour = memory->Get(kBytes);
  std::memset(block, 1, kBytes);
  std::memset(neighbour, 2, kBytes);
  memory->Return(block, kBytes);
  CHECK_EQ(block[kBytes / 2], 0);  // its pages have gone back to the system
  CHECK_EQ(neighbour[0], 2);
  CHECK_TRUE(memory->Get(kBytes) == block);
  CHECK_TRUE(memory->Get(kBytes) > neighbour);
}

TEST(a_block_that_the_system_has_no_pages_for_is_not_handed_out) {
  const auto memory = LentMemory::Make();
  const int lent = memory->Lend();
  constexpr size_t kBytes = 1 << 20;
  char* block = memory->Get(kBytes);
  REQUIRE_TRUE(block != nullptr);
  memory->Return(block, kBytes);
  const TcpSocket kept(fcntl(lent, F_DUPFD_CLOEXEC, 0));
  const TcpSocket nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  REQUIRE_EQ(dup3(nothing.fd(), lent, O_CLOEXEC), lent);  // where no page can be had
  CHECK_TRUE(memory->Get(kBytes) == nullptr);             // neither again
  CHECK_TRUE(memory->Get(2 * kBytes) == nullptr);         // nor another
  REQUIRE_EQ(dup3(kept.fd(), lent, O_CLOEXEC), lent);
  CHECK_TRUE(memory->Get(kBytes) == block);
  CHECK_TRUE(memory->Get(2 * kBytes) != nullptr);
}

}  // namespace
