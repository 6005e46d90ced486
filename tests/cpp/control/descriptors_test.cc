#include "control/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

TEST(a_process_knows_when_it_can_open_no_more) {
  rlimit before{};
  REQUIRE_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
  close(next);
  const rlimit tight{static_cast<rlim_t>(next), before.rlim_max};
  CHECK_TRUE(DescriptorLeft());
  REQUIRE_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  const bool left = DescriptorLeft();
  const std::string text = NoDescriptorLeft("the scheduler");
  REQUIRE_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  CHECK_FALSE(left);
  CHECK_EQ(text, "the scheduler has no file descriptor left to reach others: it may have " +
                     std::to_string(next) + " (ulimit -n); give it more");
  CHECK_TRUE(DescriptorLeft());
}
