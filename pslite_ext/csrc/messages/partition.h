// Which bytes of a tensor live on which server: one rule, shared by all workers.
//
// A tensor below `split_bytes` lives whole on one server, chosen by its key. A larger one is cut
// into one element-aligned range per server, as long as its share, starting at a server chosen by
// its key.
// What is longer than `piece_bytes_max` is cut once more, on its server.
//
// Thread-safety: pure functions. Ownership: none. Invariants: pieces are in offset order, do not
// overlap, cover [0, bytes) exactly; a zero-size tensor has exactly one piece of length 0, so that
// its rounds still synchronise; the rule never changes within a protocol version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/server_shares.h"

namespace mercury {

struct Piece {
  int server = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// Requires element_bytes >= 1, piece_bytes_max >= element_bytes.
std::vector<Piece> Partition(uint64_t key, uint64_t bytes, size_t element_bytes,
                             const ServerShares& shares, uint64_t split_bytes,
                             uint64_t piece_bytes_max);

// Rows go with their numbers: how many bytes of rows a piece may have, so that both together are no
// more than `message_bytes_max`. 0: not one.
uint64_t RowsBytesMax(uint64_t row_bytes, uint64_t message_bytes_max);

}  // namespace mercury
