#include "messages/partition.h"

#include <algorithm>

#include "transport/home_server.h"

namespace mercury {
namespace {

// Part `index` of `total` cut into `parts` that differ by one at most: where it begins.
uint64_t Begin(uint64_t total, uint64_t parts, uint64_t index) {
  return total / parts * index + std::min(total % parts, index);
}

}  // namespace

std::vector<Piece> Partition(uint64_t key, uint64_t bytes, size_t element_bytes, int num_servers,
                             uint64_t split_bytes, uint64_t piece_bytes_max) {
  const int home = HomeServer(key, num_servers);
  if (bytes == 0) return {{home, 0, 0}};
  // An element cut short at the end (there should be none) counts as one.
  const uint64_t elements = bytes / element_bytes + (bytes % element_bytes != 0);
  const uint64_t piece_elements_max = piece_bytes_max / element_bytes;
  const auto ranges =
      bytes < split_bytes ? uint64_t{1} : std::min(elements, static_cast<uint64_t>(num_servers));
  std::vector<Piece> pieces;
  for (uint64_t range = 0; range < ranges; ++range) {
    const uint64_t first = Begin(elements, ranges, range);
    const uint64_t length = Begin(elements, ranges, range + 1) - first;
    const uint64_t count = (length - 1) / piece_elements_max + 1;
    const int server = static_cast<int>((static_cast<uint64_t>(home) + range) %
                                        static_cast<uint64_t>(num_servers));
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t begin = (first + Begin(length, count, i)) * element_bytes;
      const uint64_t end = (first + Begin(length, count, i + 1)) * element_bytes;
      pieces.push_back({server, begin, std::min(end, bytes) - begin});
    }
  }
  return pieces;
}

uint64_t RowsBytesMax(uint64_t row_bytes, uint64_t piece_bytes_max) {
  return piece_bytes_max / (row_bytes + sizeof(int64_t)) * row_bytes;
}

}  // namespace mercury
