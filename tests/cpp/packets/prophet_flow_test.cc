// Workers that train with prophet over simulated links, each with a profile and an estimate of its
// own, right or wrong: every sum is right, and whatever orders they choose, nobody waits forever.
#include <cstdio>
#include <string>
#include <vector>

#include "packets/packet_job.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

struct Gradient {
  size_t tensor;
  uint64_t bytes;
  int32_t priority;
  int64_t produced_us;
};

// One worker, iteration after iteration: the next begins when all sums are in.
class Worker {
 public:
  Worker(Network* network, Job* job, Random* random, int rank, std::vector<Gradient> gradients)
      : network_(network),
        job_(job),
        random_(random),
        rank_(rank),
        left_(0),
        gradients_(std::move(gradients)) {}

  void Train(int iterations) {
    iterations_ = iterations;
    if (iterations == 0) return;
    left_ = gradients_.size();
    const int64_t jitter = random_->OneIn(3) ? 20000 : 500;
    for (const Gradient& g : gradients_) {
      network_->After(g.produced_us + random_->Between(0, jitter), [this, g] {
        job_->Submit(rank_, g.tensor, g.priority, [this](const Status& status) {
          CHECK_OK(status);
          if (--left_ != 0 || !status.ok()) return;
          network_->After(random_->Between(0, 20000), [this] { Train(iterations_ - 1); });
        });
      });
    }
  }
  bool over() const { return iterations_ == 0; }

 private:
  Network* const network_;
  Job* const job_;
  Random* const random_;
  const int rank_;
  size_t left_;
  const std::vector<Gradient> gradients_;
  int iterations_ = 0;
};

std::string Profile(const std::vector<Gradient>& gradients, Random* random) {
  std::string text;
  const bool wrong_times = random->OneIn(2), other_sizes = random->OneIn(6);
  for (const Gradient& g : gradients) {
    if (random->OneIn(15)) continue;
    const int64_t at = wrong_times ? random->Between(0, 100000) : g.produced_us;
    text += std::to_string(g.tensor) + " " + std::to_string(g.bytes + (other_sizes ? 4 : 0)) + " " +
            std::to_string(g.priority) + " " + std::to_string(at) + "\n";
  }
  return text;
}

// Runs a job of random workers; how many blocks they sent.
uint64_t Trains(Random* random) {
  NetworkOptions options;
  options.workers = static_cast<int>(random->Between(1, 4));
  options.shares = ServerShares(static_cast<int>(random->Between(1, 3)));
  options.lanes = random->OneIn(4) ? 2 : 1;
  options.policy.kind = PolicyKind::kProphet;
  options.policy.packet_bytes = uint64_t{1} << random->Between(10, 15);
  options.policy.adapt_packets = random->OneIn(2);
  options.policy.profile_steps = 4;
  if (random->OneIn(3)) {
    options.policy.credit.fixed_bytes = uint64_t{1} << random->Between(4, 18);
  }
  options.ticks = true;
  const auto count = static_cast<size_t>(random->Between(1, 12));
  const bool same_pattern = random->OneIn(2), same_priorities = random->OneIn(2);
  std::vector<std::vector<Gradient>> gradients(static_cast<size_t>(options.workers));
  for (size_t t = 0; t < count; ++t) {
    const uint64_t bytes = 4 * random->Below(20000);
    for (size_t w = 0; w < gradients.size(); ++w) {
      Gradient g{t, bytes, -static_cast<int32_t>(t), 20000 * static_cast<int64_t>((count - t) / 3)};
      if (w != 0 && !same_pattern) g.produced_us = random->Between(0, 100000);
      if (!same_priorities) g.priority = static_cast<int32_t>(random->Between(-5, 5));
      gradients[w].push_back(g);
    }
  }
  for (const auto& mine : gradients) {
    options.profiles.push_back(random->OneIn(4) ? "" : Profile(mine, random));
  }
  Network network(options, random);
  Job job(&network, random);
  for (const Gradient& g : gradients[0]) job.Add(g.tensor, DType::kInt32, g.bytes / 4);
  std::vector<Worker> workers;
  for (int w = 0; w < options.workers; ++w) {
    workers.emplace_back(&network, &job, random, w, gradients[static_cast<size_t>(w)]);
  }
  const int iterations = static_cast<int>(random->Between(3, 14));
  for (Worker& worker : workers) worker.Train(iterations);
  const auto over = [&] {
    return std::all_of(workers.begin(), workers.end(), [](const Worker& w) { return w.over(); });
  };
  CHECK_TRUE(network.Run(over));
  CHECK_EQ(job.wrong(), 0U);
  CHECK_OK(network.LinkStatus());
  uint64_t blocks = 0;
  for (int w = 0; w < options.workers; ++w) {
    for (int s = 0; s < options.shares.servers(); ++s) {
      LinkFigures figures;
      network.streams(w).Describe(s, &figures);
      blocks += figures.blocks.blocks;
    }
  }
  return blocks;
}

}  // namespace

TEST(prophets_with_different_views_do_not_block_each_other) {
  Random random;
  uint64_t blocks = 0;
  const int before = failed_checks;
  const int trials = Trials(200);
  for (int trial = 0; trial < trials && failed_checks == before; ++trial) blocks += Trains(&random);
  // Or nothing was tested.
  CHECK_TRUE(blocks > 5 * static_cast<uint64_t>(trials));
  std::printf("%llu blocks\n", static_cast<unsigned long long>(blocks));
}
