// Who makes room for a newcomer at a door that is full: the oldest one from the address that has
// the most, so that whoever fills it makes room at it; where several have as many, the oldest of
// theirs, for it has had the longest time to say who it is.
//
// Thread-safety: it touches nothing but what it is given. Ownership: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>

namespace mercury {

// `strangers`: the oldest first, at least one; `from` says a stranger's address.
template <typename Strangers, typename From>
auto WhoMakesRoom(const Strangers& strangers, const From& from) {
  std::map<std::string_view, size_t> counts;
  size_t most = 0;
  for (const auto& stranger : strangers) most = std::max(most, ++counts[from(stranger)]);
  return std::find_if(strangers.begin(), strangers.end(),
                      [&](const auto& stranger) { return counts[from(stranger)] == most; });
}

}  // namespace mercury
