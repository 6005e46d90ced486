// Gradient compression of float32 gradients to 1 or 2 bits an element, with error feedback.
//
// What quantising loses stays in `residual` (worker side) and is added to the next gradient.
// 2bit: residual += grad; >= threshold sends +threshold, <= -threshold sends -threshold, else 0;
//       what was sent leaves the residual. Codes: 0 zero, 3 plus, 2 minus.
// 1bit: residual += grad; > threshold sends +1 (code 1), else -1; what was sent leaves the
// residual. Packed little-endian, element 0 in the lowest bits of byte 0; bits behind the last
// element are 0.
//
// Thread-safety: pure functions. Ownership: none. Invariants: what was sent plus the residual is
// the sum of the gradients, to rounding; any bytes can be decompressed (2bit code 1 counts as
// zero). A gradient that is not a number stays in the residual and is sent as 0 (2bit) or -1 (1bit)
// ever after.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sums/sum_kernels.h"

namespace mercury {

enum class Compression : uint8_t { kNone = 0, kOneBit = 1, kTwoBit = 2 };

// Bytes that `elements` take when packed.
size_t CompressedBytes(Compression kind, size_t elements);

// Reads grad, updates residual, writes CompressedBytes(kind, elements) bytes to packed.
void Compress(Compression kind, float threshold, const float* grad, float* residual,
              size_t elements, uint8_t* packed);

// sum[i] += value of element i; into room, sum[i] = value. `sum` needs no alignment.
void Decompress(Compression kind, float threshold, const uint8_t* packed, size_t elements,
                float* sum, Into into);

}  // namespace mercury
