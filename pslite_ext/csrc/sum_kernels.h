// Element-wise sums: dst[i] += src[i], the only arithmetic a server does.
//
// float16 and bfloat16 are added in float32 and rounded to nearest even. Integers wrap around.
// Thread-safety: pure functions. Buffers need no alignment and must not overlap.
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

// 0 for a number that is no type of ours.
size_t ElementBytes(DType dtype);
bool ParseDType(std::string_view name, DType* dtype);
const char* Name(DType dtype);

// `bytes` is a multiple of ElementBytes(dtype). Picks AVX2 or AVX-512 at run time where it helps.
void Add(DType dtype, void* dst, const void* src, size_t bytes);

// Which instruction set Add uses here: "avx512", "avx2" or "plain".
const char* SumInstructionSet();

}  // namespace mercury
