#include "partition.h"

#include <algorithm>

namespace mercury {

// Keys are hashes or small numbers; either way neighbours should not meet on one server.
int HomeServer(uint64_t key, int num_servers) {
  // splitmix64's finaliser: every bit of the key reaches every bit of the result.
  uint64_t x = key + 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return static_cast<int>(x % static_cast<uint64_t>(num_servers));
}

std::vector<Piece> Partition(uint64_t key, uint64_t bytes, size_t element_bytes, int num_servers,
                             uint64_t split_bytes, uint64_t piece_bytes_max) {
  const int home = HomeServer(key, num_servers);
  const uint64_t elements = bytes / element_bytes;
  const uint64_t elements_max = std::max<uint64_t>(1, piece_bytes_max / element_bytes);
  const auto servers = static_cast<uint64_t>(num_servers);
  const uint64_t ranges = bytes < split_bytes ? 1 : std::min(servers, std::max<uint64_t>(1, elements));
  std::vector<Piece> pieces;
  uint64_t at = 0;  // in elements
  for (uint64_t range = 0; range < ranges; ++range) {
    const int server = static_cast<int>((static_cast<uint64_t>(home) + range) % servers);
    // The first ranges take what does not divide evenly, one element each.
    const uint64_t end = at + elements / ranges + (range < elements % ranges ? 1 : 0);
    do {
      const uint64_t take = std::min(end - at, elements_max);
      pieces.push_back({server, at * element_bytes, take * element_bytes});
      at += take;
    } while (at < end);
  }
  return pieces;
}

}  // namespace mercury
