#include "packets/shard_homes.h"

#include <algorithm>
#include <set>
#include <vector>

#include "harness.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

TEST(the_next_one_that_is_there_takes_the_place) {
  ShardHomes homes(4);
  for (int s = 0; s < 4; ++s) CHECK_EQ(homes.Of(s), s);
  CHECK_EQ(homes.Lose(3), std::vector<int>{3});
  CHECK_EQ(homes.Of(3), 0);
  // With its own go those that it had taken.
  CHECK_EQ(homes.Lose(0), (std::vector<int>{0, 3}));
  CHECK_TRUE(homes.Of(0) == 1 && homes.Of(3) == 1);
  CHECK_EQ(homes.Lose(2), std::vector<int>{2});
  CHECK_EQ(homes.Of(2), 1);
  CHECK_TRUE(homes.Lose(1).empty());  // nobody is left
}

TEST(who_comes_has_its_own_again_and_what_it_would_have_taken) {
  ShardHomes homes(4);
  homes.Lose(0);
  homes.Lose(1);
  CHECK_TRUE(homes.Of(0) == 2 && homes.Of(1) == 2);
  CHECK_EQ(homes.Find(1), (std::vector<int>{0, 1}));
  CHECK_TRUE(homes.Of(0) == 1 && homes.Of(1) == 1);
  CHECK_EQ(homes.Find(0), std::vector<int>{0});
  CHECK_TRUE(homes.Find(0).empty() && homes.Of(0) == 0);
}

// So a node that comes late knows it as well as those that have heard everything.
TEST(where_slots_are_depends_on_who_is_there_alone) {
  Random random;
  for (int trial = 0; trial < 2000; ++trial) {
    const int servers = static_cast<int>(random.Between(1, 9));
    ShardHomes homes(servers);
    std::set<int> there;
    for (int s = 0; s < servers; ++s) there.insert(s);
    for (int change = 0; change < 20; ++change) {
      const int one = static_cast<int>(random.Below(static_cast<uint64_t>(servers)));
      std::vector<int> before;
      for (int s = 0; s < servers; ++s) before.push_back(homes.Of(s));
      const bool goes = there.size() > 1 && random.OneIn(2);
      if (goes) there.erase(one);
      if (!goes) there.insert(one);
      const std::vector<int> moved = goes ? homes.Lose(one) : homes.Find(one);
      ShardHomes fresh(servers);
      for (int s = 0; s < servers; ++s) {
        if (there.count(s) == 0) fresh.Lose(s);
      }
      for (int s = 0; s < servers; ++s) {
        CHECK_TRUE(there.count(homes.Of(s)) == 1);
        CHECK_EQ(homes.Of(s), fresh.Of(s));
        const bool says = std::count(moved.begin(), moved.end(), s) != 0;
        CHECK_EQ(says, homes.Of(s) != before[static_cast<size_t>(s)]);
      }
      for (const int s : there) CHECK_EQ(homes.Of(s), s);
    }
  }
}
