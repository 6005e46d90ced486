#include "fabric/live/askers.h"

#include <algorithm>

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

namespace {

bool All(const Asker& /*asker*/) { return true; }

std::vector<int> Waiting(const Askers& askers) { return askers.Ready(All); }

Askers Of(const std::vector<int>& workers) {
  Askers askers;
  for (const int worker : workers) askers.Ask({worker, {0, 0, 10 + worker}});
  return askers;
}

}  // namespace

TEST(who_has_asked_longest_is_ready_first_if_it_may_have_it) {
  Askers askers = Of({4, 2, 9});
  CHECK_TRUE(Waiting(askers) == (std::vector<int>{4, 2, 9}));
  CHECK_TRUE(askers.Ready([](const Asker& asker) { return asker.worker != 4; }) ==
             (std::vector<int>{2, 9}));
  askers.Ask({4, {0, 0, 15}});  // asks anew
  CHECK_TRUE(Waiting(askers) == (std::vector<int>{2, 9, 4}));
}

TEST(a_model_and_a_sum_do_not_go_down_one_tree) {
  Askers askers;
  askers.Ask({0, {0, 7, 1}});
  askers.Ask({1, {3, 0, 1}});
  askers.Ask({2, {0, 8, 1}});
  CHECK_TRUE(Waiting(askers) == (std::vector<int>{0, 2}));
  CHECK_TRUE(askers.Ready([](const Asker& asker) { return asker.worker > 0; }) ==
             (std::vector<int>{1}));
}

TEST(a_tree_becomes_errands_and_leaves_nobody_out) {
  Askers askers = Of({0, 1, 2, 3, 4, 5});
  askers.Gone(3);
  const std::vector<Grant> grants = askers.Take(
      {{kServerNode, 2}, {kServerNode, 3}, {2, 0}, {3, 5}, {kServerNode, 1}, {2, 4}, {7, 5}}, All);
  REQUIRE_EQ(grants.size(), 2);
  CHECK_EQ(grants[0].to.worker, 2);
  CHECK_EQ(grants[0].to.wish.number, 12);
  REQUIRE_EQ(grants[0].onward.size(), 2);
  CHECK_EQ(grants[0].onward[0].worker, 0);
  CHECK_EQ(grants[0].onward[1].worker, 4);
  CHECK_EQ(grants[0].onward[1].wish, 14);
  CHECK_EQ(grants[1].to.worker, 1);
  CHECK_TRUE(grants[1].onward.empty());
  // It would have come by way of one that is gone.
  CHECK_TRUE(Waiting(askers) == (std::vector<int>{5}));
}

TEST(down_a_chain_each_is_told_who_passes_it_on_and_all_behind_a_gap_wait_again) {
  Askers askers = Of({0, 1, 2, 3});
  const std::vector<Grant> grants = askers.Take({{kServerNode, 2}, {2, 0}, {0, 3}, {3, 1}}, All);
  REQUIRE_EQ(grants.size(), 1);
  REQUIRE_EQ(grants[0].onward.size(), 3);
  CHECK_EQ(grants[0].onward[1].by, 0);
  CHECK_EQ(grants[0].onward[1].worker, 3);
  CHECK_EQ(grants[0].onward[1].wish, 13);
  askers.Gone(0);
  std::vector<int> again = Waiting(askers);
  std::sort(again.begin(), again.end());
  CHECK_TRUE(again == (std::vector<int>{1, 3}));
}

TEST(who_has_asked_for_something_else_since_is_not_in_the_tree) {
  Askers askers = Of({0, 1, 2});
  askers.Ask({1, {0, 7, 20}});  // a sum
  askers.Ask({2, {9, 0, 20}});  // more updates than there are
  const auto may = [](const Asker& asker) { return asker.wish.updates < 9; };
  const std::vector<Grant> grants =
      askers.Take({{kServerNode, 0}, {0, 1}, {0, 2}, {kServerNode, 2}}, may);
  REQUIRE_EQ(grants.size(), 1);
  CHECK_EQ(grants[0].to.worker, 0);
  CHECK_TRUE(grants[0].onward.empty());
  CHECK_TRUE(Waiting(askers) == (std::vector<int>{1}));
}

TEST(what_goes_by_way_of_a_worker_that_dies_is_sent_again) {
  Askers askers = Of({0, 1, 2, 3});
  askers.Take({{kServerNode, 1}, {1, 0}, {1, 2}, {1, 3}}, All);
  CHECK_TRUE(Waiting(askers).empty());
  askers.Ask({2, {0, 0, 20}});  // it has got it, and wants the next
  askers.Gone(3);
  askers.Gone(1);
  CHECK_TRUE(Waiting(askers) == (std::vector<int>{0, 2}));
  const std::vector<Grant> grants = askers.Take({{kServerNode, 2}, {2, 0}}, All);
  REQUIRE_EQ(grants.size(), 1);
  CHECK_EQ(grants[0].to.wish.number, 20);
  CHECK_EQ(grants[0].onward[0].wish, 10);  // as it had asked
  askers.Gone(1);                          // once
  CHECK_TRUE(Waiting(askers).empty());
}
