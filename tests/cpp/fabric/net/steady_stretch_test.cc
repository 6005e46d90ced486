#include "fabric/net/steady_stretch.h"

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

TEST(a_transfer_without_a_pause_is_one_stretch_however_slow) {
  for (const int64_t packet_us : {int64_t{10}, int64_t{50'000}, int64_t{5'000'000}}) {
    SteadyStretches stretches;
    stretches.Begin(7);
    int64_t now_us = 7;
    for (int i = 0; i < 20; ++i) {
      stretches.Came(100, now_us += i % 2 == 0 ? packet_us / 2 : packet_us + packet_us / 2);
    }
    CHECK_EQ(stretches.longest().bytes, 2000);
    CHECK_EQ(stretches.longest().first_us, 7);
    CHECK_EQ(stretches.longest().last_us, 7 + 20 * packet_us);
  }
}

TEST(a_pause_is_in_no_stretch_and_the_longest_one_counts) {
  for (const int64_t before : {2, 30}) {
    SteadyStretches stretches;
    stretches.Begin(0);
    int64_t now_us = 0;
    for (int64_t i = 0; i < before; ++i) stretches.Came(100, now_us += 1000);
    stretches.Came(100, now_us += 2'000'000);
    const int64_t again_us = now_us;
    for (int i = 0; i < 10; ++i) stretches.Came(100, now_us += 1000);
    const SteadyStretch longest = stretches.longest();
    CHECK_EQ(longest.bytes, before > 10 ? 3000 : 1000);
    CHECK_EQ(longest.first_us, before > 10 ? 0 : again_us);
    CHECK_EQ(longest.last_us - longest.first_us, 10 * static_cast<int64_t>(longest.bytes));
  }
}

TEST(what_is_slow_for_a_moment_is_no_pause) {
  SteadyStretches stretches;
  stretches.Begin(0);
  stretches.Came(100, 1000);
  stretches.Came(100, 1000 + kPause_us);
  stretches.Came(100, 2000 + kPause_us);
  CHECK_EQ(stretches.longest().bytes, 300);
}
