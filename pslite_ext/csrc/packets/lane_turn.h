// A lane's turn at what all lanes share. One that ends by an exception, for want of memory, may
// leave it half changed: then no lane has another turn, and all of them break.
//
// Thread-safety: a lock, of one thread; `torn` is guarded by the mutex.
#pragma once

#include <exception>
#include <mutex>
#include <new>

namespace mercury {

class LaneTurn {
 public:
  LaneTurn(std::mutex* mutex, bool* torn)
      : lock_(*mutex), torn_(torn), exceptions_(std::uncaught_exceptions()) {
    if (*torn) throw std::bad_alloc();
  }
  ~LaneTurn() {
    if (std::uncaught_exceptions() > exceptions_) *torn_ = true;
  }
  LaneTurn(const LaneTurn&) = delete;
  LaneTurn& operator=(const LaneTurn&) = delete;

 private:
  const std::lock_guard<std::mutex> lock_;
  bool* const torn_;
  const int exceptions_;
};

}  // namespace mercury
