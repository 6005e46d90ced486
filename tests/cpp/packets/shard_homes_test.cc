#include "packets/shard_homes.h"

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

TEST(a_home_is_always_there) {
  Random random;
  for (int trial = 0; trial < 2000; ++trial) {
    const int servers = static_cast<int>(random.Between(1, 9));
    ShardHomes homes(servers);
    std::set<int> there;
    for (int s = 0; s < servers; ++s) there.insert(s);
    while (there.size() > 1) {
      const int lost = static_cast<int>(random.Below(static_cast<uint64_t>(servers)));
      if (there.erase(lost) == 0) continue;
      for (const int shard : homes.Lose(lost)) CHECK_TRUE(there.count(homes.Of(shard)) == 1);
      for (int s = 0; s < servers; ++s) CHECK_TRUE(there.count(homes.Of(s)) == 1);
      for (const int s : there) CHECK_EQ(homes.Of(s), s);
    }
  }
}
