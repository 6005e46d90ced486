#include "fabric/net/passing_on.h"

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

namespace {

std::shared_ptr<Inflow> Coming(float value) {
  auto inflow = std::make_shared<Inflow>();
  inflow->elements = 4;
  inflow->sum = std::make_shared<Vector>(4, value);
  return inflow;
}

Hop Of(const std::vector<int64_t>& places, Goal goal = Goal::kServer) {
  Hop hop;
  hop.goal = goal;
  hop.places = places;
  return hop;
}

std::shared_ptr<const Vector> Own() { return std::make_shared<const Vector>(4, 1.0F); }

}  // namespace

TEST(what_comes_is_known_by_its_places_and_its_goal) {
  PassingOn passing(0, {});
  passing.Told(1, Of({3, 5}), Own(), nullptr);
  passing.Told(2, Of({3, 5}, Goal::kReplica), Own(), nullptr);
  CHECK_TRUE(passing.Knows(1) && !passing.Knows(3));
  passing.Comes(Goal::kServer, {4}, Coming(9));
  CHECK_EQ(passing.Advance(1), 0);
  const std::shared_ptr<Inflow> inflow = Coming(2);
  passing.Comes(Goal::kServer, {3}, inflow);
  CHECK_EQ(passing.Advance(1), 0);  // nothing of it is there
  inflow->bytes = 8;
  CHECK_EQ(passing.Advance(1), 8);
  CHECK_EQ(passing.Advance(1), 8);  // and it is added to once
  CHECK_TRUE(*passing.CargoOf(1).sum == (Vector{3, 3, 2, 2}));
  CHECK_FALSE(passing.whole(1));
  inflow->bytes = 16;
  CHECK_EQ(passing.Advance(1), 16);
  CHECK_TRUE(passing.whole(1));
  CHECK_EQ(passing.Advance(2), 0);
  passing.End(1);
  CHECK_FALSE(passing.Knows(1));
}

TEST(of_a_plan_that_was_given_up_nothing_stays) {
  PassingOn passing(0, {});
  const std::shared_ptr<Inflow> old = Coming(2), other = Coming(3), next = Coming(4);
  passing.Comes(Goal::kServer, {3}, old);
  passing.Comes(Goal::kReplica, {3}, other);
  passing.Comes(Goal::kServer, {9}, next);
  passing.Told(1, Of({6, 7}), Own(), nullptr);
  CHECK_EQ(old.use_count(), 2);
  passing.Drop(Goal::kServer, 7);
  CHECK_EQ(old.use_count(), 1);
  CHECK_EQ(other.use_count(), 2);
  passing.Told(2, Of({9, 10}), Own(), nullptr);
  next->bytes = 16;
  CHECK_EQ(passing.Advance(2), 16);
  for (size_t i = 0; i < 2 * kUntoldMost; ++i) {
    passing.Comes(Goal::kServer, {static_cast<int64_t>(100 + i)}, old);
  }
  CHECK_EQ(old.use_count(), 1 + static_cast<int64_t>(kUntoldMost));
}

TEST(two_sums_where_one_goes_on_are_not_taken) {
  PassingOn passing(0.5, {});
  const std::shared_ptr<Inflow> two = Coming(2);
  two->vectors = 2;
  two->step = std::make_shared<Vector>(4, 1.0F);
  two->bytes = 32;
  passing.Told(1, Of({3, 5}), Own(), nullptr);
  passing.Comes(Goal::kServer, {3}, two);
  CHECK_EQ(passing.Advance(1), 0);
}

TEST(what_is_broken_is_said) {
  PassingOn passing(0, {});
  const std::shared_ptr<Inflow> inflow = Coming(2);
  passing.Told(7, Of({3, 5}), Own(), nullptr);
  passing.Told(8, Of({4, 6}), Own(), nullptr);
  passing.Comes(Goal::kServer, {3}, inflow);
  CHECK_TRUE(passing.Broken().empty());
  inflow->aborted = true;
  CHECK_TRUE(passing.Broken() == std::vector<int64_t>{7});
  CHECK_TRUE(passing.numbers() == (std::vector<int64_t>{7, 8}));
  const std::shared_ptr<Inflow> untold = Coming(2);
  passing.Comes(Goal::kServer, {30}, untold);
  untold->aborted = true;
  passing.DropBroken();
  CHECK_EQ(untold.use_count(), 1);
}
