// Memory of ours as ps-lite's arrays have it.
//
// Thread-safety: a pure function. Ownership: `keep` holds the memory until the last array is gone;
// `sum` is that of its bytes, if others send them, too.
#pragma once

#include <memory>
#include <utility>

#include "control/data_sum.h"

namespace mercury {

inline ps::SArray<char> Shared(char* data, size_t bytes, std::shared_ptr<void> keep,
                               std::shared_ptr<SumOnce> sum = nullptr) {
  return Share(data, bytes, std::move(keep), std::move(sum));
}

}  // namespace mercury
