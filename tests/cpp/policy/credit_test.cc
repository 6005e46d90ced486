#include "policy/credit.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

CreditLimits Fixed(uint64_t bytes) {
  CreditLimits limits;
  limits.fixed_bytes = bytes;
  return limits;
}

}  // namespace

TEST(a_full_window_holds_back_its_like) {
  Credit credit(Fixed(1000));
  CHECK_EQ(credit.WakeAt(), kNever);
  for (int i = 0; i < 2; ++i) {
    CHECK_TRUE(credit.MaySend(5, 0, 0));
    credit.Sent(1, 5, 500, 0);
  }
  CHECK_EQ(credit.counted_bytes(), 1000U);
  CHECK_FALSE(credit.MaySend(5, 0, 0));
  CHECK_FALSE(credit.MaySend(4, 0, 0));
  CHECK_TRUE(credit.MaySend(6, 0, 0));  // what is more urgent is not held back by it
  credit.Returned(1, 1, 10);
  CHECK_TRUE(credit.MaySend(5, 0, 10));
}

TEST(only_as_much_is_ahead_as_is_as_urgent) {
  Credit credit(Fixed(1000));
  credit.Sent(1, 9, 600, 0);
  credit.Sent(2, 1, 600, 0);
  CHECK_FALSE(credit.MaySend(1, 0, 0));
  CHECK_TRUE(credit.MaySend(2, 0, 0));
  credit.Sent(3, 2, 400, 0);
  CHECK_FALSE(credit.MaySend(2, 0, 0));
  CHECK_TRUE(credit.MaySend(3, 0, 0));
}

TEST(the_least_may_be_under_way_however_small_the_window_is) {
  Credit credit(Fixed(1000));
  credit.Sent(1, 5, 2900, 0);
  CHECK_FALSE(credit.MaySend(5, 0, 0));
  CHECK_TRUE(credit.MaySend(5, 3000, 0));
  credit.Sent(1, 5, 100, 0);
  CHECK_FALSE(credit.MaySend(5, 3000, 0));
  CHECK_TRUE(credit.MaySend(6, 0, 0));
}

TEST(what_never_returns_is_parked_and_the_window_grows) {
  Credit credit(Fixed(1000));
  int64_t now = 0;
  uint64_t portion = 0;
  uint64_t window = credit.window_bytes();
  for (int i = 0; i < 8; ++i) {
    while (credit.MaySend(0, 0, now)) credit.Sent(++portion, 0, 1000, now);
    const int64_t wake = credit.WakeAt();
    REQUIRE_TRUE(wake != kNever && wake > now);
    CHECK_FALSE(credit.MaySend(0, 0, wake - 1));
    now = wake;
    CHECK_TRUE(credit.MaySend(0, 0, now));
    CHECK_TRUE(credit.window_bytes() > window);
    window = credit.window_bytes();
  }
  CHECK_TRUE(now < 10000000);
  credit.Returned(1, 1000, now);  // something comes back: all is well again
  CHECK_EQ(credit.window_bytes(), 1000U);
}

TEST(a_portion_that_is_forgotten_counts_no_more) {
  Credit credit(Fixed(1000));
  credit.Sent(1, 0, 700, 0);
  credit.Sent(2, 0, 700, 0);
  credit.Forget(1);
  CHECK_EQ(credit.counted_bytes(), 700U);
  CHECK_TRUE(credit.MaySend(0, 0, 0));
  credit.Returned(1, 700, 5);  // of no account
  credit.Forget(1);
  credit.Returned(2, 100000, 5);  // no more than was sent
  CHECK_EQ(credit.counted_bytes(), 0U);
}

TEST(nothing_wakes_for_portions_that_are_over) {
  Credit credit(Fixed(1000));
  credit.Sent(1, 0, 700, 0);
  credit.Sent(2, 0, 700, 50);
  const int64_t first = credit.WakeAt();
  credit.Forget(1);
  CHECK_EQ(credit.WakeAt(), first + 50);
  credit.Forget(2);
  CHECK_EQ(credit.WakeAt(), kNever);
}

TEST(the_window_follows_rate_and_round_trip) {
  Credit credit{CreditLimits()};
  CHECK_EQ(credit.window_bytes(), uint64_t{256} << 10);
  // 100 bytes/us, 5 ms: a product of 500,000 bytes, a quarter more, and 2 ms' worth on top.
  credit.SetRoundTrip(5000);
  uint64_t portion = 0;
  for (int64_t now = 0; now < 200000; now += 100) {
    credit.Sent(++portion, 0, 10000, now);
    if (portion > 50) {
      credit.Returned(portion - 50, 10000, now);
      credit.Forget(portion - 50);
    }
  }
  CHECK_EQ(credit.round_trip_us(), 5000);
  CHECK_TRUE(credit.bytes_per_second() > 95e6 && credit.bytes_per_second() < 115e6);
  CHECK_TRUE(credit.window_bytes() > 780000 && credit.window_bytes() < 950000);
}

TEST(the_window_stays_within_its_limits) {
  for (const int64_t round_trip : {1, 100, 1000000}) {
    CreditLimits limits;
    limits.bytes_min = 50000;
    limits.bytes_max = 60000;
    Credit credit(limits);
    credit.SetRoundTrip(round_trip);
    int64_t now = 0;
    for (uint64_t portion = 1; portion < 100; ++portion) {
      credit.Sent(portion, 0, 10000, now);
      now += round_trip;
      credit.Returned(portion, 10000, now);
      credit.Forget(portion);
    }
    if (credit.bytes_per_second() > 0) {
      CHECK_TRUE(credit.window_bytes() >= 50000 && credit.window_bytes() <= 60000);
    }
  }
}

// What a link is believed to carry after one portion: 100 bytes/us, and back after 1 ms.
double RateAfter(Credit* credit, uint64_t portion, uint64_t bytes, int64_t now) {
  constexpr uint64_t kPacket = 10000;
  credit->Sent(portion, 0, bytes, now);
  for (now += 1000; bytes != 0; bytes -= kPacket) credit->Returned(portion, kPacket, now += 100);
  credit->Forget(portion);
  return credit->bytes_per_second();
}

TEST(a_pause_says_nothing_of_the_rate) {
  for (const uint64_t bytes : {200000, 500000, 800000}) {
    Credit credit{CreditLimits()};
    const auto product = static_cast<double>(bytes) * 1e6;
    for (uint64_t portion = 1; portion < 40; ++portion) {
      const double rate =
          RateAfter(&credit, portion, bytes, static_cast<int64_t>(portion) * 100000);
      CHECK_EQ(rate, product / (1000 + static_cast<double>(bytes) / 100));
    }
  }
}

TEST(what_is_back_within_a_millisecond_is_no_rate) {
  Credit credit{CreditLimits()};
  for (uint64_t portion = 1; portion < 40; ++portion) {
    const auto now = static_cast<int64_t>(portion) * 5000;
    credit.Sent(portion, 0, 10000, now);
    credit.Returned(portion, 10000, now + 900);
    credit.Forget(portion);
    CHECK_EQ(credit.bytes_per_second(), 0.0);
  }
}

// As when the process was away for a while: all of it seems to have come in a moment.
TEST(the_end_of_a_long_burst_is_no_rate) {
  Credit credit{CreditLimits()};
  credit.Sent(1, 0, 1000000, 0);
  credit.Returned(1, 500000, 10000);
  credit.Returned(1, 490000, 10000);
  credit.Returned(1, 10000, 11500);
  CHECK_EQ(credit.counted_bytes(), 0U);
  CHECK_EQ(credit.bytes_per_second(), 50e6);
}

TEST(a_pause_behind_a_portion_that_was_given_up_says_nothing_either) {
  Credit credit{CreditLimits()};
  credit.Sent(1, 0, 1000, 0);
  credit.Forget(1);
  CHECK_EQ(RateAfter(&credit, 2, 500000, 100000), 500000.0 * 1e6 / 6000);
}

// Counted bytes are those sent, not returned and not parked; whatever happens, sending is allowed
// again at WakeAt at the latest, and always when nothing is counted.
TEST(no_sequence_of_calls_blocks_for_ever) {
  mercury::testing::Random random;
  for (int trial = 0; trial < 200; ++trial) {
    CreditLimits limits;
    if (!random.OneIn(3))
      limits.fixed_bytes = random.Below(uint64_t{1} << random.Between(1, 20)) + 1;
    Credit credit(limits);
    std::map<uint64_t, int32_t> portions;  // and their urgency
    uint64_t next = 1;
    int64_t now = 0;
    for (int step = 0; step < 400; ++step) {
      now += random.Between(0, random.OneIn(10) ? 100000 : 100);
      if (random.OneIn(3) || portions.empty()) {
        portions[next++] = static_cast<int32_t>(random.Below(6));
      }
      auto it = portions.begin();
      std::advance(it, static_cast<ptrdiff_t>(random.Below(portions.size())));
      switch (random.Below(4)) {
        case 0:
        case 1:
          if (!credit.MaySend(it->second, 0, now)) {
            const int64_t wake = credit.WakeAt();
            REQUIRE_TRUE(wake != kNever);
            CHECK_TRUE(credit.counted_bytes() != 0);
            if (random.OneIn(4)) now = std::max(now, wake);
            break;
          }
          credit.Sent(it->first, it->second, 1 + random.Below(70000), now);
          break;
        case 2:
          credit.Returned(it->first, random.Below(70000), now);
          break;
        default:
          credit.Forget(it->first);
          portions.erase(it);
      }
    }
    for (int waits = 0; !credit.MaySend(std::numeric_limits<int32_t>::min(), 0, now); ++waits) {
      REQUIRE_TRUE(waits < 100000 && credit.WakeAt() != kNever);
      now = std::max(now + 1, credit.WakeAt());
    }
    for (const auto& [id, urgency] : portions) credit.Forget(id);
    CHECK_EQ(credit.counted_bytes(), 0U);
  }
}
