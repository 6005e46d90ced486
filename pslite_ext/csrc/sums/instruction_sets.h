// Which instructions kernels may use here.
//
// A kernel is written once, for vectors of any width, and always inlined into a function for each
// instruction set, which names the set with one of the attributes below. Each set gives the same
// results, bit for bit.
//
// Thread-safety: pure functions.
#pragma once

#include <string_view>

#define MERCURY_INLINE __attribute__((always_inline)) inline
#if defined(__x86_64__)
#define MERCURY_AVX2 __attribute__((target("avx2,f16c")))
#define MERCURY_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))
#endif

namespace mercury {

// "plain" is everywhere; "avx2" (with F16C) and "avx512" where the processor has them.
bool HasInstructionSet(std::string_view name);

// Of a table of kernels for each set, the widest first: the first to be had, or the named one; null
// if that is not to be had here.
template <typename Table>
const typename Table::value_type* KernelsFor(const Table& table, std::string_view name = {}) {
  for (const auto& kernels : table) {
    if ((name.empty() || name == kernels.name) && HasInstructionSet(kernels.name)) return &kernels;
  }
  return nullptr;
}

// The widest of them, found once.
template <const auto& kTable>
const auto& BestKernels() {
  static const auto* const best = KernelsFor(kTable);
  return *best;
}

}  // namespace mercury
