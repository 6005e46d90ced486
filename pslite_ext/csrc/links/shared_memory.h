// Memory that two processes of one host share, behind a descriptor that one hands to the other.
//
// Its size is sealed: neither can take it from under the other. Whoever is handed a descriptor
// refuses one that is not. A page that nobody has provided comes when it is first used, and kills
// who uses it if the system has none left.
//
// Thread-safety: a value; one thread's. Ownership: the mapping; the memory lives as long as a
// mapping or a descriptor of it.
#pragma once

#include <cstddef>
#include <utility>

#include "base/status.h"
#include "links/tcp.h"

namespace mercury {

// In the log, once in a process's life: it goes on without.
void SayNotShared(const Status& why);

class SharedMemory {
 public:
  SharedMemory() = default;
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  // New memory, all zero, and a descriptor to hand on.
  static Status Make(size_t bytes, SharedMemory* memory, TcpSocket* descriptor);
  // Pages for a part of it: kExhausted if there are none.
  static Status Provide(const TcpSocket& descriptor, size_t at, size_t bytes);
  // The memory behind a descriptor that somebody else has made.
  enum class For : bool { kReading, kWriting };
  static Status Map(const TcpSocket& descriptor, size_t bytes, For use, SharedMemory* memory);

  void* data() const { return data_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace mercury
