#include "fabric/live/group_order.h"

#include <algorithm>

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

using Places = std::vector<int64_t>;

TEST(members_are_added_in_order) {
  GroupOrder group({3, 5, 8});
  CHECK_TRUE(group.Arrive(8).empty());
  CHECK_TRUE(group.Arrive(4).empty());  // no member
  CHECK_TRUE(group.Arrive(3) == Places{3});
  CHECK_TRUE(group.Arrive(3).empty());
  CHECK_FALSE(group.whole());
  CHECK_TRUE(group.Arrive(5) == (Places{5, 8}));
  CHECK_TRUE(group.whole());
  CHECK_TRUE(group.added() == (Places{3, 5, 8}));
  CHECK_TRUE(group.skipped().empty());
}

TEST(who_will_not_come_is_skipped_unless_it_is_here) {
  GroupOrder group({1, 2, 3});
  CHECK_TRUE(group.Arrive(2).empty());
  CHECK_TRUE(group.Skip(2).empty());
  CHECK_TRUE(group.Skip(1) == Places{2});
  CHECK_TRUE(group.Arrive(1).empty());
  CHECK_TRUE(group.Skip(3).empty());
  CHECK_TRUE(group.whole());
  CHECK_TRUE(group.added() == Places{2});
  CHECK_TRUE(group.skipped() == (Places{1, 3}));
}

TEST(each_member_is_added_or_skipped_whatever_the_order) {
  Random random;
  for (int round = 0; round < 2000; ++round) {
    Places places;
    for (int64_t place = 1; place <= random.Between(1, 8); ++place) places.push_back(2 * place);
    GroupOrder group(places);
    Places coming = places;
    coming.insert(coming.end(), places.begin(), places.end());
    std::shuffle(coming.begin(), coming.end(), random);
    Places added;
    for (const int64_t place : coming) {
      for (const int64_t now : random.OneIn(3) ? group.Skip(place) : group.Arrive(place)) {
        added.push_back(now);
      }
    }
    CHECK_TRUE(group.whole());
    CHECK_TRUE(added == group.added());
    CHECK_TRUE(std::is_sorted(added.begin(), added.end()));
    Places all = added;
    all.insert(all.end(), group.skipped().begin(), group.skipped().end());
    std::sort(all.begin(), all.end());
    CHECK_TRUE(all == places);
  }
}
