// Which server a tensor's pieces begin at: one rule for all transports and all nodes.
//
// Thread-safety: a pure function. Invariant: the rule never changes within a protocol version.
#pragma once

#include <cstdint>

namespace mercury {

// Spreads consecutive keys evenly.
inline int HomeServer(uint64_t key, int num_servers) {
  // The fractional part of key times the golden ratio: keys of any small stride fall evenly on [0,
  // 1). The plain remainder would give all weights to one of two servers and all biases to the
  // other.
  const uint64_t fraction = key * 0x9e3779b97f4a7c15 >> 32;
  return static_cast<int>(fraction * static_cast<uint64_t>(num_servers) >> 32);
}

}  // namespace mercury
