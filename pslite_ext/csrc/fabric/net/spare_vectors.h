// Vectors that are used again. The system clears memory that it gives anew, page by page: for a
// large model that takes as long as two passes over it.
//
// Thread-safety: all functions from any thread. Ownership: a vector comes back when its last holder
// lets go, and may outlive this. Invariant: at most kSparesMost wait, all of one length.
#pragma once

#include <cstddef>
#include <memory>

#include "fabric/net/cargo.h"

namespace mercury::fabric {

constexpr size_t kSparesMost = 4;

class SpareVectors {
 public:
  SpareVectors();
  // Of so many elements, which may be anything.
  std::shared_ptr<Vector> Get(size_t elements) const;

 private:
  struct Pool;
  std::shared_ptr<Pool> kept_;
};

// Appends a group to a sum (and step, unless null) of which others may hold what there was: then to
// a copy, in the same pass.
void AppendShared(const SpareVectors& spares, const MomentumStride& stride,
                  std::shared_ptr<Vector>* sum, std::shared_ptr<Vector>* step,
                  const GroupSum<float>& group);

}  // namespace mercury::fabric
