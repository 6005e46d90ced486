// Memory that is handed over: what is shared, and what is refused.
#include "links/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "harness.h"

using namespace mercury;
namespace {

constexpr size_t kBytes = 8192;

Status Map(const TcpSocket& descriptor, SharedMemory* memory) {
  return SharedMemory::Map(descriptor, kBytes, SharedMemory::For::kWriting, memory);
}

TEST(what_one_writes_the_other_reads) {
  SharedMemory mine, yours;
  TcpSocket descriptor;
  REQUIRE_OK(SharedMemory::Make(kBytes, &mine, &descriptor));
  REQUIRE_OK(SharedMemory::Map(descriptor, kBytes, SharedMemory::For::kReading, &yours));
  CHECK_EQ(ftruncate(descriptor.fd(), 0), -1);  // neither takes it from under the other
  descriptor.Close();
  CHECK_FALSE(mine.data() == yours.data());
  std::strcpy(static_cast<char*>(mine.data()) + kBytes - 8, "word");
  const SharedMemory moved = std::move(yours);
  CHECK_FALSE(yours);
  CHECK_EQ(std::strcmp(static_cast<char*>(moved.data()) + kBytes - 8, "word"), 0);
}

TEST(what_may_still_shrink_or_has_another_size_is_refused) {
  SharedMemory memory;
  const auto refused = [&](TcpSocket descriptor) {
    const Status status = Map(descriptor, &memory);
    CHECK_STATUS(Code::kCorrupt, status);
    CHECK_FALSE(memory);
  };
  const auto made = [](size_t bytes, int seals) {
    TcpSocket descriptor(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE_EQ(ftruncate(descriptor.fd(), static_cast<off_t>(bytes)), 0);
    REQUIRE_EQ(fcntl(descriptor.fd(), F_ADD_SEALS, seals), 0);
    return descriptor;
  };
  constexpr int kAll = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  refused(made(kBytes, 0));
  refused(made(kBytes, F_SEAL_GROW | F_SEAL_SEAL));
  refused(made(kBytes - 1, kAll));
  refused(made(2 * kBytes, kAll));
  int ends[2];
  REQUIRE_EQ(pipe(ends), 0);
  refused(TcpSocket(ends[0]));
  refused(TcpSocket(ends[1]));
  refused(TcpSocket());
  REQUIRE_OK(Map(made(kBytes, kAll), &memory));
}

TEST(pages_are_there_before_they_are_used) {
  SharedMemory memory;
  TcpSocket descriptor;
  constexpr size_t kPages = 16 * kBytes;
  REQUIRE_OK(SharedMemory::Make(kPages, &memory, &descriptor));
  struct stat found{};
  REQUIRE_EQ(fstat(descriptor.fd(), &found), 0);
  CHECK_EQ(found.st_blocks, 0);
  REQUIRE_OK(SharedMemory::Provide(descriptor, 0, kPages));
  REQUIRE_EQ(fstat(descriptor.fd(), &found), 0);
  CHECK_EQ(found.st_blocks * 512, static_cast<int64_t>(kPages));
  CHECK_STATUS(Code::kExhausted, SharedMemory::Provide(descriptor, kPages, kBytes));
}

}  // namespace
