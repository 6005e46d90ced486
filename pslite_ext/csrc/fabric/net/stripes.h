// How several servers share a model: they take turns at its blocks, so that what comes as a stream
// goes to all of them at once.
//
//   elements   | block 0 | block 1 | block 2 | block 3 | ...
//   of server  |    0    |    1    |    2    |    0    | ...
//
// Thread-safety: plain values. Invariants: each element is of one stripe; if there are at least as
// many elements as stripes, none is empty; a stripe of one is the whole.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

namespace mercury::fabric {

constexpr size_t kStripeBlockMost = 16 << 10;  // elements

struct Stripe {
  size_t index = 0;
  size_t count = 1;
  size_t whole = 0;  // elements of the model

  // Of each block.
  size_t block() const {
    return std::clamp(whole / std::max(count, size_t{1}), size_t{1}, kStripeBlockMost);
  }
  // Of the stripe.
  size_t elements() const { return Of(whole); }
  // Of the model's first so many, those that are of this stripe.
  size_t Of(size_t first) const {
    const size_t round = block() * count, begin = index * block();
    const size_t rest = first % round;
    return first / round * block() + std::clamp(rest, begin, begin + block()) - begin;
  }
  // Where the stripe's element `at` is in the model.
  size_t In(size_t at) const { return (at / block() * count + index) * block() + at % block(); }
  // So many more of the stripe are next to it, with itself.
  size_t Run(size_t at) const { return block() - at % block(); }
  // Calls `run(at, in, count)` for all that are next to each other: where they begin in the stripe,
  // where in the model, and how many they are.
  template <typename F>
  void EachRun(const F& run) const {
    const size_t end = elements();
    for (size_t at = 0; at < end; at += Run(at)) run(at, In(at), std::min(Run(at), end - at));
  }
  // The beginning of the model in which the stripe's first `there` are all that it has.
  size_t Through(size_t there) const {
    return there == elements() ? whole
                               : (there / block() * count + index) * block() + there % block();
  }
};

}  // namespace mercury::fabric
