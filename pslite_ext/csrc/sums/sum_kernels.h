// Element-wise sums: dst[i] += src[i], the only arithmetic a server does.
//
// float16 and bfloat16 are added in float32 and rounded to nearest even. Integers wrap around. A
// sum that is not a number is the one quiet NaN 0x7e00 (float16) or 0x7fc0 (bfloat16), whatever
// went in; in float32 and float64, which NaN comes out of two is the processor's choice.
//
// Thread-safety: pure functions. Ownership: none; buffers need no alignment and must not overlap.
// Invariant: a sum is the same, bit for bit, whichever instruction set made it (but for those
// NaNs).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mercury {

// The numbers are MXNet's type flags (mshadow), which travel on the wire.
enum class DType : uint8_t {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kUint8 = 3,
  kInt32 = 4,
  kInt8 = 5,
  kInt64 = 6,
  kBfloat16 = 12,
};

// What values go into: a sum that is there, or room that has none yet.
enum class Into : uint8_t { kSum, kRoom };

// 0 for a number that is no type of ours.
size_t ElementBytes(DType dtype);
bool ParseDType(std::string_view name, DType* dtype);
const char* Name(DType dtype);

// `bytes` is a multiple of ElementBytes(dtype), which is not 0. Picks AVX-512 or AVX2 at run time
// where there is one.
void Add(DType dtype, void* dst, const void* src, size_t bytes);

// Which instruction set Add uses here: "avx512", "avx2" or "plain".
const char* SumInstructionSet();

// Add with the named instruction set, for tests; false (and nothing done) if it is not to be had
// here.
bool AddWith(std::string_view instruction_set, DType dtype, void* dst, const void* src,
             size_t bytes);

}  // namespace mercury
