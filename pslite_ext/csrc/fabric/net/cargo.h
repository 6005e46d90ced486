// What a transfer of MLfabric carries: an update, a group of updates, or a model. In memory it is
// float32; updates and groups may travel as 16-bit floats (MERCURY_WIRE), coded packet by packet.
//
// A single update, or a model for a worker, is one vector. With momentum, a group of several
// updates or a model for the replica is two (sums/momentum_sum.h): a block of the one, then the
// same block of the other, so that a beginning of both is there before all of it is. To and from
// one of several servers goes what is its stripe of these vectors, which lies on the wire by
// itself.
//
// Thread-safety: plain values; of a vector in a cargo, what may be sent is never written.
// Invariant: no packet holds bytes of both vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/net/stripes.h"
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

constexpr size_t kBlockElements = 4 << 10;

// How a cargo lies on the wire.
struct CargoShape {
  size_t elements = 0;
  size_t vectors = 1;
  const Codec* codec = nullptr;
  Stripe stripe;          // no packet goes beyond one of its blocks
  bool by_itself = true;  // the vectors have nothing but the stripe; else all of the model

  size_t vector_bytes() const { return TransferBytes(codec, elements); }
  size_t bytes() const { return vectors * vector_bytes(); }

  // Where the byte at `offset`, which is before the end, belongs.
  struct Spot {
    bool step = false;  // the second vector
    size_t at = 0;      // its byte
    size_t most = 0;    // so many bytes on, a block, its stripe or the vector ends
  };
  Spot At(size_t offset) const;
  // Of so many bytes from the beginning: the elements that are in all vectors.
  size_t ElementsIn(size_t bytes) const;
  // The other way round: what may be sent when so many elements are there.
  size_t BytesOf(size_t elements_there) const;
  // The fewest bytes from the beginning that have so many elements, above 0, of all vectors.
  size_t BytesUntil(size_t elements_in) const;
  // The fewest elements that must be there before the byte at `offset` may be sent.
  size_t ElementsFor(size_t offset) const;

 private:
  Spot InStripe(size_t offset) const;
};

struct Cargo {
  std::shared_ptr<const Vector> sum;
  std::shared_ptr<const Vector> step;  // null: there is none, or it is `sum`
  const Codec* codec = nullptr;        // as what it travels; null: as it is
  Stripe stripe = {};                  // of which it is; of one: all of it

  CargoShape shape() const {
    const size_t all = sum == nullptr ? 0 : sum->size();
    const size_t elements = stripe.count == 1 ? all : stripe.elements();
    return {elements, step == nullptr ? size_t{1} : size_t{2}, codec, stripe, all == elements};
  }
  // On the wire.
  size_t bytes() const { return shape().bytes(); }
  GroupSum<float> group() const {
    return {sum->data(), step == nullptr ? sum->data() : step->data()};
  }
};

// The packet of transfer `number` that begins at `offset`, which is before the end: `most` bytes
// (one element at least), and fewer where a block or a vector ends.
OutPacket PartOf(const Cargo& cargo, int64_t number, size_t offset, size_t most);

}  // namespace mercury::fabric
