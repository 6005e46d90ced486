// The transports that a worker may have, by name.
//
// Thread-safety: constants.
#pragma once

#include <cstdint>

namespace mercury {

enum class Way : uint8_t { kMessages, kPackets };
constexpr int kWays = 2;

}  // namespace mercury
