// The instruction sets whose kernels can be tried here.
//
// Thread-safety: a pure function.
#pragma once

#include <string>
#include <vector>

#include "sums/instruction_sets.h"

namespace mercury::testing {

inline std::vector<std::string> Sets() {
  std::vector<std::string> sets;
  for (const char* set : {"plain", "avx2", "avx512"}) {
    if (HasInstructionSet(set)) sets.emplace_back(set);
  }
  return sets;
}

}  // namespace mercury::testing
