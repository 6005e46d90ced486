// Workers and servers, all policies, over simulated links: every sum is right, everything ends, and
// servers keep nothing but the last sums.
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "packets/packet_job.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

constexpr PolicyKind kPolicies[] = {PolicyKind::kPriority,      PolicyKind::kFifo,
                                    PolicyKind::kWfbp,          PolicyKind::kP3,
                                    PolicyKind::kByteScheduler, PolicyKind::kProphet};
constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kUint8,
                            DType::kInt32,   DType::kInt8,    DType::kInt64,   DType::kBfloat16};

// Equal ones mostly; of unequal ones, some may be nothing.
ServerShares SomeShares(Random* random, int servers) {
  ServerShares shares(servers);
  if (!random->OneIn(3)) return shares;
  std::string text = std::to_string(random->Between(1, 5));
  for (int s = 1; s < servers; ++s) text += "," + std::to_string(random->Below(6));
  REQUIRE_OK(ServerShares::FromText(text, servers, &shares));
  return shares;
}

// Of what workers send; null: the plain one.
const Codec* SomeCodec(DType dtype, Random* random) {
  const char* const names[] = {"bf16", "fp16", "int8"};
  if (dtype != DType::kFloat32 || random->OneIn(4)) return nullptr;
  return FindCompression(names[random->Below(std::size(names))]);
}

NetworkOptions RandomOptions(PolicyKind kind, Random* random) {
  NetworkOptions o;
  o.workers = static_cast<int>(random->Between(1, 4));
  o.shares = SomeShares(random, static_cast<int>(random->Between(1, 4)));
  o.lanes = random->OneIn(3) ? static_cast<int>(random->Between(2, 3)) : 1;
  o.checksum = random->OneIn(3);
  o.policy.kind = kind;
  o.policy.packet_bytes = random->OneIn(3) ? static_cast<uint64_t>(random->Between(64, 70000))
                                           : uint64_t{1} << random->Between(10, 16);
  o.policy.adapt_packets = random->OneIn(2);
  o.policy.unit_bytes = random->OneIn(3) ? 0 : static_cast<uint64_t>(random->Between(1, 100000));
  o.policy.window_bytes = random->OneIn(2) ? 0 : static_cast<uint64_t>(random->Between(1, 300000));
  o.policy.levels_max = random->OneIn(3) ? static_cast<size_t>(random->Between(1, 4)) : 4096;
  if (!random->OneIn(3)) {
    o.policy.credit.fixed_bytes =
        static_cast<uint64_t>(random->Between(1, 1 << random->Between(1, 20)));
  }
  return o;
}

// Some on hosts of their own, some several on one, with servers beside them or elsewhere.
Hosts SomeHosts(const NetworkOptions& o, Random* random) {
  if (AnswersUnits(o.policy.kind) || Acknowledges(o.policy.kind) || random->OneIn(3)) return {};
  const uint64_t hosts = random->Below(3) + 1;
  std::vector<int> workers, servers;
  for (int w = 0; w < o.workers; ++w) workers.push_back(static_cast<int>(random->Below(hosts)));
  const uint64_t first = random->OneIn(2) ? 0 : hosts;
  for (int s = 0; s < o.shares.servers(); ++s) {
    servers.push_back(static_cast<int>(first + random->Below(hosts)));
  }
  return {std::move(workers), std::move(servers)};
}

std::string Led(const NetworkOptions& o) {
  std::string text;
  for (int w = 0; w < o.workers; ++w) {
    if (!o.hosts.Leads(w)) continue;
    text +=
        ", worker " + std::to_string(w) + " leads " + std::to_string(o.hosts.Workers(w).size() - 1);
  }
  return text;
}

std::string Described(const NetworkOptions& o) {
  return std::string(Name(o.policy.kind)) + ", " + std::to_string(o.workers) + " workers, " +
         std::to_string(o.shares.servers()) + " servers, " + std::to_string(o.lanes) +
         " lanes, packets of " + std::to_string(o.policy.packet_bytes) + ", units of " +
         std::to_string(o.policy.unit_bytes) + ", window " + std::to_string(o.policy.window_bytes) +
         ", credit " + std::to_string(o.policy.credit.fixed_bytes) +
         (o.policy.adapt_packets ? ", adapting" : "") + (o.checksum ? ", with checksums" : "") +
         (o.deterministic ? ", deterministic" : "") + Led(o);
}

uint64_t HandedOut(Network* network) {
  uint64_t bytes = 0;
  for (int s = 0; s < network->options().shares.servers(); ++s) {
    bytes += network->aggregator(s).pool().bytes_handed_out();
  }
  return bytes;
}

// Submits round after round, each when the one before is done.
class Rounds {
 public:
  Rounds(Network* network, Job* job, Random* random, int rounds)
      : network_(network), job_(job), random_(random), rounds_(rounds) {}
  void Start(int worker, size_t tensor, int32_t priority, int64_t spread_us) {
    ++left_;
    const auto submit = [=] { Submit(worker, tensor, priority, 1, spread_us); };
    network_->After(random_->Between(0, spread_us), submit);
  }
  bool over() const { return left_ == 0; }

 private:
  void Submit(int worker, size_t tensor, int32_t priority, int round, int64_t spread_us) {
    job_->Submit(worker, tensor, priority, [=](const Status& status) {
      CHECK_OK(status);
      if (!status.ok() || round == rounds_) {
        --left_;
      } else if (random_->OneIn(2)) {
        Submit(worker, tensor, priority, round + 1, spread_us);
      } else {
        network_->After(random_->Between(0, spread_us),
                        [=] { Submit(worker, tensor, priority, round + 1, spread_us); });
      }
    });
  }
  Network* const network_;
  Job* const job_;
  Random* const random_;
  const int rounds_;
  int left_ = 0;
};

// All sums are in: what do workers and servers still hold?
void CheckNothingLeft(Network* network, Job* job) {
  network->Settle();
  CHECK_EQ(job->under_way(), 0U);
  job->CheckHeld();
  for (int w = 0; w < network->options().workers; ++w) {
    CHECK_EQ(network->streams(w).under_way(), 0U);
    for (int s = 0; s < network->options().shares.servers(); ++s) {
      LinkFigures figures;
      network->streams(w).Describe(s, &figures);
      CHECK_TRUE(figures.depths.empty());
      CHECK_EQ(figures.under_way_bytes, 0U);
      CHECK_TRUE(network->aggregator(s).Depths(w).empty());
    }
  }
  CHECK_EQ(HandedOut(network), job->BytesKept());
  for (int w = 0; w < network->options().workers; ++w) {
    const Aggregator* host_sums = network->host_sums(w);
    if (host_sums != nullptr) CHECK_EQ(host_sums->pool().bytes_handed_out(), 0U);
  }
}

bool RunCase(const NetworkOptions& options, Random* random) {
  const int before = failed_checks;
  Network network(options, random);
  Job job(&network, random, options.deterministic);
  for (int l = 0; l < options.lanes; ++l) {
    for (int s = 0; s < options.shares.servers(); ++s) {
      for (int w = 0; w < options.workers; ++w) {
        if (random->OneIn(2)) network.aggregator(s).SetPacketBytes(w, random->Below(80000));
        const auto rate = static_cast<double>(random->Below(100000000));
        network.aggregator(s).OnPath(LinkOf(w, l, options.lanes), random->Between(0, 9999),
                                     random->OneIn(2) ? rate : 0);
        network.streams(w).OnPath(LinkOf(s, l, options.lanes), random->Between(0, 9999),
                                  random->OneIn(2) ? rate : 0);
      }
    }
  }
  Rounds rounds(&network, &job, random, static_cast<int>(random->Between(1, 4)));
  const auto tensors = static_cast<size_t>(random->Between(1, 10));
  const int64_t spread_us = random->OneIn(2) ? 100 : random->Between(0, 100000);
  const bool same_priorities = random->OneIn(3);
  for (size_t t = 0; t < tensors; ++t) {
    const DType dtype = kTypes[random->Below(std::size(kTypes))];
    const uint64_t packets = random->OneIn(3) ? 20 : 3;
    const uint64_t bytes =
        random->OneIn(10)
            ? 0
            : random->Below(std::min(packets * options.policy.packet_bytes, uint64_t{200000}));
    job.Add((*random)(), dtype, bytes / ElementBytes(dtype), SomeCodec(dtype, random));
    auto priority = static_cast<int32_t>(random->Between(-20, 0));
    for (int w = 0; w < options.workers; ++w) {
      if (!same_priorities) priority = static_cast<int32_t>((*random)());
      rounds.Start(w, t, priority, spread_us);
    }
  }
  CHECK_TRUE(network.Run([&] { return rounds.over() || !network.LinkStatus().ok(); }));
  CHECK_OK(network.LinkStatus());
  if (rounds.over()) CheckNothingLeft(&network, &job);
  if (failed_checks == before) return true;
  std::fprintf(stderr, "  in: %s, %zu tensors, %s priorities; seed %llu\n",
               Described(options).c_str(), tensors, same_priorities ? "the same" : "other",
               static_cast<unsigned long long>(run_seed));
  return false;
}

void RunCases(PolicyKind kind) {
  Random random;
  int bad = 0;
  const int trials = Trials(100);
  for (int i = 0; i < trials && bad < 3; ++i) {
    NetworkOptions options = RandomOptions(kind, &random);
    options.deterministic = random.OneIn(4);
    options.hosts = SomeHosts(options, &random);
    bad += RunCase(options, &random) ? 0 : 1;
  }
}

}  // namespace

TEST(mercury_sums_whatever_the_order) { RunCases(PolicyKind::kPriority); }
TEST(fifo_sums_whatever_the_order) { RunCases(PolicyKind::kFifo); }
TEST(wfbp_sums_whatever_the_order) { RunCases(PolicyKind::kWfbp); }
TEST(p3_sums_whatever_the_order) { RunCases(PolicyKind::kP3); }
TEST(bytescheduler_sums_whatever_the_order) { RunCases(PolicyKind::kByteScheduler); }
TEST(prophet_sums_whatever_the_order) { RunCases(PolicyKind::kProphet); }

// One worker gives the second tensor only when it has the sum of the first; another gives them the
// other way round. Whatever the priorities and the credit, both get both.
TEST(workers_that_wait_for_each_other_s_order) {
  Random random;
  for (int trial = 0; trial < 100; ++trial) {
    NetworkOptions options = RandomOptions(kPolicies[trial % std::size(kPolicies)], &random);
    options.workers = std::max(options.workers, 2);
    options.hosts = SomeHosts(options, &random);
    Network network(options, &random);
    Job job(&network, &random);
    const uint64_t most = std::min<uint64_t>(6 * options.policy.packet_bytes, 100000);
    const size_t x = job.Add(1, DType::kInt32, random.Below(most) / 4);
    const size_t y = job.Add(2, DType::kInt32, random.Below(most) / 4);
    int done = 0;
    const auto priority = [&] { return static_cast<int32_t>(random.Between(-2, 2)); };
    const auto count = [&](const Status& status) {
      CHECK_OK(status);
      ++done;
    };
    job.Submit(0, x, priority(), [&](const Status& status) {
      count(status);
      network.After(random.Between(0, 50000), [&] { job.Submit(0, y, priority(), count); });
    });
    for (int w = 1; w < options.workers; ++w) {
      job.Submit(w, y, priority(), count);
      network.After(random.Between(0, 50000), [&, w] { job.Submit(w, x, priority(), count); });
    }
    const bool good = network.Run([&] { return done == 2 * options.workers; });
    if (!CHECK_TRUE(good && job.wrong() == 0 && network.LinkStatus().ok())) {
      std::fprintf(stderr, "  in: %s\n", Described(options).c_str());
    }
  }
}

// In this mode two runs agree in every bit, though the packets travel otherwise; the sum is that in
// the order of ranks, which is what Job compares with.
TEST(deterministic_sums_are_those_in_the_order_of_ranks) {
  Random random;
  for (int trial = 0; trial < 20; ++trial) {
    NetworkOptions options = RandomOptions(kPolicies[trial % std::size(kPolicies)], &random);
    options.workers = static_cast<int>(random.Between(3, 5));
    options.deterministic = true;
    options.hosts = SomeHosts(options, &random);
    Network network(options, &random);
    Job job(&network, &random, true);
    Rounds rounds(&network, &job, &random, 2);
    for (uint64_t key = 0; key < 6; ++key) {
      const DType floats[] = {DType::kFloat32, DType::kFloat16, DType::kBfloat16,
                              DType::kFloat32, DType::kFloat32, DType::kFloat32};
      const size_t t =
          job.Add(key, floats[key], random.Below(10000), SomeCodec(floats[key], &random));
      for (int w = 0; w < options.workers; ++w) rounds.Start(w, t, 0, 20000);
    }
    CHECK_TRUE(network.Run([&] { return rounds.over(); }));
    CHECK_EQ(job.wrong(), 0U);
  }
}

// A small urgent tensor is back before a large one that was there first.
TEST(an_urgent_tensor_overtakes) {
  Random random;
  for (const PolicyKind kind :
       {PolicyKind::kPriority, PolicyKind::kP3, PolicyKind::kByteScheduler}) {
    NetworkOptions options;
    options.policy.kind = kind;
    options.policy.packet_bytes = 16 << 10;
    options.policy.unit_bytes = kind == PolicyKind::kByteScheduler ? 100000 : 0;
    Network network(options, &random);
    Job job(&network, &random);
    const size_t bulk = job.Add(1, DType::kFloat32, 500000), urgent = job.Add(2, DType::kInt8, 9);
    std::string order[2];  // of each worker: one may have slower links than the other
    for (int w = 0; w < 2; ++w) {
      job.Submit(w, bulk, -1, [&, w](const Status&) { order[w] += "b"; });
      network.After(
          1000, [&, w] { job.Submit(w, urgent, 0, [&, w](const Status&) { order[w] += "u"; }); });
    }
    CHECK_TRUE(network.Run([&] { return job.over(); }));
    for (const std::string& of_worker : order) CHECK_EQ(of_worker, "ub");
  }
}
