// What a transfer of MLfabric carries: an update, a group of updates, or a model. In memory it is
// float32; updates and groups may travel as 16-bit floats (MERCURY_WIRE), coded packet by packet.
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
#include "sums/codec.h"
#include "sums/momentum_sum.h"

namespace mercury::fabric {

using Vector = std::vector<float>;

// Null: there is none of that number for cargos, whose elements are coded each by itself.
const Codec* CargoCodec(int64_t number);
// What so many elements are on the wire. `codec` null: as they are.
inline size_t TransferBytes(const Codec* codec, size_t elements) {
  return codec == nullptr ? elements * sizeof(float) : codec->bytes(elements);
}

struct Cargo {
  std::shared_ptr<const Vector> sum;
  std::shared_ptr<const Vector> step;  // null: there is none, or it is `sum`
  const Codec* codec = nullptr;        // as what it travels; null: as it is

  // On the wire.
  size_t bytes() const {
    return (step == nullptr ? 1 : 2) * (sum == nullptr ? 0 : TransferBytes(codec, sum->size()));
  }
  GroupSum<float> group() const {
    return {sum->data(), step == nullptr ? sum->data() : step->data()};
  }
};

// The packet of transfer `number` that begins at `offset`, which is before the end: `most` bytes
// (one element at least), and fewer where a vector ends.
OutPacket PartOf(const Cargo& cargo, int64_t number, size_t offset, size_t most);

}  // namespace mercury::fabric
