#include "fabric/live/courier.h"

#include <algorithm>

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

namespace {

// 1 MB/s from 10 s on, with a pause of a second: over at 13 s.
Hop Paced(int64_t number) {
  Hop hop;
  hop.update = {0, number};
  hop.bytes = 2'000'000;
  hop.start_s = 10;
  hop.end_s = 13;
  hop.pieces = {{10, 11, 8e6}, {12, 13, 8e6}};
  return hop;
}

int64_t DueBytes(const Courier& courier, double now_s) {
  int64_t bytes = 0;
  for (const Allowance& allowance : courier.Due(now_s)) bytes += allowance.bytes;
  return bytes;
}

}  // namespace

TEST(a_hop_goes_from_its_time_on_at_its_pace) {
  Courier courier;
  const int64_t number = courier.Take(Paced(1));
  CHECK_EQ(courier.WakeAt(5), kNever);  // there is nothing to send yet
  courier.Ready(number, 2'000'000, 5);
  CHECK_EQ(DueBytes(courier, 9.9), 0);
  CHECK_EQ(courier.WakeAt(9.9), 10);
  CHECK_EQ(DueBytes(courier, 10), kPaceQuantum_bytes);
  CHECK_EQ(DueBytes(courier, 10.5), 625'000 + kPaceQuantum_bytes);
  CHECK_FALSE(courier.Sent(number, 625'000).has_value());
  CHECK_EQ(DueBytes(courier, 11), 625'000 + kPaceQuantum_bytes);
  CHECK_EQ(DueBytes(courier, 12), 625'000 + kPaceQuantum_bytes);  // a pause
  CHECK_EQ(DueBytes(courier, 13), 2'000'000 - 625'000);
  CHECK_TRUE(courier.Sent(number, 2'000'000 - 625'000).has_value());
  CHECK_TRUE(courier.Find(number) == nullptr);
  CHECK_EQ(courier.WakeAt(13), kNever);
}

TEST(who_is_ready_late_is_late_as_a_whole) {
  Courier courier;
  const int64_t number = courier.Take(Paced(1));
  courier.Ready(number, 2'000'000, 10.5);
  CHECK_EQ(DueBytes(courier, 10.5), kPaceQuantum_bytes);
  CHECK_EQ(DueBytes(courier, 11), 625'000 + kPaceQuantum_bytes);
  CHECK_TRUE(DueBytes(courier, 13) < 2'000'000);
  CHECK_EQ(DueBytes(courier, 13.5), 2'000'000);
}

TEST(what_was_planned_first_goes_first) {
  Courier courier;
  Hop early = Paced(1);
  early.start_s = 9;
  early.end_s = 10;
  early.pieces = {};
  const int64_t second = courier.Take(Paced(2));
  const int64_t first = courier.Take(early);
  courier.Ready(second, 100, 0);
  courier.Ready(first, 100, 0);
  std::vector<Allowance> due = courier.Due(11);
  REQUIRE_EQ(due.size(), 2);
  CHECK_EQ(due[0].number, first);
  courier.Sent(second, 40);
  CHECK_TRUE(courier.Cancel(second));
  CHECK_FALSE(courier.Cancel(second));
  CHECK_TRUE(courier.Find(second) == nullptr);
  CHECK_FALSE(courier.Sent(second, 60).has_value());
  CHECK_EQ(courier.Due(11).size(), 1);
}

TEST(nothing_hangs_and_nothing_is_far_ahead_of_its_plan) {
  Random random;
  for (int round = 0; round < 300; ++round) {
    Courier courier;
    std::vector<int64_t> left;
    double end_s = 0;
    const int64_t hops = random.Between(1, 4);
    for (int64_t i = 0; i < hops; ++i) {
      Hop hop;
      hop.update = {0, i};
      double at_s = 3 * random.Unit();
      hop.start_s = at_s;
      for (int64_t pieces = random.Between(0, 3); pieces > 0; --pieces) {
        const double length_s = 0.1 + random.Unit();
        hop.pieces.push_back({at_s, at_s + length_s, 8e6 * (0.1 + random.Unit())});
        hop.bytes += static_cast<int64_t>(length_s * hop.pieces.back().bit_per_s / 8);
        at_s += length_s + random.Unit();
      }
      if (!hop.pieces.empty()) hop.start_s = hop.pieces[0].start_s;
      hop.end_s = hop.pieces.empty() ? hop.start_s : hop.pieces.back().end_s;
      hop.bytes = std::max<int64_t>(hop.bytes, 1);
      const int64_t number = courier.Take(hop);
      left.push_back(hop.bytes);
      end_s = std::max(end_s, hop.end_s);
      courier.Ready(number, hop.bytes, random.OneIn(2) ? 0 : hop.start_s);
    }
    double now_s = 0;
    int steps = 0;
    while (courier.WakeAt(now_s) < kNever) {
      REQUIRE_TRUE(++steps < 2000);
      const std::vector<Allowance> due = courier.Due(now_s);
      for (const Allowance& allowance : due) {
        const int64_t bytes = std::min(allowance.bytes, kPaceQuantum_bytes);
        int64_t& rest = left[static_cast<size_t>(allowance.number - 1)];
        rest -= bytes;
        CHECK_EQ(courier.Sent(allowance.number, bytes).has_value(), rest == 0);
      }
      if (!due.empty()) continue;
      const double wake_s = courier.WakeAt(now_s);
      REQUIRE_TRUE(wake_s > now_s);
      now_s = wake_s;
    }
    for (const int64_t rest : left) CHECK_EQ(rest, 0);
    CHECK_TRUE(now_s <= end_s + 1e-6);
  }
}

TEST(what_is_not_there_yet_is_not_allowed_and_wakes_nobody) {
  Courier courier;
  const int64_t number = courier.Take(Paced(0));
  courier.Ready(number, 2'000'000, 0);
  courier.Reach(number, 0);
  CHECK_TRUE(courier.Due(100).empty());
  CHECK_TRUE(courier.WakeAt(100) == kNever);
  courier.Reach(number, 70);
  REQUIRE_EQ(courier.Due(100).size(), 1);
  CHECK_EQ(courier.Due(100)[0].bytes, 70);
  courier.Sent(number, 70);
  CHECK_TRUE(courier.WakeAt(100) == kNever);
  courier.Reach(number, 2'000'000);
  CHECK_TRUE(courier.Sent(number, 2'000'000 - 70).has_value());
}

TEST(within_a_host_nothing_is_paced) {
  Courier courier;
  Hop beside = Paced(0);
  beside.pieces = {};
  beside.end_s = 50;
  const int64_t number = courier.Take(beside);
  courier.Ready(number, 1'000'000, 0);
  REQUIRE_EQ(courier.Due(10).size(), 1);
  CHECK_EQ(courier.Due(10)[0].bytes, 1'000'000);
}
