// On which host each node is, by host index, as the scheduler knows it.
//
// Thread-safety: a plain value.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace mercury::fabric {

struct FleetHosts {
  std::vector<size_t> workers;  // by rank
  size_t server = 0;            // of whoever is the server
  std::optional<size_t> replica;
};

}  // namespace mercury::fabric
