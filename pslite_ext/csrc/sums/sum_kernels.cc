// All kernels are loops over vectors of the compiler's vector extension, so that they are
// vectorised at any optimisation level. An operation is written once, for any vector width;
// always_inline makes it take on the instruction set of the function that it ends up in. Only
// float16 has instructions of its own (F16C). What is left at the end of a buffer goes through a
// padded vector of its own, so that there is no second, scalar version of any operation.
#include "sums/sum_kernels.h"

#include <array>
#include <cstring>

#include "sums/half_vectors.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mercury {
namespace {

struct TypeInfo {
  DType dtype;
  const char* name;
  size_t bytes;
};

constexpr std::array<TypeInfo, 8> kTypes = {{
    {DType::kFloat32, "float32", 4},
    {DType::kFloat64, "float64", 8},
    {DType::kFloat16, "float16", 2},
    {DType::kUint8, "uint8", 1},
    {DType::kInt32, "int32", 4},
    {DType::kInt8, "int8", 1},
    {DType::kInt64, "int64", 8},
    {DType::kBfloat16, "bfloat16", 2},
}};

const TypeInfo* Find(DType dtype) {
  for (const TypeInfo& type : kTypes) {
    if (type.dtype == dtype) return &type;
  }
  return nullptr;
}

// dst and src are one vector each. Unsigned T for all integers: they wrap around.
template <typename T, size_t kWidth>
struct Plus {
  static constexpr size_t kBytes = kWidth;
  static MERCURY_INLINE void Apply(char* dst, const char* src) {
    typedef T Vector __attribute__((vector_size(kWidth)));
    Vector a, b;
    std::memcpy(&a, dst, kWidth);
    std::memcpy(&b, src, kWidth);
    a += b;
    std::memcpy(dst, &a, kWidth);
  }
};

// Each lane holds two elements: the lower and the upper half are computed one after another, and
// nothing has to move between lanes.
template <size_t kWidth>
struct PlusBfloat16 {
  static constexpr size_t kBytes = kWidth;
  using Bits = typename Lanes<kWidth>::Bits;
  using Floats = typename Lanes<kWidth>::Floats;

  // x and y hold a bfloat16 in the upper half, zero in the lower; the sum's lower half is
  // undefined.
  static MERCURY_INLINE void AddUpper(Bits* x, const Bits& y) {
    Bfloat16<kWidth>::NarrowUpper((Floats)*x + (Floats)y, x);
  }

  static MERCURY_INLINE void Apply(char* dst, const char* src) {
    Bits a, b;
    std::memcpy(&a, dst, kWidth);
    std::memcpy(&b, src, kWidth);
    Bits upper = a & 0xffff0000;
    Bits lower = a << 16;
    AddUpper(&upper, b & 0xffff0000);
    AddUpper(&lower, b << 16);
    upper = (upper & 0xffff0000) | lower >> 16;
    std::memcpy(dst, &upper, kWidth);
  }
};

template <size_t kWidth>
struct PlusFloat16 {
  static constexpr size_t kBytes = kWidth;
  using Bits = typename Lanes<kWidth>::Bits;
  using Floats = typename Lanes<kWidth>::Floats;

  static MERCURY_INLINE void AddLower(Bits* x, const Bits& y) {
    Floats a, b;
    Float16<kWidth>::Widen(*x, &a);
    Float16<kWidth>::Widen(y, &b);
    Float16<kWidth>::Narrow(a + b, x);
  }

  static MERCURY_INLINE void Apply(char* dst, const char* src) {
    Bits a, b;
    std::memcpy(&a, dst, kWidth);
    std::memcpy(&b, src, kWidth);
    Bits lower = a & 0xffff;
    Bits upper = a >> 16;
    AddLower(&lower, b & 0xffff);
    AddLower(&upper, b >> 16);
    lower |= upper << 16;
    std::memcpy(dst, &lower, kWidth);
  }
};

template <typename Operation>
MERCURY_INLINE void Loop(void* dst, const void* src, size_t bytes) {
  constexpr size_t kBytes = Operation::kBytes;
  auto* to = static_cast<char*>(dst);
  const auto* from = static_cast<const char*>(src);
  for (; bytes >= 2 * kBytes; bytes -= 2 * kBytes, to += 2 * kBytes, from += 2 * kBytes) {
    Operation::Apply(to, from);
    Operation::Apply(to + kBytes, from + kBytes);
  }
  while (bytes != 0) {
    const size_t part = bytes < kBytes ? bytes : kBytes;
    char a[kBytes] = {};
    char b[kBytes] = {};
    std::memcpy(a, to, part);
    std::memcpy(b, from, part);
    Operation::Apply(a, b);
    std::memcpy(to, a, part);
    bytes -= part;
    to += part;
    from += part;
  }
}

using Kernel = void (*)(void* dst, const void* src, size_t bytes);

struct Kernels {
  const char* name;
  Kernel float32, float64, float16, bfloat16, int8, int32, int64;

  Kernel For(DType dtype) const {
    switch (dtype) {
      case DType::kFloat32:
        return float32;
      case DType::kFloat64:
        return float64;
      case DType::kFloat16:
        return float16;
      case DType::kBfloat16:
        return bfloat16;
      case DType::kUint8:
      case DType::kInt8:
        return int8;
      case DType::kInt32:
        return int32;
      case DType::kInt64:
        return int64;
    }
    return nullptr;
  }
};

// A kernel of its own per operation, vector width and instruction set.
#define MERCURY_KERNEL(name, attribute, ...)                      \
  attribute void name(void* dst, const void* src, size_t bytes) { \
    Loop<__VA_ARGS__>(dst, src, bytes);                           \
  }
#define MERCURY_KERNELS(set, attribute, width)                  \
  MERCURY_KERNEL(set##Float32, attribute, Plus<float, width>)   \
  MERCURY_KERNEL(set##Float64, attribute, Plus<double, width>)  \
  MERCURY_KERNEL(set##Bfloat16, attribute, PlusBfloat16<width>) \
  MERCURY_KERNEL(set##Int8, attribute, Plus<uint8_t, width>)    \
  MERCURY_KERNEL(set##Int32, attribute, Plus<uint32_t, width>)  \
  MERCURY_KERNEL(set##Int64, attribute, Plus<uint64_t, width>)

MERCURY_KERNELS(Plain, , 16)
MERCURY_KERNEL(PlainFloat16, , PlusFloat16<16>)

constexpr Kernels kPlain = {"plain",       PlainFloat32, PlainFloat64, PlainFloat16,
                            PlainBfloat16, PlainInt8,    PlainInt32,   PlainInt64};

#if defined(__x86_64__)

MERCURY_KERNELS(Avx2, MERCURY_AVX2, 32)

// Not a Loop of an operation: an intrinsic is only inlined into a function with its instruction
// set.
MERCURY_AVX2 MERCURY_INLINE void AddFloat16x8(char* dst, const char* src) {
  __m128i packed;
  std::memcpy(&packed, dst, sizeof(packed));
  const __m256 a = _mm256_cvtph_ps(packed);
  std::memcpy(&packed, src, sizeof(packed));
  const __m256 sum = _mm256_add_ps(a, _mm256_cvtph_ps(packed));
  const __m256 is_nan = _mm256_cmp_ps(sum, sum, _CMP_UNORD_Q);
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
  packed = _mm256_cvtps_ph(_mm256_blendv_ps(sum, nan, is_nan), _MM_FROUND_TO_NEAREST_INT);
  std::memcpy(dst, &packed, sizeof(packed));
}

MERCURY_AVX2 void Avx2Float16(void* dst, const void* src, size_t bytes) {
  auto* to = static_cast<char*>(dst);
  const auto* from = static_cast<const char*>(src);
  for (; bytes >= 16; bytes -= 16, to += 16, from += 16) AddFloat16x8(to, from);
  PlainFloat16(to, from, bytes);
}

constexpr Kernels kAvx2 = {"avx2",       Avx2Float32, Avx2Float64, Avx2Float16,
                           Avx2Bfloat16, Avx2Int8,    Avx2Int32,   Avx2Int64};

MERCURY_KERNELS(Avx512, MERCURY_AVX512, 64)

// float16 is converted eight at a time: wider would wait for memory just the same.
constexpr Kernels kAvx512 = {"avx512",       Avx512Float32, Avx512Float64, Avx2Float16,
                             Avx512Bfloat16, Avx512Int8,    Avx512Int32,   Avx512Int64};

constexpr std::array<Kernels, 3> kBySet = {{kAvx512, kAvx2, kPlain}};
#else
constexpr std::array<Kernels, 1> kBySet = {{kPlain}};
#endif

}  // namespace

size_t ElementBytes(DType dtype) {
  const TypeInfo* type = Find(dtype);
  return type == nullptr ? 0 : type->bytes;
}

bool ParseDType(std::string_view name, DType* dtype) {
  for (const TypeInfo& type : kTypes) {
    if (name != type.name) continue;
    *dtype = type.dtype;
    return true;
  }
  return false;
}

const char* Name(DType dtype) {
  const TypeInfo* type = Find(dtype);
  return type == nullptr ? "unknown" : type->name;
}

void Add(DType dtype, void* dst, const void* src, size_t bytes) {
  BestKernels<kBySet>().For(dtype)(dst, src, bytes);
}

const char* SumInstructionSet() { return BestKernels<kBySet>().name; }

bool AddWith(std::string_view instruction_set, DType dtype, void* dst, const void* src,
             size_t bytes) {
  const Kernels* kernels = KernelsFor(kBySet, instruction_set);
  if (kernels == nullptr) return false;
  kernels->For(dtype)(dst, src, bytes);
  return true;
}

}  // namespace mercury
