#include "fabric/live/joint_arrivals.h"

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

TEST(a_group_is_whole_once_all_servers_have_it) {
  JointArrivals arrivals(3);
  CHECK_FALSE(arrivals.At({1, 3}, 2));
  CHECK_FALSE(arrivals.AtFirst({{1, 3}, {2}, 7}));
  CHECK_FALSE(arrivals.At({1, 3}, 2));  // said again
  CHECK_FALSE(arrivals.At({1}, 1));     // another group
  const auto whole = arrivals.At({1, 3}, 1);
  REQUIRE_TRUE(whole.has_value());
  CHECK_EQ(whole->memory, 7);
  CHECK_TRUE(whole->skipped == std::vector<int64_t>{2});
  CHECK_FALSE(arrivals.At({1, 3}, 1));  // it was given
  CHECK_FALSE(arrivals.At({5}, 1));
  CHECK_FALSE(arrivals.At({5}, 2));
  CHECK_EQ(arrivals.AtFirst({{5}, {}, 8}).value_or(Arrival()).memory, 8);
}

TEST(what_cannot_be_applied_any_more_is_let_go_of) {
  JointArrivals arrivals(2);
  arrivals.AtFirst({{1, 2}, {}, 7});
  arrivals.AtFirst({{3}, {}, 8});
  arrivals.At({2, 4}, 1);  // the first server has none of it
  const auto possible = [](int64_t place) { return place != 2; };
  const std::vector<Arrival> dropped = arrivals.Drop(possible);
  REQUIRE_EQ(dropped.size(), 1);
  CHECK_EQ(dropped[0].memory, 7);
  CHECK_TRUE(arrivals.Drop(possible).empty());
  CHECK_TRUE(arrivals.At({3}, 1).has_value());
}
