// Whole jobs, simulated (simulated_job.h). What must hold, holds for each of them:
//
//   each update is applied once at most, and its worker hears what became of it, once;
//   no update is applied too late; places are applied in rising order, but inside a round;
//   nothing of what an update was computed from is lost where it is applied;
//   the model is what applying those updates one by one, or round by round, gives;
//   where a batch ends without a loss, server and replica are within the bound;
//   a worker of a synchronous job gets the version that has as many updates of everybody as it has
//   pushed, and all get the same; where staleness is bounded, each update is applied;
//   several servers give the same version, and end with the same model;
//   an all-reduce gives all workers the sum of all parts, the same one to the last bit;
//   a job ends early only without a server, or without a worker that others need.
#include "fabric/live/simulated_servers.h"
#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

namespace {

constexpr int kHistories = 30'000;

void Play(int all, int64_t staleness_most, bool reduces) {
  Random random;
  const int histories = Trials(all);
  int relayed = 0;
  for (int history = 0; history < histories; ++history) {
    const Staleness staleness{random.Between(std::min(staleness_most, int64_t{1}), staleness_most)};
    relayed += SimulatedJob(&random, staleness, reduces).Run();
  }
  CHECK_TRUE(relayed > 0);
}

}  // namespace

TEST(each_update_is_applied_once_in_order_or_its_worker_hears_why_not) {
  Play(kHistories, Staleness::kAny, false);
}

TEST(all_workers_of_a_synchronous_job_get_the_same_versions) { Play(kHistories / 3, 0, false); }

TEST(nobody_is_further_ahead_than_staleness_allows) { Play(kHistories / 3, 3, false); }

TEST(an_all_reduce_gives_everybody_the_sum_in_any_job) {
  for (const int64_t staleness : {Staleness::kAny, int64_t{0}, int64_t{2}}) {
    Play(kHistories / 6, staleness, true);
  }
}
