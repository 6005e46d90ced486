#include "control/roster.h"

#include <set>

#include "harness.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

int W(int rank) { return NodeId(Role::kWorker, rank); }
int S(int rank) { return NodeId(Role::kServer, rank); }

}  // namespace

TEST(nobody_may_be_lost_unless_it_is_said) {
  Roster roster(4);
  CHECK_TRUE(!roster.elastic() && !roster.CanLose({W(1)}));
  CHECK_EQ(roster.Shortage(), "");
  roster.GoOnWith(2);
  CHECK_TRUE(roster.elastic() && roster.CanLose({W(1)}) && roster.CanLose({W(1), W(3)}));
  CHECK_TRUE(!roster.CanLose({W(1), W(2), W(3)}));
  CHECK_TRUE(!roster.CanLose({S(0)}) && !roster.CanLose({W(1), S(0)}));
}

TEST(each_change_is_a_generation) {
  Roster roster(3);
  roster.GoOnWith(1);
  CHECK_EQ(roster.generation(), 1U);
  CHECK_TRUE(roster.Lose(W(0)) && !roster.Lose(W(0)) && !roster.Leave(W(0)));
  CHECK_EQ(roster.generation(), 2U);
  CHECK_TRUE(roster.Leave(W(2)) && !roster.Leave(W(2)) && !roster.Lose(W(2)));
  CHECK_EQ(roster.generation(), 3U);
  CHECK_TRUE(roster.IsLost(W(0)) && roster.HasLeft(W(2)) && !roster.IsOut(W(1)));
  CHECK_EQ(roster.workers(), 1);
}

TEST(who_has_finished_is_not_missed) {
  Roster roster(3);
  roster.GoOnWith(2);
  roster.Leave(W(0));
  CHECK_TRUE(roster.CanLose({W(1)}));
  roster.Lose(W(1));
  CHECK_EQ(roster.Shortage(), "");
  CHECK_TRUE(!roster.CanLose({W(2)}));
  roster.Lose(W(2));
  CHECK_EQ(roster.Shortage(), "; 1 worker is left, fewer than MERCURY_MIN_WORKERS=2");
}

TEST(a_newcomer_has_a_free_place_and_counts_once_it_is_in) {
  Roster roster(2);
  CHECK_EQ(roster.PlaceFor(Role::kWorker, -1), -1);  // nobody comes to a job that needs all
  roster.GoOnWith(1, 0, 4);
  CHECK_EQ(roster.PlaceFor(Role::kWorker, -1), 2);
  CHECK_EQ(roster.PlaceFor(Role::kWorker, 3), 3);
  CHECK_EQ(roster.PlaceFor(Role::kWorker, 0), -1);
  CHECK_EQ(roster.PlaceFor(Role::kWorker, 4), -1);
  roster.Expect(W(2));
  CHECK_TRUE(roster.IsNew(W(2)) && roster.IsOut(W(2)));
  CHECK_EQ(roster.PlaceFor(Role::kWorker, -1), 3);
  CHECK_EQ(roster.workers(), 2);
  CHECK_EQ(roster.generation(), 1U);
  roster.LetIn(W(2));
  CHECK_TRUE(!roster.IsNew(W(2)) && !roster.IsOut(W(2)));
  CHECK_EQ(roster.workers(), 3);
  CHECK_EQ(roster.generation(), 2U);
  roster.Lose(W(0));
  CHECK_EQ(roster.first(), W(1));
  CHECK_EQ(roster.PlaceFor(Role::kWorker, -1), 0);  // of one that is lost
  roster.Expect(W(0));
  CHECK_TRUE(!roster.IsLost(W(0)));
  CHECK_TRUE(roster.Lose(W(0)) && !roster.Lose(W(0)) && roster.IsLost(W(0)));
  CHECK_EQ(roster.generation(), 3U);  // it had never been in
  roster.Leave(W(1));
  CHECK_EQ(roster.PlaceFor(Role::kWorker, 1), -1);  // of one that has finished
}

TEST(a_server_comes_in_the_place_of_a_lost_one) {
  const auto server = [](int rank) { return NodeId(Role::kServer, rank); };
  Roster roster(2);
  roster.GoOnWith(1, 3, 4);
  CHECK_EQ(roster.PlaceFor(Role::kServer, -1), -1);  // none is lost
  CHECK_EQ(roster.PlaceFor(Role::kServer, 1), -1);
  roster.Lose(server(1));
  CHECK_EQ(roster.PlaceFor(Role::kServer, -1), 1);
  CHECK_EQ(roster.PlaceFor(Role::kServer, 0), -1);
  CHECK_EQ(roster.StandIn(1), server(2));
  roster.Expect(server(1));
  // As yet, it is none of those with which the job could go on.
  CHECK_TRUE(roster.IsNew(server(1)) && roster.IsOut(server(1)));
  CHECK_TRUE(roster.CanLose({server(2)}) && !roster.CanLose({server(0), server(2)}));
  roster.Lose(server(2));
  CHECK_TRUE(!roster.CanLose({server(0)}));
  CHECK_EQ(roster.StandIn(1), server(0));
  const uint64_t generation = roster.generation();
  roster.LetIn(server(1));
  CHECK_EQ(roster.generation(), generation + 1);
  CHECK_TRUE(!roster.IsOut(server(1)) && roster.CanLose({server(0)}));
  CHECK_EQ(roster.workers(), 2);
  CHECK_EQ(roster.StandIn(2), server(0));
}

TEST(what_may_be_lost_together_may_be_lost_one_by_one) {
  Random random;
  for (int trial = 0; trial < 2000; ++trial) {
    const int workers = static_cast<int>(random.Between(1, 8));
    Roster roster(workers);
    roster.GoOnWith(static_cast<int>(random.Between(1, workers)));
    std::set<int> together;
    for (int w = 0; w < workers; ++w) {
      if (random.OneIn(4)) roster.Leave(W(w));
      if (random.OneIn(3)) together.insert(W(w));
    }
    const uint64_t generation = roster.generation();
    if (!roster.CanLose(together)) continue;
    uint64_t fresh = 0;
    for (const int w : together) {
      CHECK_TRUE(roster.CanLose({w}));
      fresh += roster.Lose(w) ? 1 : 0;
    }
    CHECK_EQ(roster.generation(), generation + fresh);
    CHECK_EQ(roster.Shortage(), "");
  }
}
