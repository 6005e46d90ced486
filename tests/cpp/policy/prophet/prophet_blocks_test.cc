// Algorithm 1: by hand, and what must hold for every job.
#include "policy/prophet/prophet_blocks.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::vector<PlannedGradient> RandomJob(mercury::testing::Random* random, bool in_order) {
  std::vector<PlannedGradient> job(static_cast<size_t>(random->Between(1, 40)));
  // Few different times, so that gradients appear in steps.
  const int64_t steps = random->Between(1, 8);
  for (PlannedGradient& g : job) {
    g.produced_us = static_cast<double>(random->Between(0, steps) * 1000);
    g.wire_us = random->OneIn(5) ? 0 : random->Unit() * (random->OneIn(3) ? 3000 : 300);
  }
  if (in_order) {
    std::sort(job.begin(), job.end(),
              [](const auto& a, const auto& b) { return a.produced_us > b.produced_us; });
  }
  return job;
}

}  // namespace

TEST(a_block_is_what_fits) {
  // Of 100: 30 + 40, but not 50 more.
  CHECK_TRUE(AssembleBlock({{30, 1, 100}, {40, 1, 100}, {50, 1, 100}, {1, 1, 100}}, 0) ==
             (std::vector<uint64_t>{1, 1}));
  // The startup is paid once.
  CHECK_TRUE(AssembleBlock({{30, 1, 100}, {40, 1, 100}}, 30) == (std::vector<uint64_t>{1, 1}));
  CHECK_TRUE(AssembleBlock({{30, 1, 100}, {40, 1, 100}}, 31) == (std::vector<uint64_t>{1}));
  CHECK_TRUE(AssembleBlock({{30, 1, 100}}, 71).empty());
  // What is less urgent may have less room.
  CHECK_TRUE(AssembleBlock({{30, 1, kInfinite}, {40, 1, 60}, {1, 1, 60}}, 0) ==
             (std::vector<uint64_t>{1}));
  CHECK_TRUE(AssembleBlock({{0, 1, 0}, {0, 1, 0}, {1, 1, 0}}, 0) == (std::vector<uint64_t>{1, 1}));
  CHECK_TRUE(AssembleBlock({}, 0).empty());
  CHECK_TRUE(AssembleBlock({{1, 1, -1}}, 0).empty());
}

TEST(a_gradient_in_units_is_sent_as_far_as_it_fits) {
  CHECK_TRUE(AssembleBlock({{10, 3, 100}, {10, 20, 100}, {1, 1, 100}}, 5) ==
             (std::vector<uint64_t>{3, 6}));
  CHECK_TRUE(AssembleBlock({{10, 10, 100}, {1, 1, 100}}, 0) == (std::vector<uint64_t>{10}));
  CHECK_TRUE(AssembleBlock({{10, 1000, kInfinite}, {5, 1, kInfinite}}, 0) ==
             (std::vector<uint64_t>{1000, 1}));
  CHECK_TRUE(AssembleBlock({{0, 7, 1}, {1, 9, 1}}, 0) == (std::vector<uint64_t>{7, 1}));
  CHECK_TRUE(AssembleBlock({{10, 0, 100}}, 0).empty());
}

// Four gradients in two steps and the first one: what fits into 10 goes, the rest after backward.
TEST(an_iteration_by_hand) {
  const std::vector<PlannedGradient> job = {{20, 3}, {10, 4}, {10, 8}, {0, 6}, {0, 5}};
  CHECK_TRUE(PlanIteration(job, 0) == (std::vector<double>{20, 10, 23, 0, 31}));
  // With a startup time of 1: 7 for the first step's block; after backward gradient 0 pays it.
  CHECK_TRUE(PlanIteration(job, 1) == (std::vector<double>{20, 10, 24, 0, 32}));
  // Nothing fits before gradient 0 with a startup time of 6, but the first.
  CHECK_TRUE(PlanIteration(job, 6) == (std::vector<double>{20, 10, 29, 37, 43}));
  CHECK_TRUE(PlanIteration({}, 0).empty());
  CHECK_TRUE(PlanIteration({{7, 1}}, 5) == (std::vector<double>{7}));
  // Gradient 0 comes first: nothing else is waited for but time.
  CHECK_TRUE(PlanIteration({{0, 1}, {5, 1}, {0, 2}}, 0) == (std::vector<double>{0, 5, 1}));
  // Who follows at once pays no startup, who follows later does.
  CHECK_TRUE(PlanIteration({{0, 1}, {9, 1}, {0, 2}, {9, 1}}, 1) ==
             (std::vector<double>{0, 9, 2, 11}));
}

// t(i) >= c(i); no two transfers at a time; once gradient 0 is there, by urgency; until then a
// transfer, and the whole block that it is in, ends before anything more urgent is due.
TEST(the_constraints_hold_for_every_job) {
  mercury::testing::Random random;
  for (int trial = 0; trial < 2000; ++trial) {
    const std::vector<PlannedGradient> job = RandomJob(&random, random.OneIn(2));
    const double startup = random.OneIn(3) ? 0 : random.Unit() * 400;
    const std::vector<double> start = PlanIteration(job, startup);
    REQUIRE_EQ(start.size(), job.size());
    std::vector<size_t> order;
    for (size_t i = 0; i < job.size(); ++i) {
      REQUIRE_TRUE(start[i] < kInfinite);
      CHECK_TRUE(start[i] >= job[i].produced_us);
      order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return start[a] < start[b]; });
    const double backward_ends = job[0].produced_us;
    double free_at = 0;
    bool first = true;  // after backward
    for (size_t n = 0; n < order.size(); ++n) {
      const size_t i = order[n];
      constexpr double kRounding = 1e-6;
      CHECK_TRUE(start[i] >= free_at - kRounding);
      // Nothing but what takes no time may start as the backward pass ends and be of a block.
      const bool alone = start[i] >= backward_ends && job[i].wire_us > 0;
      const bool pays = alone && (first || start[i] > free_at + kRounding);
      if (job[i].wire_us > 0) free_at = start[i] + job[i].wire_us + (pays ? startup : 0);
      first = first && !alone;
      for (size_t k = 0; k < i; ++k) {
        if (!alone && job[k].produced_us > start[i]) {
          CHECK_TRUE(start[i] + job[i].wire_us <= job[k].produced_us + kRounding);
        }
        if (alone && start[k] > start[i]) CHECK_TRUE(job[k].produced_us > start[i]);
      }
    }
  }
}

TEST(a_block_never_takes_more_than_its_room) {
  mercury::testing::Random random;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<BlockCandidate> candidates(random.Below(12));
    double room = random.Unit() * 1000;
    for (BlockCandidate& c : candidates) {
      c.unit_us = random.Unit() * (random.OneIn(2) ? 10 : 300);
      c.units = random.OneIn(2) ? 1 : random.Below(50);
      c.room_us = room;
      if (random.OneIn(3)) room -= random.Unit() * 300;
    }
    const double startup = random.OneIn(2) ? 0 : random.Unit() * 100;
    const std::vector<uint64_t> block = AssembleBlock(candidates, startup);
    REQUIRE_TRUE(block.size() <= candidates.size());
    double used = block.empty() ? 0 : startup;
    for (size_t i = 0; i < block.size(); ++i) {
      CHECK_TRUE(block[i] >= 1 && block[i] <= candidates[i].units);
      CHECK_TRUE(block[i] == candidates[i].units || i + 1 == block.size());
      used += static_cast<double>(block[i]) * candidates[i].unit_us;
      CHECK_TRUE(used <= candidates[i].room_us + 1e-6);
    }
    // And takes what it can: one unit more would not have fitted.
    if (block.size() < candidates.size() && candidates[block.size()].units != 0) {
      const size_t next = !block.empty() && block.back() < candidates[block.size() - 1].units
                              ? block.size() - 1
                              : block.size();
      const double more = candidates[next].unit_us + (block.empty() ? startup : 0);
      CHECK_TRUE(used + more > candidates[next].room_us - 1e-6);
    }
  }
}
