// What a worker says that it has, and all must have alike before anything is summed.
//
// Thread-safety: a plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mercury {

struct Claim {
  enum class Kind : char { kTensor = 't', kModel = 'm', kSums = 's', kSteps = 'p' };
  uint64_t subject = 0;  // the tensor's key, or a number of the same kind
  Kind of = Kind::kTensor;
  // Of a tensor "float32 of shape (2, 3)"; of a model a line for each key: key, tab, name; of sums
  // "row_sparse arrays"; of the steps so far "lr = 0.1 from update 1 on".
  std::string text;
};
// Lines for more parameters than there may be tensors, if their names are not very long.
constexpr size_t kClaimTextBytesMax = (size_t{16} << 20) - 64;

}  // namespace mercury
