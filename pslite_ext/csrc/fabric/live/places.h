// Sets of places, each a list: of the members of a group, of what somebody holds.
//
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mercury::fabric {

inline bool Contains(const std::vector<int64_t>& places, int64_t place) {
  return std::find(places.begin(), places.end(), place) != places.end();
}

}  // namespace mercury::fabric
