#include "sums/instruction_sets.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace mercury {
namespace {

#if defined(__x86_64__)

bool HasAvx2() {
  // Older compilers do not know "f16c" as a name.
  unsigned a, b, c, d;
  return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) != 0 &&
         (c & bit_F16C) != 0;
}

bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}

#endif

}  // namespace

bool HasInstructionSet(std::string_view name) {
#if defined(__x86_64__)
  static const bool has_avx2 = HasAvx2(), has_avx512 = HasAvx512();
  if (name == "avx2") return has_avx2;
  if (name == "avx512") return has_avx512;
#endif
  return name == "plain";
}

}  // namespace mercury
