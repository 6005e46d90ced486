#include "fabric/live/joint_arrivals.h"

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

TEST(a_group_is_whole_once_all_servers_have_it) {
  JointArrivals arrivals(3);
  CHECK_FALSE(arrivals.At({1, 2}, 2, 0));
  CHECK_FALSE(arrivals.At({1, 2}, 0, 7));
  CHECK_FALSE(arrivals.At({1, 2}, 2, 0));  // said again
  CHECK_FALSE(arrivals.At({1}, 1, 0));     // another group
  CHECK_EQ(arrivals.At({1, 2}, 1, 0).value_or(0), 7);
  CHECK_FALSE(arrivals.At({1, 2}, 1, 0));  // it was given
}

TEST(what_cannot_be_applied_any_more_is_let_go_of) {
  JointArrivals arrivals(2);
  arrivals.At({1, 2}, 0, 7);
  arrivals.At({3}, 0, 8);
  arrivals.At({2, 4}, 1, 0);  // the first server has none of it
  const auto possible = [](int64_t place) { return place != 2; };
  CHECK_TRUE(arrivals.Drop(possible) == std::vector<int64_t>{7});
  CHECK_TRUE(arrivals.Drop(possible).empty());
  CHECK_EQ(arrivals.At({3}, 1, 0).value_or(0), 8);
}
