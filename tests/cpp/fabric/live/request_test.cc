#include "fabric/live/request.h"

#include <cmath>
#include <string>

#include "harness.h"

using namespace mercury::fabric;

TEST(requests_that_make_no_sense_are_refused) {
  const auto says = [](const Request& request) { return Check(request, 2).text(); };
  CHECK_TRUE(Check({{1, 1}, 0, 1, 0, 0}, 2).ok());
  CHECK_EQ(says({{2, 1}, 0, 1, 1, 0}), "update 1 of worker 2: there is no such worker");
  CHECK_EQ(says({{-1, 1}, 0, 1, 1, 0}), "update 1 of worker -1: there is no such worker");
  CHECK_EQ(says({{0, 0}, 0, 1, 1, 0}),
           "update 0 of worker 0: updates are numbered from 1, versions from 0");
  CHECK_EQ(says({{0, 1}, -1, 1, 1, 0}),
           "update 1 of worker 0: updates are numbered from 1, versions from 0");
  CHECK_EQ(says({{0, 1}, 0, 0, 1, 0}), "update 1 of worker 0 has 0 bytes");
  CHECK_EQ(says({{0, 1}, 0, kUpdateBytesMax + 1, 1, 0}),
           "update 1 of worker 0 has 17592186044417 bytes");
  const std::string no_norm = "update 1 of worker 0: its norm is no number, or below 0";
  CHECK_EQ(says({{0, 1}, 0, 1, std::nan(""), 0}), no_norm);
  CHECK_EQ(says({{0, 1}, 0, 1, -1, 0}), no_norm);
}
