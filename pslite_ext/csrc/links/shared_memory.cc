#include "links/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/log.h"

namespace mercury {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Status NoMemory(const char* what) {
  return Status::Exhausted(std::string("no memory to share with processes of this host: ") + what +
                           ": " + std::strerror(errno));
}

}  // namespace

void SayNotShared(const Status& why) {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  Log(LogLevel::kWarning, why.text() +
                              ": what goes between them is copied by the system instead, and takes "
                              "more processor time");
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Status SharedMemory::Make(size_t bytes, SharedMemory* memory, TcpSocket* descriptor) {
  TcpSocket fresh(memfd_create("mercury-ps", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fresh) return NoMemory("memfd_create");
  if (ftruncate(fresh.fd(), static_cast<off_t>(bytes)) != 0) return NoMemory("ftruncate");
  if (fcntl(fresh.fd(), F_ADD_SEALS, kSeals) != 0) return NoMemory("F_ADD_SEALS");
  *descriptor = std::move(fresh);
  return Map(*descriptor, bytes, For::kWriting, memory);
}

Status SharedMemory::Provide(const TcpSocket& descriptor, size_t at, size_t bytes) {
  const auto from = static_cast<off_t>(at), length = static_cast<off_t>(bytes);
  while (fallocate(descriptor.fd(), 0, from, length) != 0) {
    if (errno != EINTR) return NoMemory("fallocate");
  }
  return Status::Ok();
}

Status SharedMemory::Map(const TcpSocket& descriptor, size_t bytes, For use, SharedMemory* memory) {
  struct stat found{};
  const int seals = fcntl(descriptor.fd(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(descriptor.fd(), &found) != 0 ||
      found.st_size != static_cast<off_t>(bytes)) {
    return Status::Corrupt("what it has handed over to be shared is not memory of a fixed size");
  }
  const int access = use == For::kWriting ? PROT_READ | PROT_WRITE : PROT_READ;
  void* data = mmap(nullptr, bytes, access, MAP_SHARED, descriptor.fd(), 0);
  if (data == MAP_FAILED) return NoMemory("mmap");
  madvise(data, bytes, MADV_DONTDUMP);  // a dump would fill every page of it
  SharedMemory fresh;
  fresh.data_ = data;
  fresh.bytes_ = bytes;
  *memory = std::move(fresh);
  return Status::Ok();
}

}  // namespace mercury
