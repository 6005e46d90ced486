// A transfer to several servers goes in legs, one to each, which is its stripe of the whole
// (stripes.h). All legs keep up with the whole: of the bytes that it may have sent by now, each
// takes those that are its own. If the first leg took what all of them may send, the others would
// wait for its end, and look as slow as that.
//
//   may have gone:  |#########################           |   of the whole
//   stripes:        |  0  |  1  |  2  |  0  |  1  |  2  |
//   of leg 0:       |#####|           |#####|
//
// Thread-safety: plain values. Invariants: together, legs never send more than the whole may; once
// the whole may go, so may each leg; `Room` is above the leg's offset as soon as `Next` bytes of
// the whole may go, and not before.
#pragma once

#include <cstddef>
#include <vector>

#include "fabric/net/cargo.h"

namespace mercury::fabric {

struct Leg {
  int peer = 0;
  Stripe stripe;      // of one: the whole
  size_t offset = 0;  // so many of its bytes have been sent
  bool announced = false;

  // What goes to that server, of `whole`.
  Cargo Of(const Cargo& whole) const {
    Cargo its = whole;
    its.stripe = stripe;
    return its;
  }
  // So many of the leg's bytes may have been sent when so many of the whole's may.
  size_t Room(const CargoShape& whole, size_t may) const {
    return stripe.count == 1 ? may : ShapeOf(whole).BytesOf(stripe.Of(whole.ElementsIn(may)));
  }
  // So many of the whole's bytes may have gone when the leg's next one may.
  size_t Next(const CargoShape& whole) const {
    if (stripe.count == 1) return offset + 1;
    const size_t needed = ShapeOf(whole).ElementsFor(offset);
    return whole.BytesUntil(stripe.In(needed - 1) + 1);
  }
  bool over(const CargoShape& whole) const { return offset == ShapeOf(whole).bytes(); }

 private:
  CargoShape ShapeOf(const CargoShape& whole) const {
    if (stripe.count == 1) return whole;
    return {stripe.elements(), whole.vectors, whole.codec, stripe, false};
  }
};
using Legs = std::vector<Leg>;

}  // namespace mercury::fabric
