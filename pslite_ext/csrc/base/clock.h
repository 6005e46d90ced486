// The one clock of the shell: monotonic. The core is told the time.
//
// Thread-safety: pure functions.
#pragma once

#include <chrono>
#include <cstdint>

namespace mercury {

inline int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline int64_t NowMs() { return NowUs() / 1000; }

// What makes a time since 1970 of NowUs: the wall clock is looked at once, so that times never
// jump.
inline int64_t WallOffsetUs() {
  static const int64_t offset = std::chrono::duration_cast<std::chrono::microseconds>(
                                    std::chrono::system_clock::now().time_since_epoch())
                                    .count() -
                                NowUs();
  return offset;
}

}  // namespace mercury
