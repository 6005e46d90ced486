// float32 values as signed bytes with a scale for each 64 of them.
//
//   block:  up to 64 bytes q, and then its scale s, a bfloat16; a value is s * q
//
// Of a block whose largest magnitude is m, s is m / 127, rounded up to a bfloat16, and q is the
// value / s, rounded to nearest even. Of one that is all zero, s is 0. If a value is infinite or
// not a number, s is NaN, and so are all of the block's values when they are read.
//
// Thread-safety: pure functions. Ownership: none; buffers need no alignment and must not overlap.
// Invariants: a value is off by at most s / 2, and s is at most 1.008 m / 127 for blocks that are
// not tiny; any bytes can be added; results are the same, bit for bit, whichever instruction set
// made them.
#pragma once

#include <cstdint>
#include <string_view>

#include "sums/sum_kernels.h"

namespace mercury {

constexpr uint64_t kBlockElements = 64;
constexpr uint64_t kBlockScaleBytes = 2;

constexpr uint64_t BlockBytes(uint64_t elements) {
  return elements + (elements + kBlockElements - 1) / kBlockElements * kBlockScaleBytes;
}

// `values` and `sum` are float32.
void QuantiseBlocks(const char* values, uint64_t elements, char* blocks);
// sum[i] += value of element i; into room, sum[i] = value.
void AddBlocks(const char* blocks, uint64_t elements, char* sum, Into into);

// The same with the named instruction set, for tests; false (and nothing done) if it is not to be
// had here.
bool QuantiseBlocksWith(std::string_view instruction_set, const char* values, uint64_t elements,
                        char* blocks);
bool AddBlocksWith(std::string_view instruction_set, const char* blocks, uint64_t elements,
                   char* sum, Into into);

}  // namespace mercury
