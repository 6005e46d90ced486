// Allocations that fail when a test says so: for one file of a program, whose operator new it is.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <thread>

#include "packets/plane.h"

namespace mercury::testing {

// Allocations on all threads but the test's own; they fail from the first to before the second.
inline std::thread::id tests_thread;  // set before there is another
inline std::atomic<int64_t> allocations{0};
inline std::atomic<int64_t> fail_from{0}, fail_until{0};

inline void* Allocate(size_t bytes) {
  if (fail_until != 0 && !in_callback && std::this_thread::get_id() != tests_thread) {
    const int64_t n = ++allocations;
    if (n >= fail_from && n < fail_until) throw std::bad_alloc();
  }
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace mercury::testing

// GCC takes what it has inlined for a mismatch of new and free.
#define NOT_INLINE __attribute__((noinline))
NOT_INLINE void* operator new(size_t bytes) { return mercury::testing::Allocate(bytes); }
NOT_INLINE void* operator new[](size_t bytes) { return mercury::testing::Allocate(bytes); }
NOT_INLINE void operator delete(void* memory) noexcept { std::free(memory); }
NOT_INLINE void operator delete[](void* memory) noexcept { std::free(memory); }
NOT_INLINE void operator delete(void* memory, size_t /*bytes*/) noexcept { std::free(memory); }
NOT_INLINE void operator delete[](void* memory, size_t /*bytes*/) noexcept { std::free(memory); }
