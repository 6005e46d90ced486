#include "policy/prophet/bandwidth_monitor.h"

#include <cmath>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

// A link of so many bytes a microsecond and startup time, busy all the time; now and then a stretch
// takes long because another worker does.
struct BusyLink {
  double bytes_per_us;
  double startup_us;
  int64_t now_us = 1000000;

  void Carry(BandwidthMonitor* monitor, mercury::testing::Random* random, int64_t us) {
    const int64_t end = now_us + us;
    while (now_us < end) {
      const uint64_t bytes = random->OneIn(2) ? random->Below(4000) + 1 : 200000;
      double took = startup_us + static_cast<double>(bytes) / bytes_per_us;
      if (random->OneIn(8)) took *= 1 + 5 * random->Unit();
      now_us += static_cast<int64_t>(took);
      monitor->Add(bytes, static_cast<int64_t>(took), now_us);
    }
  }
};

bool Near(double a, double b, double share) { return std::abs(a - b) <= share * b; }

}  // namespace

TEST(nothing_is_known_before_anything_was_carried) {
  BandwidthMonitor monitor;
  CHECK_FALSE(monitor.known());
  for (int i = 1; i <= 7; ++i) monitor.Add(1000, 10, i * 10);
  CHECK_FALSE(monitor.known());
  monitor.Add(1000, 10, 80);
  CHECK_TRUE(monitor.known());
  CHECK_EQ(monitor.bytes_per_second(), 1e8);
  CHECK_EQ(monitor.WireUs(200), 2.0);
}

TEST(bandwidth_and_startup_are_told_apart) {
  mercury::testing::Random random;
  for (const double rate : {5.0, 10.0, 100.0, 1000.0}) {
    BandwidthMonitor monitor;
    BusyLink link{rate, 300};
    link.Carry(&monitor, &random, 20000000);
    CHECK_TRUE(
        Near(monitor.bytes_per_second(), rate * 1e6 * (200000 / (200000 + 300 * rate)), 0.1));
    // A small transfer's time is predicted, too.
    CHECK_TRUE(monitor.startup_us() > 100 && monitor.startup_us() < 500);
  }
}

TEST(what_is_known_late_and_at_once_counts_on_average) {
  // 100 bytes a microsecond; every tenth of a second it is known of some or all of it.
  mercury::testing::Random random;
  BandwidthMonitor monitor(BandwidthMonitor::Basis::kAll);
  int64_t now = 0;
  uint64_t sent = 0;
  for (int i = 0; i < 200; ++i) {
    now += 100000;
    sent += 10000000;
    const uint64_t known = random.OneIn(2) ? sent : random.Below(sent + 1);
    monitor.Add(known, 100000, now);
    sent -= known;
  }
  CHECK_TRUE(Near(monitor.bytes_per_second(), 1e8, 0.2));
}

TEST(it_falls_within_seconds_and_rises_slowly) {
  mercury::testing::Random random;
  BandwidthMonitor monitor;
  BusyLink link{100, 0};
  link.Carry(&monitor, &random, 10000000);
  CHECK_TRUE(Near(monitor.bytes_per_second(), 100e6, 0.1));
  link.bytes_per_us = 50;
  link.Carry(&monitor, &random, 5000000);
  CHECK_TRUE(Near(monitor.bytes_per_second(), 50e6, 0.1));
  link.bytes_per_us = 100;
  link.Carry(&monitor, &random, 2000000);
  CHECK_TRUE(monitor.bytes_per_second() < 90e6);
  link.Carry(&monitor, &random, 8000000);
  CHECK_TRUE(Near(monitor.bytes_per_second(), 100e6, 0.1));
}

TEST(a_link_that_carries_nothing_is_not_known) {
  BandwidthMonitor monitor;
  int64_t now = 0;
  for (int i = 0; i < 200; ++i) monitor.Add(100000, 1000, now += 100000);
  CHECK_TRUE(monitor.known());
  for (int i = 0; i < 100; ++i) monitor.Add(100, 1500000, now += 1500000);
  CHECK_FALSE(monitor.known());
  CHECK_FALSE(monitor.TakeNotice().empty());
  CHECK_TRUE(monitor.TakeNotice().empty());  // said once
  for (int i = 0; i < 100; ++i) monitor.Add(100000, 1000, now += 100000);
  CHECK_TRUE(monitor.known());
  CHECK_TRUE(Near(monitor.bytes_per_second(), 1e8, 0.01));
}

TEST(little_to_carry_is_no_standstill) {
  BandwidthMonitor monitor;
  int64_t now = 0;
  for (int i = 0; i < 200; ++i) monitor.Add(4, 20000, now += 20000);  // another worker is late
  CHECK_FALSE(monitor.known());
  CHECK_TRUE(monitor.TakeNotice().empty());
}

TEST(a_clock_that_jumps_does_no_harm) {
  mercury::testing::Random random;
  for (const int64_t jump : {-3600000000LL, 3600000000LL}) {
    BandwidthMonitor monitor;
    BusyLink link{100, 0, 10000000000};
    link.Carry(&monitor, &random, 5000000);
    monitor.Add(200000, jump < 0 ? jump : 0, link.now_us);
    link.now_us += jump;
    monitor.Add(200000, std::abs(jump), link.now_us);  // one absurd stretch
    link.Carry(&monitor, &random, 10000000);
    CHECK_TRUE(Near(monitor.bytes_per_second(), 100e6, 0.1));
    link.bytes_per_us = 30;  // and it goes on estimating
    link.Carry(&monitor, &random, 6000000);
    CHECK_TRUE(Near(monitor.bytes_per_second(), 30e6, 0.1));
  }
}

TEST(any_stretches_leave_usable_figures) {
  mercury::testing::Random random;
  for (int trial = 0; trial < 200; ++trial) {
    BandwidthMonitor monitor;
    int64_t now = 0;
    for (int i = 0; i < 300; ++i) {
      now += random.Between(-1000000, 3000000);
      monitor.Add(random.OneIn(5) ? 0 : random.Below(uint64_t{1} << random.Between(1, 40)),
                  random.Between(-5, 1 << random.Between(1, 30)), now);
      CHECK_TRUE(std::isfinite(monitor.bytes_per_second()) && monitor.bytes_per_second() >= 0);
      CHECK_TRUE(std::isfinite(monitor.startup_us()) && monitor.startup_us() >= 0);
      if (monitor.known()) CHECK_TRUE(monitor.WireUs(1e6) >= 0);
    }
  }
}
