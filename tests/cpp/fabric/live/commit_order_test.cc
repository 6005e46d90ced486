#include "fabric/live/commit_order.h"

#include <algorithm>

#include "harness.h"

using namespace mercury;
using namespace mercury::fabric;
using namespace mercury::testing;

namespace {

std::vector<Placed> At(const std::vector<int64_t>& places, int64_t version = 0) {
  std::vector<Placed> updates;
  for (const int64_t place : places) updates.push_back({place, {0, place}, version});
  return updates;
}

// The places that were applied, group by group.
std::vector<std::vector<int64_t>> Groups(const Progress& progress) {
  std::vector<std::vector<int64_t>> groups;
  for (const Applied& applied : progress.commits) {
    groups.emplace_back();
    for (const Placed& update : applied.updates) groups.back().push_back(update.place);
  }
  return groups;
}

using Expected = std::vector<std::vector<int64_t>>;

}  // namespace

TEST(an_early_arrival_waits_for_its_predecessor) {
  CommitOrder order(10, 5);
  REQUIRE_OK(order.Expect(At({1, 2, 3}, 8)));
  CHECK_TRUE(order.Arrive({{2, 3}, {}, 7}));
  CHECK_TRUE(order.Advance().commits.empty());
  CHECK_TRUE(order.Arrive({{1}, {}, 6}));
  const Progress progress = order.Advance();
  CHECK_TRUE(Groups(progress) == Expected({{1}, {2, 3}}));
  CHECK_EQ(progress.commits[1].memory, 7);
  CHECK_EQ(progress.commits[1].version, 13);
  CHECK_EQ(order.applied_through(), 3);
  CHECK_FALSE(order.Arrive({{1}, {}, 8}));  // once more
}

TEST(a_round_is_applied_as_a_whole_and_makes_one_version) {
  CommitOrder order(10, mercury::kNever);
  REQUIRE_OK(order.Expect({{1, {0, 1}, 9, 1}, {2, {1, 1}, 9, 1}, {3, {2, 1}, 9, 1}}));
  CHECK_TRUE(order.Arrive({{1, 3}, {}, 7}));  // neighbours or not
  CHECK_TRUE(order.Advance().commits.empty());
  CHECK_FALSE(order.Arrive({{1}, {}, 6}));
  CHECK_TRUE(order.Arrive({{2}, {}, 8}));
  const Progress progress = order.Advance();
  CHECK_TRUE(Groups(progress) == Expected({{1, 3}, {2}}));
  CHECK_TRUE(progress.commits[0].first);
  CHECK_FALSE(progress.commits[1].first);
  CHECK_EQ(progress.commits[0].versions + progress.commits[1].versions, 1);
  CHECK_EQ(order.version(), 11);
  CHECK_EQ(order.applied_through(), 3);
}

TEST(a_round_waits_for_all_that_is_not_void_and_while_it_is_held) {
  CommitOrder order(0, mercury::kNever);
  REQUIRE_OK(order.Expect({{1, {0, 1}, 0, 1}, {2, {1, 1}, 0, 1}}));
  REQUIRE_OK(order.Expect({{3, {0, 2}, 0, 3}}));
  order.Hold(1);
  CHECK_TRUE(order.Arrive({{3}, {}, 3}));
  CHECK_TRUE(order.Arrive({{1}, {}, 1}));
  CHECK_TRUE(order.Held().empty());  // 2 is missing
  order.Void({2});
  CHECK_TRUE(order.Held() == std::vector<int64_t>{1});
  CHECK_TRUE(order.Advance().commits.empty());
  order.Release(1);
  CHECK_TRUE(Groups(order.Advance()) == Expected({{1}, {3}}));
  CHECK_EQ(order.version(), 2);
}

TEST(a_round_is_applied_however_many_arrivals_it_has) {
  CommitOrder order(0, mercury::kNever);
  constexpr int64_t kUpdates = 5000;
  std::vector<Placed> updates;
  for (int64_t place = 1; place <= kUpdates; ++place) updates.push_back({place, {0, place}, 0, 1});
  REQUIRE_OK(order.Expect(updates));
  for (int64_t place = 1; place <= kUpdates; ++place) {
    REQUIRE_TRUE(order.Arrive({{place}, {}, place}));
  }
  CHECK_EQ(order.Advance().commits.size(), kUpdates);
  CHECK_EQ(order.version(), 1);
  // What nobody expects is still limited.
  size_t kept = 0;
  for (int64_t place = kUpdates + 1; place <= 2 * kUpdates; ++place) {
    if (order.Arrive({{place}, {}, place})) ++kept;
  }
  CHECK_EQ(kept, kArrivalsMost);
}

TEST(a_group_of_two_rounds_or_with_a_void_member_is_given_back) {
  CommitOrder order(0, mercury::kNever);
  REQUIRE_OK(order.Expect({{1, {0, 1}, 0, 1}, {2, {1, 1}, 0, 1}, {3, {0, 2}, 0, 3}}));
  CHECK_TRUE(order.Arrive({{2, 3}, {}, 7}));
  CHECK_EQ(order.Advance().given_back.size(), 1);
  CHECK_TRUE(order.Arrive({{1, 2}, {}, 8}));
  order.Void({2}, true);
  CHECK_EQ(order.Advance().given_back.size(), 1);
  CHECK_TRUE(order.Arrive({{3, 4}, {}, 9}));  // a round is expected as a whole
  CHECK_EQ(order.Advance().given_back.size(), 1);
  CHECK_EQ(order.version(), 0);
}

TEST(an_all_reduce_makes_no_version) {
  CommitOrder order(5, 3);
  REQUIRE_OK(order.Expect({{1, {0, 1}, 0, 1, true}, {2, {1, 1}, 0, 1, true}, {3, {0, 2}, 3}}));
  for (const int64_t place : {1, 2, 3}) CHECK_TRUE(order.Arrive({{place}, {}, place}));
  const Progress progress = order.Advance();
  REQUIRE_EQ(progress.commits.size(), 3);
  CHECK_EQ(progress.commits[1].version, 5);
  CHECK_TRUE(progress.commits[1].updates[0].reduce);
  CHECK_EQ(progress.commits[2].version, 6);
}

TEST(what_comes_before_it_is_expected_is_kept) {
  CommitOrder order(0, mercury::kNever);
  CHECK_TRUE(order.Arrive({{2, 4}, {3}, 1}));
  CHECK_TRUE(order.Advance().commits.empty());
  REQUIRE_OK(order.Expect(At({1, 2, 3})));
  CHECK_TRUE(order.Arrive({{1}, {}, 2}));
  CHECK_TRUE(Groups(order.Advance()) == Expected({{1}}));
  REQUIRE_OK(order.Expect(At({4})));
  CHECK_TRUE(Groups(order.Advance()) == Expected({{2, 4}}));
  CHECK_EQ(order.version(), 3);
  CHECK_TRUE(order.Arrive({{5}, {6}, 3}));
  REQUIRE_OK(order.Expect(At({5})));
  CHECK_TRUE(Groups(order.Advance()) == Expected({{5}}));
  REQUIRE_OK(order.Expect(At({6, 7})));
  CHECK_EQ(order.waiting(), 1);  // 6 was skipped before it was expected
}

TEST(no_update_is_taken_that_could_come_too_late) {
  CommitOrder order(10, 3);
  CHECK_STATUS(Code::kInvalidArgument, order.Expect(At({1, 2}, 8)));
  CHECK_EQ(order.Expect(At({1, 2}, 8)).text(),
           "update 2 of worker 0 was computed from version 8 and would make version 12: more than "
           "3 later");
  CHECK_EQ(order.waiting(), 0);
  REQUIRE_OK(order.Expect(At({1}, 8)));
  CHECK_STATUS(Code::kInvalidArgument, order.Expect(At({1}, 10)));  // a place is taken once
}

TEST(who_cannot_come_is_passed_over) {
  CommitOrder order(0, mercury::kNever);
  REQUIRE_OK(order.Expect(At({1, 2, 3})));
  order.Arrive({{2}, {}, 1});
  CHECK_TRUE(order.Void({1, 2}) == std::vector<int64_t>{1});  // 2 has come
  CHECK_TRUE(Groups(order.Advance()) == Expected({{2}}));
  CHECK_FALSE(order.Arrive({{1}, {}, 2}));
  CHECK_TRUE(order.Void({2}).empty());
}

TEST(a_held_commit_waits_for_the_replica_or_is_discarded) {
  CommitOrder order(0, mercury::kNever);
  REQUIRE_OK(order.Expect(At({1, 2, 3})));
  order.Hold(3);
  order.Arrive({{1}, {}, 1});
  order.Arrive({{2, 3}, {}, 2});
  CHECK_TRUE(Groups(order.Advance()) == Expected({{1}}));
  CHECK_TRUE(order.Held() == (std::vector<int64_t>{2, 3}));
  order.Release(2);
  CHECK_TRUE(order.Advance().commits.empty());
  order.Release(3);
  CHECK_TRUE(order.Held().empty());
  CHECK_TRUE(Groups(order.Advance()) == Expected({{2, 3}}));
  REQUIRE_OK(order.Expect(At({4})));
  order.Hold(4);
  order.Arrive({{4}, {}, 3});
  CHECK_TRUE(order.Void({4}, true) == std::vector<int64_t>{4});
  const Progress progress = order.Advance();
  CHECK_TRUE(progress.commits.empty());
  REQUIRE_EQ(progress.given_back.size(), 1);
  CHECK_EQ(progress.given_back[0].memory, 3);
}

TEST(a_replica_gives_back_what_the_server_has_applied_otherwise) {
  CommitOrder order(0, mercury::kNever);
  order.Arrive({{1, 2}, {}, 1});
  order.Arrive({{3, 5}, {}, 2});
  REQUIRE_OK(order.Expect(At({1, 3, 4, 5, 6})));  // 2 was void at the server, 4 was not
  const Progress progress = order.Advance();
  CHECK_TRUE(progress.commits.empty());
  REQUIRE_EQ(progress.given_back.size(), 2);
  order.Arrive({{6}, {}, 3});
  order.Jump(4, 5);  // it is sent the model instead
  CHECK_TRUE(Groups(order.Advance()) == Expected({{6}}));
  CHECK_EQ(order.version(), 5);
}

TEST(who_takes_over_goes_on_from_what_it_has) {
  CommitOrder order(4, mercury::kNever);
  REQUIRE_OK(order.Expect(At({1, 2, 3})));
  order.Arrive({{1}, {}, 1});
  order.Arrive({{3}, {}, 3});
  CHECK_TRUE(Groups(order.Advance()) == Expected({{1}}));
  const std::vector<Placed> lost = order.TakeOver(2);
  REQUIRE_EQ(lost.size(), 2);
  CHECK_EQ(lost[0].place, 2);
  CHECK_EQ(order.Advance().given_back.size(), 1);
  CHECK_STATUS(Code::kInvalidArgument, order.Expect(At({4}, 3)));
  REQUIRE_OK(order.Expect(At({4}, 4)));
}

TEST(whatever_comes_when_each_place_is_applied_once_in_order_or_void) {
  Random random;
  for (int round = 0; round < 3000; ++round) {
    const int64_t bound = random.Between(3, 10);
    CommitOrder order(100, bound);
    const int64_t places = random.Between(1, 12);
    std::vector<Arrival> coming;
    std::vector<std::vector<int64_t>> lost;  // of aggregators that die
    std::vector<bool> is_void(static_cast<size_t>(places) + 1, false);
    for (int64_t place = 1; place <= places;) {
      Arrival arrival;
      arrival.memory = place;
      for (int64_t left = random.Between(1, 4); left > 0 && place <= places; --left, ++place) {
        (random.OneIn(6) ? arrival.skipped : arrival.places).push_back(place);
      }
      for (const int64_t skipped : arrival.skipped) is_void[static_cast<size_t>(skipped)] = true;
      std::vector<int64_t> members = arrival.places;
      members.insert(members.end(), arrival.skipped.begin(), arrival.skipped.end());
      std::sort(members.begin(), members.end());
      if (random.OneIn(5) || arrival.places.empty()) {
        for (const int64_t member : members) is_void[static_cast<size_t>(member)] = true;
        lost.push_back(members);
      } else {
        coming.push_back(arrival);
        if (random.OneIn(8)) coming.push_back(arrival);  // said twice
      }
    }
    std::shuffle(coming.begin(), coming.end(), random);
    std::vector<int64_t> applied;
    int64_t next = 1;
    while (next <= places || !coming.empty() || !lost.empty()) {
      const uint64_t what = random.Below(3);
      if (what == 0 && next <= places) {
        std::vector<Placed> updates;
        for (int64_t left = random.Between(1, 3); left > 0 && next <= places; --left, ++next) {
          updates.push_back({next, {1, next}, 100 + random.Between(-2, 2)});
        }
        const bool taken = order.Expect(updates).ok();
        if (!taken) {  // it is computed anew
          const int64_t now = order.version() + static_cast<int64_t>(order.waiting());
          for (Placed& update : updates) update.version = now;
          REQUIRE_OK(order.Expect(updates));
        }
      } else if (what == 1 && !coming.empty()) {
        order.Arrive(coming.back());
        coming.pop_back();
      } else if (what == 2 && !lost.empty() && next > lost.back().back()) {
        order.Void(lost.back());
        lost.pop_back();
      }
      for (const Applied& commit : order.Advance().commits) {
        int64_t version = commit.version - static_cast<int64_t>(commit.updates.size());
        for (const Placed& update : commit.updates) {
          applied.push_back(update.place);
          CHECK_TRUE(++version - update.version <= bound);
        }
      }
    }
    std::vector<int64_t> wanted;
    for (int64_t place = 1; place <= places; ++place) {
      if (!is_void[static_cast<size_t>(place)]) wanted.push_back(place);
    }
    CHECK_TRUE(applied == wanted);
    CHECK_EQ(order.version(), 100 + static_cast<int64_t>(wanted.size()));
    CHECK_EQ(order.waiting(), 0);
  }
}
