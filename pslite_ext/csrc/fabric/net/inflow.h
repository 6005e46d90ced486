// A transfer that is coming, as far as it is there: whoever passes it on reads the beginning while
// the rest is under way.
//
// Thread-safety: none; the lane owns it. Ownership: the dock writes what comes; once elements are
// there, they are its reader's, who may add to them in place, if there is only one such reader.
// Invariants: what is there is a beginning; what is broken stays as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "fabric/net/cargo.h"

namespace mercury::fabric {

struct Inflow {
  size_t elements = 0;           // of a vector, in all
  size_t vectors = 1;            // one or two
  const Codec* codec = nullptr;  // as what it comes; null: as it is
  std::shared_ptr<Vector> sum, step;
  size_t bytes = 0;  // that have come
  bool broken = false;
  int64_t first_us = 0;
  int64_t last_us = 0;

  CargoShape shape() const { return {elements, vectors, codec}; }
  bool whole() const { return bytes == shape().bytes(); }
  // So many of each vector are there.
  size_t there() const { return shape().ElementsIn(bytes); }
  Cargo cargo() const { return {sum, step, codec}; }
};

}  // namespace mercury::fabric
