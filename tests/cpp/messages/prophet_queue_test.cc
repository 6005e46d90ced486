// The scheduled queue: by hand, and several workers with different orders against one server.
#include "messages/prophet_queue.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test
using mercury::testing::Random;

namespace {

constexpr uint64_t kBytes = 10000;

// Gradients 1 (the most urgent) to 4 of 10 kB; 3 and 4 come at once, 2 after 20 ms, 1 after 40.
// The link carries 1 byte a microsecond.
struct OneQueue {
  OneQueue() : queue(50) {
    CHECK_OK(queue.profile().Load(
        "1 10000 9 40000\n2 10000 8 20000\n3 10000 7 0\n4 10000 6 0\n5 99000 5 0\n"));
  }
  // Two iterations, one gradient after another.
  void Measure(int64_t us_each = kBytes) {
    for (uint64_t n = 0; n < 10; ++n) {
      const uint64_t key = 5 - n % 5, bytes = key == 5 ? 99000 : kBytes;
      queue.Ready(1000 + n, key, bytes, 10 - static_cast<int32_t>(key), now_us);
      CHECK_EQ(queue.Take(now_us).size(), 1U);
      now_us += us_each * static_cast<int64_t>(bytes / 1000) / 10;
      queue.Done(1000 + n, now_us);
    }
  }
  void Ready(uint64_t id) {
    queue.Ready(id, id, id == 5 ? 99000 : kBytes, 10 - static_cast<int32_t>(id), now_us);
  }
  std::string Take() {
    std::string ids;
    for (const uint64_t id : queue.Take(now_us)) ids += std::to_string(id);
    return ids;
  }
  ProphetQueue queue;
  int64_t now_us = 1000000;
};

}  // namespace

TEST(without_a_bandwidth_or_a_profile_everything_goes_at_once) {
  OneQueue one;
  one.Ready(4);
  one.Ready(3);
  CHECK_EQ(one.Take(), "34");
  one.Ready(2);
  CHECK_EQ(one.Take(), "2");
  CHECK_EQ(one.queue.WakeAt(), kNever);
  ProphetQueue fresh(50);
  for (uint64_t id = 1; id < 30; ++id) {
    fresh.Ready(id, id, kBytes, 0, static_cast<int64_t>(id));
    CHECK_EQ(fresh.Take(static_cast<int64_t>(id)).size(), 1U);
    fresh.Done(id, static_cast<int64_t>(id) + 1);
  }
}

TEST(a_block_fits_before_the_next_and_is_confirmed_or_over) {
  OneQueue one;
  one.Measure();
  const int64_t start = one.now_us;
  one.Ready(4);
  one.Ready(3);
  CHECK_EQ(one.Take(), "34");  // 20 ms of 20
  CHECK_EQ(one.Take(), "");
  one.queue.Confirmed(3, one.now_us += 9000);
  one.now_us += 2000;
  one.Ready(2);              // early
  CHECK_EQ(one.Take(), "");  // 4 is not confirmed
  CHECK_EQ(one.queue.WakeAt(), start + 20000);
  one.queue.Confirmed(4, one.now_us += 1000);
  CHECK_EQ(one.Take(), "2");
  one.now_us = start + 40000;
  one.Ready(1);
  CHECK_EQ(one.Take(), "1");  // though 2 was never confirmed
  CHECK_EQ(one.queue.blocks().blocks, 2U);
  CHECK_EQ(one.queue.blocks().bytes, 3 * kBytes);
}

TEST(the_most_urgent_at_once_and_then_one_by_one) {
  OneQueue one;
  one.Measure();
  one.Ready(4);
  one.Ready(3);
  CHECK_EQ(one.Take(), "34");
  one.now_us += 1000;
  one.Ready(1);
  CHECK_EQ(one.Take(), "1");
  one.Ready(2);
  one.Ready(5);
  CHECK_EQ(one.Take(), "");
  one.queue.Confirmed(1, one.now_us += 10);
  CHECK_EQ(one.Take(), "2");
  CHECK_EQ(one.Take(), "");
  one.now_us = one.queue.WakeAt();
  CHECK_EQ(one.Take(), "5");
}

TEST(what_fits_nowhere_does_not_wait_and_what_fits_later_does) {
  OneQueue one;
  one.Measure();
  const int64_t start = one.now_us;
  one.Ready(5);
  one.now_us += 12000;
  CHECK_EQ(one.Take(), "5");  // 99 ms
  one.now_us = start;
  OneQueue two;
  two.Measure();
  two.Ready(5);
  two.Ready(3);
  CHECK_EQ(two.Take(), "3");
  two.queue.Confirmed(3, two.now_us += 10500);
  two.Ready(4);
  CHECK_EQ(two.Take(), "");  // 9.5 ms left, but 20 later
  CHECK_EQ(two.queue.WakeAt(), start + 20001);
  two.now_us = start + 20000;
  two.Ready(2);
  CHECK_EQ(two.Take(), "24");
}

TEST(what_is_late_is_not_waited_for_for_long) {
  OneQueue one;
  one.Measure();
  const int64_t start = one.now_us;
  one.Ready(5);
  one.Ready(4);  // 3 should be there, too
  one.now_us += 16000;
  CHECK_EQ(one.Take(), "4");
  OneQueue two;
  two.Measure();
  two.Ready(4);
  CHECK_EQ(two.Take(), "");
  two.now_us = two.queue.WakeAt();
  CHECK_TRUE(two.now_us <= start + 5001);
  CHECK_EQ(two.Take(), "4");
  CHECK_TRUE(two.queue.blocks().held_us >= 5000);
}

TEST(a_bandwidth_of_nothing_holds_nothing_up) {
  OneQueue one;
  one.Measure(100000000000);
  CHECK_EQ(one.queue.blocks().bytes_per_second, 0.0);
  one.Ready(4);
  one.Ready(3);
  CHECK_EQ(one.Take(), "34");
}

// --- several workers ----------------------------------------------------------------------------

namespace {

// Links that carry one gradient at a time, and a server that confirms one when it has all copies.
struct Cluster {
  struct Worker {
    std::unique_ptr<ProphetQueue> queue;
    std::map<uint64_t, int64_t> produced_us;  // by key
    std::vector<uint64_t> link;               // ids, in the order in which they were handed over
    double bytes_per_us = 1;
    int64_t link_free_us = 0;
    std::map<uint64_t, int> handed_over;  // how often
    size_t left = 0;                      // sums of this iteration
    int iterations = 0;
  };
  Random* random;
  std::vector<uint64_t> bytes;  // by key
  std::vector<Worker> workers;
  std::multimap<int64_t, std::function<void()>> events;
  std::map<std::pair<int, uint64_t>, size_t> copies;  // by iteration and key
  int64_t now_us = 1000000;
  int iterations = 0;

  static uint64_t Id(int iteration, uint64_t key) {
    return static_cast<uint64_t>(iteration) * 1000 + key;
  }
  void At(int64_t when, std::function<void()> call) { events.emplace(when, std::move(call)); }

  void Begin(size_t w) {
    Worker& worker = workers[w];
    if (worker.iterations == iterations) return;
    const int iteration = worker.iterations++;
    worker.left = bytes.size();
    for (uint64_t key = 0; key < bytes.size(); ++key) {
      At(now_us + worker.produced_us[key] + random->Between(0, 2000), [=] {
        workers[w].queue->Ready(Id(iteration, key), key, bytes[key], -static_cast<int32_t>(key),
                                now_us);
      });
    }
  }
  void HandOver(size_t w) {
    Worker& worker = workers[w];
    for (;;) {
      const std::vector<uint64_t> ids = worker.queue->Take(now_us);
      if (ids.empty()) return;
      for (const uint64_t id : ids) {
        CHECK_EQ(++worker.handed_over[id], 1);
        const double us = static_cast<double>(bytes[id % 1000]) / worker.bytes_per_us;
        worker.link_free_us = std::max(worker.link_free_us, now_us) + static_cast<int64_t>(us);
        At(worker.link_free_us, [=] { Arrived(id); });
      }
    }
  }
  void Arrived(uint64_t id) {
    if (++copies[{0, id}] != workers.size()) return;
    for (size_t w = 0; w < workers.size(); ++w) {
      workers[w].queue->Confirmed(id, now_us);
      At(now_us + 500, [=] {
        workers[w].queue->Done(id, now_us);
        if (--workers[w].left == 0) Begin(w);
      });
    }
  }
  bool Run() {
    for (size_t w = 0; w < workers.size(); ++w) Begin(w);
    const int64_t end = now_us + 36000000000;
    const auto over = [this] {
      return std::all_of(workers.begin(), workers.end(), [this](const Worker& w) {
        return w.iterations == iterations && w.left == 0;
      });
    };
    while (!over() && now_us < end) {
      int64_t next = events.empty() ? kNever : events.begin()->first;
      for (const Worker& w : workers) next = std::min(next, w.queue->WakeAt());
      if (next == kNever) return false;
      now_us = std::max(now_us, next);
      while (!events.empty() && events.begin()->first <= now_us) {
        const auto call = std::move(events.begin()->second);
        events.erase(events.begin());
        call();
      }
      for (size_t w = 0; w < workers.size(); ++w) HandOver(w);
    }
    return over();
  }
};

}  // namespace

TEST(workers_with_different_orders_do_not_wait_for_ever) {
  Random random;
  uint64_t blocks = 0;
  for (int trial = 0; trial < 150; ++trial) {
    Cluster cluster;
    cluster.random = &random;
    cluster.iterations = 12;
    cluster.bytes.resize(static_cast<size_t>(random.Between(1, 15)));
    for (uint64_t& b : cluster.bytes) b = random.Below(random.OneIn(3) ? 100000 : 3000);
    const bool same_pattern = random.OneIn(2);
    const int workers = static_cast<int>(random.Between(1, 5));
    for (int w = 0; w < workers; ++w) {
      cluster.workers.emplace_back();
      Cluster::Worker& worker = cluster.workers.back();
      worker.queue = std::make_unique<ProphetQueue>(4);
      worker.bytes_per_us = static_cast<double>(random.Between(1, 50));
      std::string profile;
      for (uint64_t key = 0; key < cluster.bytes.size(); ++key) {
        const auto step = static_cast<int64_t>((cluster.bytes.size() - key) / 3);
        worker.produced_us[key] = same_pattern ? 20000 * step : random.Between(0, 60000);
        const int64_t told = random.OneIn(3) ? random.Between(0, 60000) : worker.produced_us[key];
        profile += std::to_string(key) + " " + std::to_string(cluster.bytes[key]) + " " +
                   std::to_string(-static_cast<int64_t>(key)) + " " + std::to_string(told) + "\n";
      }
      if (random.OneIn(2)) CHECK_OK(worker.queue->profile().Load(profile));
    }
    REQUIRE_TRUE(cluster.Run());
    for (const Cluster::Worker& w : cluster.workers) {
      CHECK_EQ(w.handed_over.size(), 12 * cluster.bytes.size());
      blocks += w.queue->blocks().blocks;
    }
  }
  CHECK_TRUE(blocks > 1000);  // or nothing was tested
}
