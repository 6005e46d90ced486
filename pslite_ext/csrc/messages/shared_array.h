// Memory of ours as ps-lite's arrays have it.
//
// Thread-safety: a pure function. Ownership: `keep` holds the memory until the last array is gone.
#pragma once

#include <memory>
#include <utility>

#include "ps/sarray.h"

namespace mercury {

inline ps::SArray<char> Shared(char* data, size_t bytes, std::shared_ptr<void> keep) {
  ps::SArray<char> array;
  array.reset(data, bytes, [keep = std::move(keep)](char* /*data*/) {});
  return array;
}

}  // namespace mercury
