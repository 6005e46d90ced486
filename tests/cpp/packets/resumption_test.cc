#include "packets/resumption.h"

#include <vector>

#include "harness.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

constexpr int32_t kAll = Standing::kHasSum | Standing::kGaveFirst;

Resumption Of(const std::vector<uint8_t>& rounds, int32_t standing = kAll) {
  Resumption resumption(rounds.size());
  for (size_t w = 0; w < rounds.size(); ++w) {
    CHECK_TRUE(!resumption.Known());
    CHECK_TRUE(resumption.Stands(w, rounds[w], standing));
  }
  CHECK_TRUE(resumption.Known());
  return resumption;
}

}  // namespace

TEST(who_stands_alike_goes_on_from_there) {
  Resumption resumption = Of({7, 7, 7});
  CHECK_TRUE(resumption.Consistent() && !resumption.AnyBehind());
  CHECK_EQ(resumption.round(), 7);
  CHECK_TRUE(!resumption.Stands(1, 7, kAll));  // once
}

TEST(who_is_behind_is_given_the_sum_of_who_is_not) {
  const Resumption resumption = Of({6, 7, 6});
  CHECK_TRUE(resumption.Consistent() && resumption.AnyBehind());
  CHECK_EQ(resumption.round(), 7);
  CHECK_TRUE(resumption.Behind(0) && !resumption.Behind(1) && resumption.Behind(2));
  CHECK_EQ(resumption.Giver(), 1);
}

TEST(those_ahead_may_have_nothing_to_give) {
  Resumption resumption(3);
  resumption.Stands(0, 7, Standing::kGaveFirst);
  resumption.Stands(1, 6, kAll);
  resumption.Stands(2, 7, Standing::kGaveFirst);
  CHECK_EQ(resumption.Giver(), -1);
  CHECK_TRUE(resumption.Ahead() == std::vector<int>({0, 2}));
  for (const int newcomer : resumption.Ahead()) resumption.Drop(static_cast<size_t>(newcomer));
  CHECK_TRUE(!resumption.AnyBehind());
  CHECK_EQ(resumption.round(), 6);
}

TEST(rounds_go_on_after_255) {
  const Resumption resumption = Of({255, 0, 255});
  CHECK_TRUE(resumption.Consistent());
  CHECK_EQ(resumption.round(), 0);
  CHECK_TRUE(resumption.Behind(0) && !resumption.Behind(1));
  CHECK_TRUE(!Of({255, 1}).Consistent() && !Of({1, 255}).Consistent());
}

TEST(who_has_gone_counts_no_more) {
  Resumption resumption(3);
  resumption.Stands(0, 6, kAll);
  resumption.Stands(1, 7, kAll);
  CHECK_TRUE(!resumption.Known());
  resumption.Drop(2);
  CHECK_TRUE(resumption.Known());
  CHECK_EQ(resumption.Giver(), 1);
  resumption.Drop(1);  // the only one who had it
  CHECK_EQ(resumption.round(), 6);
  CHECK_TRUE(!resumption.AnyBehind());
}

TEST(only_who_has_a_sum_gives_it) {
  CHECK_EQ(Of({7, 7}, 0).Giver(), -1);
  Resumption resumption(3);
  resumption.Stands(0, 7, 0);
  resumption.Stands(1, 6, kAll);
  resumption.Stands(2, 7, kAll);
  CHECK_EQ(resumption.Giver(), 2);
}

TEST(first_values_are_awaited_of_who_has_not_given_them) {
  CHECK_TRUE(!Of({0, 0}).AwaitsFirst());
  Resumption resumption(2);
  resumption.Stands(0, 0, 0);
  resumption.Stands(1, 0, Standing::kGaveFirst);
  CHECK_TRUE(resumption.AwaitsFirst());
}

TEST(the_last_round_stays_what_it_was_whoever_comes_afterwards) {
  Resumption resumption = Of({200, 200});
  resumption.End();
  resumption.Expect(0);  // another, who has not said anything yet
  CHECK_EQ(resumption.round(), 200);
  CHECK_EQ(resumption.Giver(), 1);
  resumption.Drop(1);
  CHECK_EQ(resumption.Giver(), -1);
}
