// What everybody who cuts tensors knows of a packet.
//
// Thread-safety: a constant.
#pragma once

#include <cstdint>

namespace mercury {

// Packets begin at multiples of this in their tensor, so that none ends inside an element.
constexpr uint64_t kPacketAlignment = 64;

}  // namespace mercury
