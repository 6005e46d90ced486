// A transfer that is coming, as far as it is there: whoever passes it on reads the beginning while
// the rest is under way. Of several servers' stripes, the beginning that is there of all.
//
// Thread-safety: none; the lane owns it. Ownership: the dock writes what comes; once elements are
// there, they are its reader's, who may add to them in place, if there is only one such reader.
// Invariants: what is there is a beginning; what is broken stays as it is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/net/cargo.h"
#include "fabric/net/steady_stretch.h"

namespace mercury::fabric {

struct Inflow {
  size_t elements = 0;           // of a vector, in all
  size_t vectors = 1;            // one or two
  const Codec* codec = nullptr;  // as what it comes; null: as it is
  std::shared_ptr<Vector> sum, step;
  size_t bytes = 0;  // that have come
  bool aborted = false;
  SteadyStretches stretches;
  Stripe stripe;  // that it brings of the vectors
  // If it comes as stripes: of each, what comes; null: it has not begun.
  std::vector<std::shared_ptr<const Inflow>> stripes;

  CargoShape shape() const {
    return {elements, vectors, codec, stripe, sum == nullptr || sum->size() == elements};
  }
  // So many of each vector are there.
  size_t there() const {
    if (stripes.empty()) return shape().ElementsIn(bytes);
    size_t least = elements;
    for (size_t i = 0; i < stripes.size(); ++i) {
      const Stripe its{i, stripes.size(), elements};
      least = std::min(least, its.Through(stripes[i] == nullptr ? 0 : stripes[i]->there()));
    }
    return least;
  }
  bool whole() const { return stripes.empty() ? bytes == shape().bytes() : there() == elements; }
  bool broken() const {
    return aborted || std::any_of(stripes.begin(), stripes.end(),
                                  [](const auto& its) { return its != nullptr && its->broken(); });
  }
  Cargo cargo() const { return {sum, step, codec, stripe}; }
};

}  // namespace mercury::fabric
