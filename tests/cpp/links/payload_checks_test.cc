#include "links/payload_checks.h"

#include <string>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

TEST(the_check_of_a_part_is_made_once) {
  std::string block(64, 'x');
  PayloadChecks checks;
  const uint32_t all = Crc32c(0, block.data(), 64), half = Crc32c(0, block.data() + 32, 32);
  CHECK_EQ(checks.Of(block.data(), 0, 64), all);
  CHECK_EQ(checks.Of(block.data() + 32, 32, 32), half);
  block[40] = 'y';  // nobody may: only to see that it is not looked at again
  CHECK_EQ(checks.Of(block.data(), 0, 64), all);
  CHECK_EQ(checks.Of(block.data() + 32, 32, 32), half);
}

TEST(more_parts_than_are_remembered_are_right) {
  std::string block(100, 'x');
  for (size_t i = 0; i < block.size(); ++i) block[i] = static_cast<char>(i);
  PayloadChecks checks;
  for (int again = 0; again < 2; ++again) {
    for (uint32_t at = 0; at < 100; ++at) {
      CHECK_EQ(checks.Of(block.data() + at, at, 1), Crc32c(0, block.data() + at, 1));
    }
  }
}
