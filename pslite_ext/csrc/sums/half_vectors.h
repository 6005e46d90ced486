// float16 and bfloat16 in vectors of 32-bit lanes: widened to float32, and narrowed from it,
// rounded to nearest even. What is not a number becomes the one quiet NaN 0x7e00 (float16) or
// 0x7fc0 (bfloat16).
//
// Thread-safety: pure functions. They take on the instruction set of where they end up in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sums/instruction_sets.h"

namespace mercury {

template <size_t kWidth>
struct Lanes {
  typedef uint32_t Bits __attribute__((vector_size(kWidth)));
  typedef int32_t Signed __attribute__((vector_size(kWidth)));
  typedef float Floats __attribute__((vector_size(kWidth)));
};

// One element is in the lower half of each lane; the upper half is zero.
template <size_t kWidth>
struct Bfloat16 {
  using Bits = typename Lanes<kWidth>::Bits;
  using Floats = typename Lanes<kWidth>::Floats;

  static MERCURY_INLINE void Widen(const Bits& half, Floats* out) { *out = (Floats)(half << 16); }

  // Into the upper half of each lane; what the lower half holds is undefined.
  static MERCURY_INLINE void NarrowUpper(const Floats& value, Bits* out) {
    const Bits bits = (Bits)value;
    const Bits rounded = bits + 0x7fff + (bits >> 16 & 1);
    *out = value == value ? rounded : Bits{} + 0x7fc00000;
  }

  static MERCURY_INLINE void Narrow(const Floats& value, Bits* out) {
    NarrowUpper(value, out);
    *out >>= 16;
  }
};

// Without instructions for it, after F. Giesen's branch-free conversions.
template <size_t kWidth>
struct Float16 {
  using Bits = typename Lanes<kWidth>::Bits;
  using Signed = typename Lanes<kWidth>::Signed;
  using Floats = typename Lanes<kWidth>::Floats;

  // From a float16 in the lower half of a lane to a float32.
  static MERCURY_INLINE void Widen(const Bits& half, Floats* out) {
    const Bits magnitude = (half & 0x7fff) << 13;
    const Bits exponent = magnitude & 0x0f800000;
    // The exponent's offset grows from 15 to 127; infinity and NaN go to the top.
    Bits bits = magnitude + 0x38000000;
    bits = exponent == 0x0f800000 ? bits + 0x38000000 : bits;
    // A subnormal: let a subtraction find the leading bit. Zero is one of them.
    const Floats small = (Floats)(bits + 0x00800000) - 0x1p-14F;
    bits = exponent == 0 ? (Bits)small : bits;
    *out = (Floats)(bits | (half & 0x8000) << 16);
  }

  // To a float16 in the lower half of a lane, rounded to nearest even.
  static MERCURY_INLINE void Narrow(const Floats& value, Bits* out) {
    const Bits sign = (Bits)value & 0x80000000;
    const Bits bits = (Bits)value ^ sign;
    const auto order = (Signed)bits;  // SSE2 compares signed numbers only
    // What rounds to 65536 or more carries into the exponent and so becomes infinity by itself.
    Bits half = (bits - 0x38000000 + 0xfff + (bits >> 13 & 1)) >> 13;
    half = order >= 0x47800000 ? Bits{} + 0x7c00 : half;
    // Below 2^-14: an addition shifts the digits to where a subnormal has them, and rounds.
    const Bits small = (Bits)((Floats)bits + 0.5F) - 0x3f000000;
    half = order < 0x38800000 ? small : half;
    half |= sign >> 16;
    *out = order > 0x7f800000 ? Bits{} + 0x7e00 : half;
  }
};

}  // namespace mercury
