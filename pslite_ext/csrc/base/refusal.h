// What is refused is logged, but whoever knocks again and again does not fill the log: the first
// time, the second, the fourth, the eighth ...
//
// Thread-safety: pure functions, and the log's.
#pragma once

#include <cstdint>
#include <string>

#include "base/log.h"

namespace mercury {

inline bool WorthALine(uint64_t count) { return (count & (count - 1)) == 0; }

// `count`: how many were refused, with this one.
inline void LogRefusal(const std::string& what, uint64_t count) {
  if (!WorthALine(count)) return;
  Log(LogLevel::kWarning, "refused " + what + " (" + std::to_string(count) + " refused so far)");
}

}  // namespace mercury
