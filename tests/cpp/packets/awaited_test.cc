#include "packets/awaited.h"

#include <utility>
#include <vector>

#include "harness.h"
#include "packets/lone_server.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

constexpr int64_t kRoundUs = 500'000;
constexpr int kSlots = 20;

// Rounds of so many slots; `late_us` says by how much a worker's copies come after the others'.
class Job {
 public:
  explicit Job(int workers)
      : workers_(workers), awaited_(workers, [this](int worker, int permille) {
          said.emplace_back(worker, permille);
        }) {}

  void Run(int64_t seconds, const std::vector<int64_t>& late_us, Random* random) {
    for (const int64_t until = now_us_ + seconds * 1'000'000; now_us_ < until;) {
      for (int64_t& before : sums_) {
        int last = 0;
        int64_t first = 0, second = 0;
        for (int w = 0; w < workers_; ++w) {
          const int64_t in = now_us_ + late_us[static_cast<size_t>(w)] + random->Between(0, 2000);
          if (in >= first) {
            second = first;
            first = in;
            last = w;
          } else {
            second = std::max(second, in);
          }
        }
        awaited_.Came(last, second, before, first);
        before = first;
      }
      now_us_ += kRoundUs;
    }
  }

  std::vector<std::pair<int, int>> said;
  int permille(int worker) const { return awaited_.permille(worker); }

 private:
  const int workers_;
  Awaited awaited_;
  std::vector<int64_t> sums_ = std::vector<int64_t>(kSlots, 0);
  int64_t now_us_ = 1'000'000;
};

}  // namespace

TEST(a_worker_that_is_late_for_long_is_slow) {
  Random random;
  Job job(4);
  job.Run(200, {0, 0, 0, 0}, &random);
  CHECK_TRUE(job.said.empty());
  CHECK_TRUE(job.permille(2) < 20);
  job.Run(120, {0, 0, 200'000, 0}, &random);
  REQUIRE_EQ(job.said.size(), 1U);
  CHECK_EQ(job.said[0].first, 2);
  CHECK_TRUE(job.permille(2) > 380 && job.permille(2) <= 400);
  CHECK_TRUE(job.permille(0) < 20);
  job.Run(300, {0, 0, 200'000, 0}, &random);
  CHECK_EQ(job.said.size(), 1U);  // once
  job.Run(120, {0, 0, 0, 0}, &random);
  REQUIRE_EQ(job.said.size(), 2U);
  CHECK_TRUE(job.said[1] == std::make_pair(2, 0));
}

TEST(a_short_pause_makes_nobody_slow) {
  Random random;
  Job job(2);
  for (int i = 0; i < 5; ++i) {
    job.Run(60, {0, 0}, &random);
    job.Run(10, {0, 400'000}, &random);
  }
  CHECK_TRUE(job.said.empty());
}

TEST(nobody_is_waited_for_alone_where_two_are_late) {
  Random random;
  Job job(4);
  job.Run(300, {0, 300'000, 300'000, 0}, &random);
  CHECK_TRUE(job.said.empty());
}

TEST(few_sums_say_nothing) {
  std::vector<int> said;
  Awaited awaited(2, [&](int worker, int) { said.push_back(worker); });
  int64_t now_us = 1;
  for (int i = 0; i < 90; ++i, now_us += 10'000'000) {
    awaited.Came(1, now_us + 1, now_us, now_us + 9'000'000);
  }
  CHECK_TRUE(said.empty());
  CHECK_EQ(awaited.permille(1), 0);
}

// Of two workers, and a server on the host of one, one copy comes late.
std::vector<int> SlowOf(int late, bool beside) {
  std::vector<int> slow;
  AggregatorOptions options = Options(2);
  options.hosts = Hosts({0, 1}, {beside ? 0 : 2});
  options.slow = [&](int worker, int) { slow.push_back(worker); };
  LoneServer server(options);
  for (int worker = 0; worker < 2; ++worker) CHECK_OK(server.Declare(worker, 0, 7, 64));
  const std::string copy(64, '\1');
  for (int round = 0; round < 300; ++round) {
    for (const int worker : {1 - late, late}) {
      server.now_us += worker == late ? 400'000 : 100'000;
      CHECK_OK(server.Data(worker, 0, 0, static_cast<uint8_t>(round + 1), copy));
      server.Drain(worker);
    }
    for (int worker = 0; worker < 2; ++worker) server.Drain(worker);
  }
  CHECK_EQ(server.aggregator.AwaitedPermille(late) > 700, !slow.empty());
  return slow;
}

TEST(what_has_a_longer_way_is_not_slow) {
  CHECK_TRUE(SlowOf(0, true) == std::vector<int>{0});
  CHECK_TRUE(SlowOf(1, true).empty());
  CHECK_TRUE(SlowOf(0, false) == std::vector<int>{0});
  CHECK_TRUE(SlowOf(1, false) == std::vector<int>{1});
}

TEST(one_worker_waits_for_nobody) {
  Awaited awaited(1, [](int, int) { CHECK_TRUE(false); });
  for (int64_t now_us = 1; now_us < 200'000'000; now_us += 100'000) {
    awaited.Came(0, 0, now_us, now_us + 90'000);
  }
  CHECK_EQ(awaited.permille(0), 0);
}
