// float32 values as 16-bit ones, float16 or bfloat16, and 16-bit ones added to float32 sums.
//
// Rounded to nearest even. What is too large is infinite; what is not a number is the one quiet NaN
// that sum_kernels.h names.
//
// Thread-safety: pure functions. Ownership: none; buffers need no alignment and must not overlap.
// Invariant: results are the same, bit for bit, whichever instruction set made them.
#pragma once

#include <cstdint>
#include <string_view>

#include "sums/sum_kernels.h"

namespace mercury {

// `half` is kFloat16 or kBfloat16; `values` and `sum` are float32.
void Narrow(DType half, const char* values, uint64_t elements, char* halves);
// sum[i] += halves[i]; into room, sum[i] = halves[i].
void AddWidened(DType half, const char* halves, uint64_t elements, char* sum, Into into);

// The same with the named instruction set, for tests; false (and nothing done) if it is not to be
// had here.
bool NarrowWith(std::string_view instruction_set, DType half, const char* values, uint64_t elements,
                char* halves);
bool AddWidenedWith(std::string_view instruction_set, DType half, const char* halves,
                    uint64_t elements, char* sum, Into into);

}  // namespace mercury
