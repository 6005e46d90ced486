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

}  // namespace mercury
