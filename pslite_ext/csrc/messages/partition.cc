#include "messages/partition.h"

#include <algorithm>
#include <utility>

namespace mercury {
namespace {

// Part `index` of `total` cut into `parts` that differ by one at most: where it begins.
uint64_t Begin(uint64_t total, uint64_t parts, uint64_t index) {
  return total / parts * index + std::min(total % parts, index);
}

// Servers in the order in which they are first in turn from the key's home on, with how often each
// is in `parts` turns.
std::vector<std::pair<int, uint64_t>> Ranges(const ServerShares& shares, uint64_t key,
                                             uint64_t parts) {
  std::vector<std::pair<int, uint64_t>> ranges;
  std::vector<size_t> range_of(static_cast<size_t>(shares.servers()), parts);
  for (uint64_t i = 0; i < parts; ++i) {
    const int server = shares.Server(shares.HomeTurn(key) + i);
    size_t& at = range_of[static_cast<size_t>(server)];
    if (at == parts) {
      at = ranges.size();
      ranges.emplace_back(server, 0);
    }
    ++ranges[at].second;
  }
  return ranges;
}

}  // namespace

std::vector<Piece> Partition(uint64_t key, uint64_t bytes, size_t element_bytes,
                             const ServerShares& shares, uint64_t split_bytes,
                             uint64_t piece_bytes_max) {
  if (bytes == 0) return {{shares.Home(key), 0, 0}};
  // An element cut short at the end (there should be none) counts as one.
  const uint64_t elements = bytes / element_bytes + (bytes % element_bytes != 0);
  const uint64_t piece_elements_max = piece_bytes_max / element_bytes;
  const uint64_t parts = bytes < split_bytes ? uint64_t{1} : std::min(elements, shares.turns());
  std::vector<Piece> pieces;
  uint64_t part = 0;
  for (const auto& [server, turns] : Ranges(shares, key, parts)) {
    const uint64_t first = Begin(elements, parts, part);
    part += turns;
    const uint64_t length = Begin(elements, parts, part) - first;
    const uint64_t count = (length - 1) / piece_elements_max + 1;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t begin = (first + Begin(length, count, i)) * element_bytes;
      const uint64_t end = (first + Begin(length, count, i + 1)) * element_bytes;
      pieces.push_back({server, begin, std::min(end, bytes) - begin});
    }
  }
  return pieces;
}

uint64_t RowsBytesMax(uint64_t row_bytes, uint64_t message_bytes_max) {
  return message_bytes_max / (row_bytes + sizeof(int64_t)) * row_bytes;
}

}  // namespace mercury
