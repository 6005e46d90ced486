#include "trace/trace_ring.h"

#include <thread>
#include <vector>

#include "harness.h"

using namespace mercury;
namespace {

TraceEvent Numbered(uint32_t node, int64_t number) {
  TraceEvent event;
  event.node = node;
  event.time_us = number;
  event.length = number * 3;
  return event;
}

TEST(events_come_out_as_they_went_in) {
  TraceRing ring(8);
  TraceEvent event;
  CHECK_FALSE(ring.Take(&event));
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 6; ++i) CHECK_TRUE(ring.Add(Numbered(1, round * 10 + i)));
    for (int i = 0; i < 6; ++i) {
      REQUIRE_TRUE(ring.Take(&event));
      CHECK_EQ(event.time_us, round * 10 + i);
    }
    CHECK_FALSE(ring.Take(&event));
  }
  CHECK_EQ(ring.lost(), 0);
}

TEST(a_full_ring_counts_what_it_loses) {
  TraceRing ring(5);
  CHECK_EQ(ring.capacity(), 8);
  for (int i = 0; i < 11; ++i) CHECK_EQ(ring.Add(Numbered(0, i)), i < 8);
  CHECK_EQ(ring.lost(), 3);
  TraceEvent event;
  REQUIRE_TRUE(ring.Take(&event));
  CHECK_EQ(event.time_us, 0);
  CHECK_TRUE(ring.Add(Numbered(0, 99)));
  CHECK_FALSE(ring.Add(Numbered(0, 100)));
  int64_t last = 0;
  while (ring.Take(&event)) last = event.time_us;
  CHECK_EQ(last, 99);
  CHECK_EQ(ring.lost(), 4);
}

TEST(the_consumer_is_woken_once_when_half_is_full) {
  int woken = 0;
  TraceRing ring(16, [&] { ++woken; });
  for (int i = 0; i < 8; ++i) ring.Add(Numbered(0, i));
  CHECK_EQ(woken, 0);
  for (int i = 0; i < 4; ++i) ring.Add(Numbered(0, i));
  CHECK_EQ(woken, 1);
  ring.Rearm();
  ring.Add(Numbered(0, 0));
  CHECK_EQ(woken, 2);
}

// Producers and the consumer at once: nothing is taken twice, or out of a producer's order, and
// what is missing was counted.
TEST(many_producers_and_one_consumer) {
  constexpr uint32_t kProducers = 4;
  constexpr int64_t kEach = 20000;
  TraceRing ring(256);
  std::atomic<uint32_t> finished{0};
  std::vector<std::thread> producers;
  std::vector<uint64_t> refused(kProducers, 0);
  for (uint32_t p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      for (int64_t i = 1; i <= kEach; ++i) refused[p] += ring.Add(Numbered(p, i)) ? 0 : 1;
      ++finished;
    });
  }
  std::vector<int64_t> last(kProducers, 0);
  uint64_t taken = 0;
  TraceEvent event;
  for (bool over = false; !over;) {
    over = finished == kProducers;  // before the last look
    while (ring.Take(&event)) {
      ++taken;
      REQUIRE_TRUE(event.node < kProducers);
      CHECK_TRUE(event.time_us > last[event.node]);
      CHECK_EQ(event.length, event.time_us * 3);
      last[event.node] = event.time_us;
    }
    if (!over) std::this_thread::yield();
  }
  for (auto& producer : producers) producer.join();
  uint64_t lost = 0;
  for (const uint64_t count : refused) lost += count;
  CHECK_EQ(ring.lost(), lost);
  CHECK_EQ(taken + lost, kProducers * kEach);
}

}  // namespace
