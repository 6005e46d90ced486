// What everybody who cuts tensors knows of a packet.
//
// Thread-safety: a constant.
#pragma once

#include <cstdint>

namespace mercury {

// Packets of whole arrays are a multiple of this long, but for the last of a slot.
constexpr uint64_t kPacketAlignment = 64;

}  // namespace mercury
