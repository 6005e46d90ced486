#include "policy/prophet/prefix_minimum.h"

#include <algorithm>
#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

TEST(of_nothing_there_is_no_least) {
  PrefixMinimum numbers;
  CHECK_EQ(numbers.OfFirst(0), PrefixMinimum::kNone);
  CHECK_EQ(numbers.OfFirst(7), PrefixMinimum::kNone);
  numbers.Assign({3});
  CHECK_EQ(numbers.OfFirst(0), PrefixMinimum::kNone);
  CHECK_EQ(numbers.OfFirst(1), 3);
  numbers.Set(0, 5);
  CHECK_EQ(numbers.OfFirst(9), 5);
}

TEST(it_is_what_counting_finds) {
  mercury::testing::Random random;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int64_t> plain(1 + random.Below(40));
    for (int64_t& number : plain) number = random.Between(-20, 20);
    PrefixMinimum numbers;
    numbers.Assign(plain);
    for (int step = 0; step < 50; ++step) {
      const size_t at = random.Below(plain.size());
      plain[at] = random.OneIn(3) ? PrefixMinimum::kNone : random.Between(-20, 20);
      numbers.Set(at, plain[at]);
      const size_t count = 1 + random.Below(plain.size());
      CHECK_EQ(numbers.OfFirst(count),
               *std::min_element(plain.begin(), plain.begin() + static_cast<ptrdiff_t>(count)));
    }
  }
}
