#include "base/refusal.h"

#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

TEST(ever_fewer_refusals_are_worth_a_line) {
  std::vector<uint64_t> said;
  for (uint64_t count = 1; count <= 1000; ++count) {
    if (WorthALine(count)) said.push_back(count);
  }
  CHECK_TRUE((said == std::vector<uint64_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}));
}
