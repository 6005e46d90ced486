// Batches for the planner's tests: drawn from a test's random numbers, or put together by hand.
#pragma once

#include <string>
#include <vector>

#include "fabric/batch.h"
#include "harness.h"

namespace mercury::testing {

using namespace mercury::fabric;  // NOLINT: for tests

// A host whose two directions have one rate each, forever.
inline HostLink Steady(double in_bit_per_s, double out_bit_per_s) {
  return {RateProfile({{0, in_bit_per_s}}), RateProfile({{0, out_bit_per_s}})};
}

inline RateProfile RandomProfile(Random* random) {
  constexpr double kRates[] = {0, 1e9, 2.5e9, 3.3e9, 5e9, 1e10};
  std::vector<RateStep> steps;
  double at_s = 0;
  for (uint64_t left = 1 + random->Below(3); left > 0; --left) {
    const uint64_t rate = left == 1 ? 1 + random->Below(5) : random->Below(6);
    steps.push_back({at_s, kRates[rate]});
    at_s += 0.05 + 0.4 * random->Unit();
  }
  return RateProfile(steps);
}

struct Shape {
  size_t updates_most = 5;
  size_t aggregators_most = 2;
  bool synchronous = false;
  bool equal_bytes = false;
  bool replica = false;
};

// Workers, two to a host, aggregators beside some of them, a server on a host of its own.
inline Batch RandomBatch(Random* random, const Shape& shape) {
  Batch batch;
  const size_t count = 1 + random->Below(shape.updates_most);
  const size_t hosts = 2 + (count + 1) / 2;
  std::vector<HostLink> links(hosts);
  for (HostLink& link : links) link = {RandomProfile(random), RandomProfile(random)};
  batch.network = Network(links);
  batch.servers = {{"server", 0}};
  for (uint64_t a = random->Below(shape.aggregators_most + 1); a > 0; --a) {
    batch.aggregators.push_back({"a" + std::to_string(a), 2 + random->Below(hosts - 2)});
  }
  batch.synchronous = shape.synchronous;
  batch.momentum = random->OneIn(2) ? 0 : 0.9;
  batch.version = 100;
  batch.delay_bound = static_cast<int64_t>(2 * count);
  const auto draw = [&](const std::string& id, size_t host) {
    Update update;
    update.id = id;
    update.worker = {"w" + id, host};
    update.available_s = random->OneIn(2) ? 0 : 0.2 * random->Unit();
    update.bytes = {shape.equal_bytes ? 50'000'000 : random->Between(10'000'000, 100'000'000)};
    update.version = 100 - static_cast<int64_t>(random->Below(2 * count + 1));
    update.norm = random->Unit();
    return update;
  };
  for (size_t i = 0; i < count; ++i) {
    batch.updates.push_back(draw("g" + std::to_string(i), 2 + i / 2));
  }
  if (shape.replica) {
    ReplicaBatch& replica = batch.replica.emplace();
    replica.node = {"replica", 1};
    if (random->OneIn(2)) replica.aggregators = {{"r1", 2}};
    replica.divergence_bound = 4 * random->Unit();
    replica.momentum = batch.momentum;
    replica.history_norm = random->Unit();
    for (uint64_t p = random->Below(3); p > 0; --p) {
      replica.pending.push_back(draw("p" + std::to_string(p), 2 + random->Below(hosts - 2)));
    }
  }
  return batch;
}

}  // namespace mercury::testing
