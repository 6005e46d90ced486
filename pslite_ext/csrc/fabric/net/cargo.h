// What a transfer of MLfabric carries, as float32: an update, a group of updates, or a model.
//
// A single update, or a model for a worker, is one vector. With momentum, a group of several
// updates or a model for the replica is two (sums/momentum_sum.h), one after the other.
//
// Thread-safety: plain values; vectors are never written once they are in a cargo. Invariant: no
// packet holds bytes of both vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "links/endpoint.h"
#include "sums/momentum_sum.h"

namespace mercury::fabric {

using Vector = std::vector<float>;

struct Cargo {
  std::shared_ptr<const Vector> sum;
  std::shared_ptr<const Vector> step;  // null: there is none, or it is `sum`

  size_t bytes() const {
    return (step == nullptr ? 1 : 2) * (sum == nullptr ? 0 : sum->size() * sizeof(float));
  }
  GroupSum<float> group() const {
    return {sum->data(), step == nullptr ? sum->data() : step->data()};
  }
};

// The packet of transfer `number` that begins at `offset`, which is before the end: `most` bytes
// (one element at least), and fewer where a vector ends.
OutPacket PartOf(const Cargo& cargo, int64_t number, size_t offset, size_t most);

}  // namespace mercury::fabric
