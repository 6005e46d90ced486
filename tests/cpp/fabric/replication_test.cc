#include "fabric/replication.h"

#include <algorithm>
#include <cmath>

#include "fabric/planner.h"
#include "fabric/random_batch.h"

using namespace mercury::testing;

namespace {

// The example of the format, smaller: one worker's update goes to the server in 1 s; the replica is
// at its end of a link that is free from 3 s on.
Batch Small(double divergence_bound) {
  Batch batch;
  batch.network = Network({Steady(100, 100),
                           {RateProfile({{0, 0}, {3, 100}}), RateProfile({{0, 100}})},
                           Steady(100, 100),
                           Steady(100, 100)});
  batch.servers = {{"server", 0}};
  batch.delay_bound = 9;
  batch.updates = {{"g1", {"w1", 2}, 0, {10}, 0, 1}, {"g2", {"w2", 3}, 0, {10}, 0, 2}};
  ReplicaBatch& replica = batch.replica.emplace();
  replica.node = {"replica", 1};
  replica.divergence_bound = divergence_bound;
  replica.history_norm = 1;
  return batch;
}

// Four workers, whose updates of a megabyte may go to the server through the replica.
Batch Relaying(double divergence_bound, double replica_bit_per_s) {
  Batch batch = Small(divergence_bound);
  std::vector<HostLink> links(6, Steady(1e8, 1e8));
  links[1] = Steady(replica_bit_per_s, replica_bit_per_s);
  batch.network = Network(links);
  batch.by_packets = batch.replica->relays = true;
  batch.aggregators = {{"any", 2}};
  batch.updates.clear();
  for (size_t host = 2; host < 6; ++host) {
    const std::string number = std::to_string(host);
    batch.updates.push_back({"g" + number, {"w" + number, host}, 0, {1'000'000}, 0, 1});
  }
  return batch;
}

}  // namespace

TEST(the_bound_weighs_what_the_replica_has_not) {
  constexpr double kMomentum = 0.5;
  const std::vector<double> norms = {3, 5};
  // Two behind: (γ + γ²)h + (1 + γ)u1 + u2; one behind: γ²h + γu1 + u2.
  CHECK_EQ(DivergenceBound(kMomentum, 2, norms, 2, 0), 0.75 * 2 + 1.5 * 3 + 5);
  CHECK_EQ(DivergenceBound(kMomentum, 2, norms, 2, 1), 0.25 * 2 + 0.5 * 3 + 5);
  CHECK_EQ(DivergenceBound(kMomentum, 2, norms, 2, 2), 0);
  CHECK_EQ(DivergenceBound(0, 2, norms, 2, 1), 5);
  CHECK_EQ(DivergenceBound(0, 2, norms, 1, 1), 0);
}

TEST(the_bound_holds_for_models_that_are_updated) {
  Random random;
  for (int round = 0; round < 1000; ++round) {
    const double momentum = random.OneIn(3) ? 0 : 0.99 * random.Unit();
    constexpr size_t kCount = 6;
    constexpr size_t kSize = 3;
    double history[kSize];
    double update[kCount][kSize];
    const auto draw = [&random](double* vector) {
      double square = 0;
      for (size_t i = 0; i < kSize; ++i) {
        vector[i] = 2 * random.Unit() - 1;
        square += vector[i] * vector[i];
      }
      return std::sqrt(square);
    };
    const double history_norm = draw(history);
    std::vector<double> norms;
    for (double* vector : update) norms.push_back(draw(vector));
    const size_t server = random.Below(kCount + 1);
    const size_t replica = random.Below(server + 1);
    double square = 0;
    for (size_t i = 0; i < kSize; ++i) {
      const auto weight = [&](size_t applied) {
        double w = 0;
        double h = history[i];
        for (size_t k = 0; k < applied; ++k) {
          h = momentum * h + update[k][i];
          w += h;
        }
        return w;
      };
      square += std::pow(weight(server) - weight(replica), 2);
    }
    CHECK_TRUE(std::sqrt(square) <=
               DivergenceBound(momentum, history_norm, norms, server, replica) + 1e-9);
  }
}

TEST(what_the_replica_cannot_have_yet_is_punted) {
  const Plan plan = PlanBatch(Small(3), {});
  REQUIRE_TRUE(plan.replica.has_value());
  CHECK_EQ(plan.replica->frozen, 0);
  CHECK_TRUE(plan.replica->transfers.empty());
  CHECK_TRUE(plan.replica->divergence_at_commits == (std::vector<double>{1, 3}));
  CHECK_EQ(plan.transfers.back().not_before_s, -1);
}

TEST(the_last_transfer_is_held_until_the_replica_is_near_enough) {
  const Plan plan = PlanBatch(Small(2), {});
  REQUIRE_TRUE(plan.replica.has_value());
  CHECK_EQ(plan.replica->frozen, 1);
  CHECK_EQ(plan.replica->transfers.size(), 1);
  CHECK_EQ(plan.transfers.back().not_before_s, 3.8);
  CHECK_TRUE(std::abs(plan.commits.back().time_s - 4.6) < 1e-9);
  CHECK_TRUE(plan.replica->divergence_at_commits == (std::vector<double>{1, 2}));
}

TEST(with_no_bound_to_spare_the_replica_has_all_first) {
  const Plan plan = PlanBatch(Small(0), {});
  CHECK_EQ(plan.replica->frozen, 2);
  CHECK_EQ(plan.replica->divergence_at_commits.back(), 0);
}

TEST(what_goes_through_the_replica_is_there_when_the_server_has_it) {
  Batch batch = Relaying(0, 1e8);
  const Plan plan = PlanBatch(batch, {});
  REQUIRE_TRUE(plan.replica.has_value());
  CHECK_TRUE(plan.replica->transfers.empty());
  CHECK_EQ(plan.replica->frozen, 4);
  for (const double apart : plan.replica->divergence_at_commits) CHECK_EQ(apart, 0);
  const auto through = [](const Transfer& hop) { return hop.relaying == Relaying::kTo; };
  CHECK_TRUE(std::any_of(plan.transfers.begin(), plan.transfers.end(), through));

  // What it lacked before goes there beside it, and is waited for.
  batch.replica->pending = {batch.updates[0]};
  const Plan later = PlanBatch(batch, {});
  REQUIRE_EQ(later.replica->transfers.size(), 1);
  CHECK_EQ(later.replica->frozen, 5);
  CHECK_EQ(later.replica->divergence_at_commits.back(), 0);
  CHECK_TRUE(later.commits.back().time_s >= later.replica->transfers[0].end_s);
  CHECK_TRUE(later.commits.back().time_s > plan.commits.back().time_s);
}

TEST(a_slow_replica_is_not_gone_through_if_it_may_lack_the_batch) {
  const Plan plan = PlanBatch(Relaying(100, 1e6), {});
  for (const Transfer& hop : plan.transfers) CHECK_TRUE(hop.relaying == Relaying::kNot);
  CHECK_EQ(plan.replica->frozen, 0);
}

TEST(nothing_is_frozen_if_nothing_is_committed) {
  Batch batch = Small(0);
  batch.replica->pending = {{"p1", {"w1", 2}, 0, {10}, 0, 1}};
  batch.updates.clear();
  const Plan plan = PlanBatch(batch, {});
  REQUIRE_TRUE(plan.replica.has_value());
  CHECK_EQ(plan.replica->frozen, 0);
  CHECK_TRUE(plan.replica->divergence_at_commits.empty());
}
