// What goes wrong with one tensor, one server or one worker ends in a Status on every worker, and
// nothing waits forever; what has nothing to do with it goes on.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "packets/packet_job.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

int allocations_left = -1;  // -1: any number
void* Allocate(size_t alignment, size_t bytes) {
  if (allocations_left == 0) return nullptr;
  if (allocations_left > 0) --allocations_left;
  return std::aligned_alloc(alignment, bytes);
}

constexpr PolicyKind kPolicies[] = {PolicyKind::kPriority,      PolicyKind::kFifo,
                                    PolicyKind::kWfbp,          PolicyKind::kP3,
                                    PolicyKind::kByteScheduler, PolicyKind::kProphet};

NetworkOptions Small(PolicyKind kind = PolicyKind::kPriority) {
  NetworkOptions o;
  o.policy.kind = kind;
  o.policy.packet_bytes = 2048;
  o.policy.unit_bytes = kind == PolicyKind::kP3 || kind == PolicyKind::kByteScheduler ? 5000 : 0;
  return o;
}

// Every worker submits each tensor so many times; what became of it, by worker and tensor.
struct Result {
  Status status;
  int rounds = 0;
};
class Everything {
 public:
  Everything(Network* network, Job* job, size_t tensors, int rounds)
      : job_(job), rounds_(rounds), results(static_cast<size_t>(network->options().workers)) {
    for (auto& of_worker : results) of_worker.resize(tensors);
  }
  void Start(int worker, size_t tensor) {
    ++left_;
    Submit(worker, tensor);
  }
  void StartAll() {
    for (size_t w = 0; w < results.size(); ++w) {
      for (size_t t = 0; t < results[w].size(); ++t) Start(static_cast<int>(w), t);
    }
  }
  bool over() const { return left_ == 0; }

 private:
  void Submit(int worker, size_t tensor) {
    job_->Submit(worker, tensor, static_cast<int32_t>(tensor), [=](const Status& status) {
      Result& result = results[static_cast<size_t>(worker)][tensor];
      result.status = status;
      if (status.ok() && ++result.rounds < rounds_) {
        Submit(worker, tensor);
      } else {
        --left_;
      }
    });
  }
  Job* const job_;
  const int rounds_;
  int left_ = 0;

 public:
  std::vector<std::vector<Result>> results;
};

}  // namespace

TEST(the_nth_allocation_fails_whichever_it_is) {
  Random random;
  for (const PolicyKind kind : kPolicies) {
    for (const bool deterministic : {false, true}) {
      int failed = 1;
      for (int n = 0; failed != 0; ++n) {
        NetworkOptions options = Small(kind);
        options.deterministic = deterministic;
        options.allocate = Allocate;
        allocations_left = n;
        Network network(options, &random);
        Job job(&network, &random, deterministic);
        for (uint64_t key = 0; key < 3; ++key) job.Add(key, DType::kFloat32, 1500 * key);
        Everything all(&network, &job, 3, 2);
        all.StartAll();
        CHECK_TRUE(network.Run([&] { return all.over(); }));
        CHECK_OK(network.LinkStatus());
        REQUIRE_TRUE(n < 1000);
        failed = 0;
        for (size_t t = 0; t < 3; ++t) {
          for (const auto& of_worker : all.results) {
            CHECK_TRUE(of_worker[t].status.ok() || of_worker[t].status.code() == Code::kExhausted);
            CHECK_EQ(of_worker[t].status.ok(), all.results[0][t].status.ok());
            failed += of_worker[t].status.ok() ? 0 : 1;
          }
        }
        job.CheckHeld();
      }
    }
  }
  allocations_left = -1;
}

TEST(a_cap_ends_what_does_not_fit_and_nothing_hangs) {
  Random random;
  int failed = 0, fine = 0;
  for (int trial = 0; trial < 40; ++trial) {
    NetworkOptions options = Small(kPolicies[trial % std::size(kPolicies)]);
    options.workers = static_cast<int>(random.Between(1, 3));
    options.lanes = static_cast<int>(random.Between(1, 2));
    options.deterministic = random.OneIn(3);
    options.bytes_max = 1000 + random.Below(100000);
    Network network(options, &random);
    Job job(&network, &random, options.deterministic);
    for (uint64_t key = 0; key < 6; ++key) job.Add(key, DType::kInt32, random.Below(8000));
    Everything all(&network, &job, 6, 3);
    all.StartAll();
    CHECK_TRUE(network.Run([&] { return all.over(); }));
    CHECK_OK(network.LinkStatus());
    for (const auto& of_worker : all.results) {
      for (size_t t = 0; t < 6; ++t) {
        const Status& status = of_worker[t].status;
        CHECK_TRUE(status.ok() || status.code() == Code::kExhausted);
        CHECK_EQ(status.ok(), all.results[0][t].status.ok());
        ++(status.ok() ? fine : failed);
      }
    }
    for (int s = 0; s < options.shares.servers(); ++s) {
      CHECK_TRUE(network.aggregator(s).pool().bytes() <= options.bytes_max);
    }
  }
  CHECK_TRUE(failed > 10 && fine > 10);
}

TEST(workers_that_disagree_on_a_shape_hear_of_it_and_the_rest_goes_on) {
  Random random;
  for (const int lanes : {1, 2}) {
    NetworkOptions options = Small();
    options.workers = 3;
    options.lanes = lanes;
    Network network(options, &random);
    Job job(&network, &random), other(&network, &random);
    const size_t wrong = job.Add(1, DType::kFloat32, 10000);
    const size_t right = job.Add(2, DType::kFloat32, 10000);
    other.Add(1, DType::kFloat32, 9999);
    std::vector<Status> outcomes;
    const auto keep = [&](const Status& status) { outcomes.push_back(status); };
    job.Submit(0, wrong, 0, keep);
    other.Submit(1, 0, 0, keep);
    network.Run([&] { return outcomes.size() == 2; });
    job.Submit(2, wrong, 0, keep);
    Everything all(&network, &job, 2, 3);
    for (int w = 0; w < 3; ++w) all.Start(w, right);
    CHECK_TRUE(network.Run([&] { return all.over() && outcomes.size() == 3; }));
    for (const Status& status : outcomes) {
      CHECK_STATUS(Code::kInvalidArgument, status);
      CHECK_TRUE(status.text().find("'tensor1'") != std::string::npos);
      CHECK_TRUE(status.text().find("9999 elements") != std::string::npos);
    }
    for (int w = 0; w < 3; ++w) CHECK_EQ(all.results[static_cast<size_t>(w)][right].rounds, 3);
    network.Settle();
    for (int w = 0; w < 3; ++w) CHECK_EQ(network.streams(w).under_way(), 0U);
  }
}

TEST(who_waits_for_a_worker_that_has_finished_is_told) {
  Random random;
  for (const PolicyKind kind : kPolicies) {
    NetworkOptions options = Small(kind);
    options.workers = 3;
    options.lanes = 2;
    Network network(options, &random);
    Job job(&network, &random);
    for (uint64_t key = 0; key < 4; ++key) job.Add(key, DType::kInt64, 1000 * key);
    Everything once(&network, &job, 4, 1);
    once.StartAll();
    REQUIRE_TRUE(network.Run([&] { return once.over(); }));
    Everything more(&network, &job, 4, 1);
    for (int w = 0; w < 2; ++w) {
      for (size_t t = 0; t < 4; ++t) more.Start(w, t);
    }
    const bool late = random.OneIn(2);
    if (late) network.Run([] { return false; }, 100000);
    network.Depart(2);
    CHECK_TRUE(network.Run([&] { return more.over(); }));
    for (int w = 0; w < 2; ++w) {
      for (const Result& result : more.results[static_cast<size_t>(w)]) {
        CHECK_STATUS(Code::kPeerLost, result.status);
        CHECK_TRUE(result.status.text().find("worker 2 has finished") != std::string::npos);
      }
    }
  }
}

TEST(a_lost_link_fails_everything_that_is_under_way_once) {
  Random random;
  for (int trial = 0; trial < 30; ++trial) {
    NetworkOptions options = Small(kPolicies[trial % std::size(kPolicies)]);
    options.lanes = static_cast<int>(random.Between(1, 2));
    Network network(options, &random);
    Job job(&network, &random);
    for (uint64_t key = 0; key < 5; ++key) job.Add(key, DType::kFloat64, random.Below(5000));
    Everything all(&network, &job, 5, 100);
    all.StartAll();
    network.Run([] { return false; }, random.Between(0, 20000));
    for (int w = 0; w < 2; ++w) {
      for (const bool up : {true, false}) network.pipe(up, w, 1).Cut();
    }
    network.Run([] { return false; }, random.Between(0, 20000));
    for (int w = 0; w < 2; ++w) network.streams(w).Fail(Status::PeerLost("server 1 is lost"));
    CHECK_TRUE(all.over() && job.over());
    for (const auto& of_worker : all.results) {
      for (const Result& result : of_worker) CHECK_STATUS(Code::kPeerLost, result.status);
    }
    network.Run([] { return false; }, 100000);  // what is still on its way does no harm
    CHECK_OK(network.LinkStatus());
  }
}

TEST(a_stall_names_the_tensor_and_the_worker_that_is_missing) {
  Random random;
  NetworkOptions options = Small();
  options.workers = 3;
  options.ticks = true;
  options.stall.warn_us = 5000000;
  Network network(options, &random);
  Job job(&network, &random);
  const size_t t = job.Add(1, DType::kFloat32, 5000);
  job.Submit(0, t, 0);
  job.Submit(2, t, 0);
  network.Run([] { return false; }, 8000000);
  REQUIRE_EQ(network.reports().size(), 2U);
  for (const std::string& line : network.reports()) {
    CHECK_TRUE(line.find("tensor 'tensor1' has waited for ") == 0);
    CHECK_TRUE(line.find("worker 1 has not sent it all") != std::string::npos);
  }
  job.Submit(1, t, 0);
  CHECK_TRUE(network.Run([&] { return job.over(); }));
}

// Nor has it said where it stands with slots that have another server: nobody begins before.
TEST(a_stall_names_who_does_not_move) {
  Random random;
  NetworkOptions options = Small();
  options.workers = 3;
  options.ticks = options.elastic = options.keeps_sums = true;
  options.stall.warn_us = 5000000;
  Network network(options, &random);
  Job job(&network, &random);
  const size_t t = job.Add(1, DType::kFloat32, 5000);
  for (int w = 0; w < 3; ++w) job.Submit(w, t, 0);
  REQUIRE_TRUE(network.Run([&] { return job.over(); }));
  for (int w = 0; w < 3; ++w) network.Cut(w, 1);
  Aggregator* const other = network.Adopt(1, {}, {}, nullptr);
  const auto moves = [&](int w) {
    network.streams(w).Moved(1, network.now_us());
    network.Attach(w, 1, other);
  };
  moves(0);
  moves(2);
  for (int w = 0; w < 3; ++w) job.Submit(w, t, 0);  // the other server has all it waits for
  network.Run([] { return false; }, 8000000);
  REQUIRE_EQ(network.reports().size(), 2U);
  for (const std::string& line : network.reports()) {
    CHECK_TRUE(line.find("worker 1 has not sent it all") != std::string::npos);
  }
  moves(1);
  CHECK_TRUE(network.Run([&] { return job.over(); }));
}

TEST(a_stall_ends_the_job_when_nothing_moves_for_long) {
  Random random;
  NetworkOptions options = Small();
  options.workers = 3;
  options.ticks = true;
  options.stall = {5000000, 20000000};
  std::vector<std::pair<int, std::string>> stalls;
  options.stalled = [&](int worker, const std::string& line) { stalls.emplace_back(worker, line); };
  Network network(options, &random);
  Job job(&network, &random);
  const size_t t = job.Add(1, DType::kFloat32, 5000);
  job.Submit(0, t, 0);
  job.Submit(2, t, 0);
  network.Run([] { return false; }, 18000000);
  CHECK_TRUE(stalls.empty());
  network.Run([] { return false; }, 6000000);
  REQUIRE_EQ(stalls.size(), 2U);
  for (const auto& [worker, line] : stalls) {
    CHECK_EQ(worker, 1);
    CHECK_TRUE(line.find("tensor 'tensor1' has waited for 2") == 0);
    CHECK_TRUE(line.find("worker 1 has not sent it all") != std::string::npos);
  }
}

TEST(the_last_sum_comes_once_more) {
  Random random;
  for (const PolicyKind kind : kPolicies) {
    NetworkOptions options = Small(kind);
    options.lanes = 2;
    Network network(options, &random);
    Job job(&network, &random);
    const size_t t = job.Add(1, DType::kFloat16, 20000);
    Everything all(&network, &job, 1, 2);
    all.StartAll();
    REQUIRE_TRUE(network.Run([&] { return all.over(); }));
    Status status = Status::Internal("not done");
    job.Fetch(1, t, 0, [&](const Status& s) { status = s; });
    CHECK_TRUE(network.Run([&] { return job.over(); }));
    CHECK_OK(status);
    CHECK_EQ(job.wrong(), 0U);
    CHECK_OK(network.LinkStatus());
  }
}
