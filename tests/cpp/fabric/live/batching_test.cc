#include "fabric/live/batching.h"

#include "harness.h"

using namespace mercury::fabric;

namespace {

struct Fixture {
  explicit Fixture(int64_t staleness) : batching({staleness}, 2) {}
  void Push(int worker, int64_t number, bool reduce = false) {
    batching.Wait({worker, number}, batching.NextTurn(worker, reduce), reduce);
  }
  // The numbers of those that are taken now, by worker.
  std::vector<std::pair<int, int64_t>> Taken() {
    chosen = batching.Take();
    std::vector<std::pair<int, int64_t>> taken;
    for (const UpdateId& id : chosen.updates) taken.emplace_back(id.worker, id.number);
    return taken;
  }
  Batching batching;
  Chosen chosen;
};

using Taken = std::vector<std::pair<int, int64_t>>;

}  // namespace

TEST(all_that_wait_are_taken_at_once_unless_all_are_needed) {
  for (const int64_t staleness : {Staleness::kAny, int64_t{2}}) {
    Fixture job(staleness);
    CHECK_FALSE(job.batching.Ready());
    job.Push(1, 1);
    job.Push(1, 2);
    job.Push(0, 1);
    CHECK_EQ(job.batching.size(), 3);
    CHECK_TRUE(job.batching.Ready());
    CHECK_TRUE(job.Taken() == (Taken{{1, 1}, {1, 2}, {0, 1}}));
    CHECK_EQ(job.chosen.round, staleness > 0);
    CHECK_FALSE(job.batching.Ready());
    CHECK_TRUE(job.Taken().empty());
  }
}

TEST(a_batch_has_no_more_than_so_many_and_the_rest_waits_in_its_order) {
  for (const int64_t staleness : {Staleness::kAny, int64_t{2}}) {
    Fixture job(staleness);
    for (int64_t number = 1; number <= 5000; ++number) job.Push(0, number);
    int64_t last = 0;
    for (const size_t many : {1024, 1024, 1024, 1024, 904}) {
      CHECK_TRUE(job.batching.Ready());
      const Taken taken = job.Taken();
      REQUIRE_EQ(taken.size(), many);
      for (const auto& [worker, number] : taken) CHECK_EQ(number, ++last);
      CHECK_EQ(job.batching.size(), static_cast<size_t>(5000 - last));
    }
    CHECK_FALSE(job.batching.Ready());
  }
}

TEST(what_needs_everybody_is_never_split) {
  constexpr int kWorkers = 3000;
  for (const bool reduce : {false, true}) {
    Batching batching({0}, kWorkers);
    for (int worker = 0; worker < kWorkers; ++worker) batching.Wait({worker, 1}, 1, reduce);
    CHECK_EQ(batching.Take().updates.size(), kWorkers);
  }
}

TEST(a_synchronous_round_has_one_of_each_in_turn) {
  Fixture job(0);
  job.Push(0, 1);
  job.Push(0, 2);
  CHECK_FALSE(job.batching.Ready());
  job.Push(1, 1);
  CHECK_TRUE(job.batching.Ready());
  CHECK_TRUE(job.Taken() == (Taken{{0, 1}, {1, 1}}));
  CHECK_TRUE(job.chosen.round);
  CHECK_FALSE(job.batching.Ready());
  job.batching.Wait({0, 1}, 1, false);  // once more, with its turn
  job.batching.Wait({1, 1}, 1, false);
  job.Push(1, 2);
  CHECK_TRUE(job.Taken() == (Taken{{0, 1}, {1, 1}}));
  CHECK_TRUE(job.Taken() == (Taken{{0, 2}, {1, 2}}));
}

TEST(an_all_reduce_needs_all_in_any_job_and_has_turns_of_its_own) {
  Fixture job(Staleness::kAny);
  job.Push(0, 1);
  job.Push(0, 2, true);
  CHECK_TRUE(job.Taken() == (Taken{{0, 1}}));
  CHECK_FALSE(job.chosen.round);
  CHECK_FALSE(job.batching.Ready());
  job.Push(1, 1, true);
  CHECK_TRUE(job.Taken() == (Taken{{0, 2}, {1, 1}}));
  CHECK_TRUE(job.chosen.reduce);
}

TEST(who_is_gone_and_needed_is_missing) {
  Fixture job(0);
  job.Push(0, 1);
  job.Push(1, 1);
  job.Push(1, 2);
  CHECK_FALSE(job.batching.Missing().has_value());
  const std::vector<UpdateId> gone = job.batching.Forget(0);
  REQUIRE_EQ(gone.size(), 1);
  CHECK_EQ(gone[0].worker, 0);
  CHECK_EQ(job.batching.Missing().value_or(-1), 0);
  Fixture other(2);
  other.Push(0, 1);
  other.Push(1, 1);
  CHECK_EQ(other.batching.Forget(1).size(), 1);
  CHECK_FALSE(other.batching.Missing().has_value());
  CHECK_TRUE(other.Taken() == (Taken{{0, 1}}));
  other.Push(0, 2, true);
  CHECK_EQ(other.batching.Missing().value_or(-1), 1);
}
