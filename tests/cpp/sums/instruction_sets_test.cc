#include "sums/instruction_sets.h"

#include <array>
#include <cstring>

#include "harness.h"

using namespace mercury;

namespace {

struct Kernels {
  const char* name;
};

}  // namespace

TEST(the_first_of_a_table_that_is_here) {
  const std::array<Kernels, 3> table = {{{"never heard of"}, {"plain"}, {"avx2"}}};
  CHECK_EQ(std::strcmp(KernelsFor(table)->name, "plain"), 0);
  CHECK_TRUE(KernelsFor(table, "never heard of") == nullptr);
  CHECK_TRUE((KernelsFor(table, "avx2") != nullptr) == HasInstructionSet("avx2"));
}

TEST(the_wider_set_brings_the_narrower_one) {
  CHECK_TRUE(HasInstructionSet("plain"));
  CHECK_TRUE(HasInstructionSet("avx2") || !HasInstructionSet("avx512"));
  CHECK_FALSE(HasInstructionSet(""));
}
