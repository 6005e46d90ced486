// The time that never comes: when something would change its mind by time alone, but will not.
//
// Thread-safety: a constant.
#pragma once

#include <cstdint>
#include <limits>

namespace mercury {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace mercury
