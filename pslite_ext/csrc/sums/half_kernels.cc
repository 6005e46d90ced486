// As in sum_kernels.cc: loops over vectors, each operation written once for any width, and what is
// left at the end goes through a padded vector. Only float16 has instructions of its own (F16C).
#include "sums/half_kernels.h"

#include <array>
#include <cstring>

#include "sums/half_vectors.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mercury {
namespace {

// Of kWidth bytes of float32 values, by the conversions of Half<kWidth>.
template <template <size_t> class Half, size_t kWidth>
struct Converted {
  static constexpr uint64_t kElements = kWidth / sizeof(float);
  using Bits = typename Lanes<kWidth>::Bits;
  using Floats = typename Lanes<kWidth>::Floats;
  typedef uint16_t Halves __attribute__((vector_size(kWidth / 2)));

  static MERCURY_INLINE void Widen(const char* from, Floats* to) {
    Halves halves;
    std::memcpy(&halves, from, sizeof(halves));
    Half<kWidth>::Widen(__builtin_convertvector(halves, Bits), to);
  }
  static MERCURY_INLINE void Narrow(const Floats& from, char* to) {
    Bits bits;
    Half<kWidth>::Narrow(from, &bits);
    const Halves halves = __builtin_convertvector(bits, Halves);
    std::memcpy(to, &halves, sizeof(halves));
  }
};

template <typename Conversion>
struct Narrowed : Conversion {
  static constexpr size_t kFrom = sizeof(float), kTo = sizeof(uint16_t);
  static MERCURY_INLINE void Apply(const char* from, char* to) {
    typename Conversion::Floats values;
    std::memcpy(&values, from, sizeof(values));
    Conversion::Narrow(values, to);
  }
};

template <typename Conversion, Into kInto>
struct Added : Conversion {
  static constexpr size_t kFrom = sizeof(uint16_t), kTo = sizeof(float);
  static MERCURY_INLINE void Apply(const char* from, char* to) {
    typename Conversion::Floats values, sum;
    Conversion::Widen(from, &values);
    if (kInto == Into::kSum) {
      std::memcpy(&sum, to, sizeof(sum));
      values += sum;
    }
    std::memcpy(to, &values, sizeof(values));
  }
};

template <typename Operation>
MERCURY_INLINE void ConvertAll(const char* from, uint64_t elements, char* to) {
  constexpr uint64_t kElements = Operation::kElements;
  constexpr size_t kFrom = Operation::kFrom, kTo = Operation::kTo;
  for (; elements >= kElements; elements -= kElements) {
    Operation::Apply(from, to);
    from += kElements * kFrom;
    to += kElements * kTo;
  }
  if (elements == 0) return;
  char a[kElements * kFrom] = {};
  char b[kElements * kTo] = {};
  std::memcpy(a, from, elements * kFrom);
  std::memcpy(b, to, elements * kTo);
  Operation::Apply(a, b);
  std::memcpy(to, b, elements * kTo);
}

using HalfKernel = void (*)(const char* from, uint64_t elements, char* to);

struct OfHalf {
  HalfKernel narrow, add, assign;
};

struct HalfKernels {
  const char* name;
  OfHalf float16, bfloat16;

  const OfHalf& For(DType half) const { return half == DType::kFloat16 ? float16 : bfloat16; }
};

#define MERCURY_HALF_KERNEL(name, attribute, ...)                      \
  attribute void name(const char* from, uint64_t elements, char* to) { \
    ConvertAll<__VA_ARGS__>(from, elements, to);                       \
  }
#define MERCURY_HALF_KERNELS(set, attribute, ...)                              \
  MERCURY_HALF_KERNEL(set##Narrow, attribute, Narrowed<__VA_ARGS__>)           \
  MERCURY_HALF_KERNEL(set##Add, attribute, Added<__VA_ARGS__, Into::kSum>)     \
  MERCURY_HALF_KERNEL(set##Assign, attribute, Added<__VA_ARGS__, Into::kRoom>) \
  constexpr OfHalf k##set = {set##Narrow, set##Add, set##Assign};

MERCURY_HALF_KERNELS(PlainFromFloat16, , Converted<Float16, 16>)
MERCURY_HALF_KERNELS(PlainFromBfloat16, , Converted<Bfloat16, 16>)

constexpr HalfKernels kPlainHalves = {"plain", kPlainFromFloat16, kPlainFromBfloat16};

#if defined(__x86_64__)

MERCURY_HALF_KERNELS(Avx2FromBfloat16, MERCURY_AVX2, Converted<Bfloat16, 32>)
MERCURY_HALF_KERNELS(Avx512FromBfloat16, MERCURY_AVX512, Converted<Bfloat16, 64>)

// Not a loop over an operation: an intrinsic is only inlined into a function with its instruction
// set.
MERCURY_AVX2 void Avx2FromFloat16Narrow(const char* from, uint64_t elements, char* to) {
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
  for (; elements >= 8; elements -= 8, from += 32, to += 16) {
    __m256 values;
    std::memcpy(&values, from, sizeof(values));
    const __m256 is_nan = _mm256_cmp_ps(values, values, _CMP_UNORD_Q);
    const __m128i halves =
        _mm256_cvtps_ph(_mm256_blendv_ps(values, nan, is_nan), _MM_FROUND_TO_NEAREST_INT);
    std::memcpy(to, &halves, sizeof(halves));
  }
  PlainFromFloat16Narrow(from, elements, to);
}

template <Into kInto>
MERCURY_AVX2 void Avx2FromFloat16Add(const char* from, uint64_t elements, char* to) {
  for (; elements >= 8; elements -= 8, from += 16, to += 32) {
    __m128i halves;
    std::memcpy(&halves, from, sizeof(halves));
    __m256 values = _mm256_cvtph_ps(halves), sum;
    if (kInto == Into::kSum) {
      std::memcpy(&sum, to, sizeof(sum));
      values = _mm256_add_ps(values, sum);
    }
    std::memcpy(to, &values, sizeof(values));
  }
  (kInto == Into::kSum ? PlainFromFloat16Add : PlainFromFloat16Assign)(from, elements, to);
}

constexpr OfHalf kAvx2FromFloat16 = {Avx2FromFloat16Narrow, Avx2FromFloat16Add<Into::kSum>,
                                     Avx2FromFloat16Add<Into::kRoom>};
// float16 is converted eight at a time: wider would wait for memory just the same.
constexpr std::array<HalfKernels, 3> kHalvesBySet = {
    {{"avx512", kAvx2FromFloat16, kAvx512FromBfloat16},
     {"avx2", kAvx2FromFloat16, kAvx2FromBfloat16},
     kPlainHalves}};
#else
constexpr std::array<HalfKernels, 1> kHalvesBySet = {{kPlainHalves}};
#endif

void RunHalves(const OfHalf& kernels, const char* halves, uint64_t elements, char* sum, Into into) {
  (into == Into::kSum ? kernels.add : kernels.assign)(halves, elements, sum);
}

}  // namespace

void Narrow(DType half, const char* values, uint64_t elements, char* halves) {
  BestKernels<kHalvesBySet>().For(half).narrow(values, elements, halves);
}

void AddWidened(DType half, const char* halves, uint64_t elements, char* sum, Into into) {
  RunHalves(BestKernels<kHalvesBySet>().For(half), halves, elements, sum, into);
}

bool NarrowWith(std::string_view instruction_set, DType half, const char* values, uint64_t elements,
                char* halves) {
  const HalfKernels* kernels = KernelsFor(kHalvesBySet, instruction_set);
  if (kernels != nullptr) kernels->For(half).narrow(values, elements, halves);
  return kernels != nullptr;
}

bool AddWidenedWith(std::string_view instruction_set, DType half, const char* halves,
                    uint64_t elements, char* sum, Into into) {
  const HalfKernels* kernels = KernelsFor(kHalvesBySet, instruction_set);
  if (kernels != nullptr) RunHalves(kernels->For(half), halves, elements, sum, into);
  return kernels != nullptr;
}

}  // namespace mercury
