#include "trace/clock_offset.h"

#include "harness.h"

using namespace mercury;
namespace {

TEST(the_shortest_round_trip_counts) {
  ClockOffset offset;
  CHECK_FALSE(offset.Take().has_value());
  // The other's clock is 1000 ahead; there 10, back 30; then there 5, back 5; then a slow one.
  offset.Sample(100, 1110, 1120, 150);
  offset.Sample(200, 1205, 1206, 211);
  offset.Sample(300, 1700, 1700, 800);
  const auto best = offset.Take();
  REQUIRE_TRUE(best.has_value());
  CHECK_EQ(best->add_us, 1000);
  CHECK_EQ(best->within_us, 6);
  CHECK_EQ(best->time_us, 211);
  CHECK_EQ(offset.samples(), 3);
  CHECK_FALSE(offset.Take().has_value());
}

TEST(the_truth_is_within_what_it_promises) {
  testing::Random random;
  for (int i = 0; i < 10000; ++i) {
    const int64_t ahead = random.Between(-1000000, 1000000);
    const int64_t there = random.Between(0, 500), back = random.Between(0, 500);
    const int64_t thinking = random.Between(0, 500), asked = random.Between(0, 1000000);
    ClockOffset offset;
    offset.Sample(asked, asked + there + ahead, asked + there + thinking + ahead,
                  asked + there + thinking + back);
    const auto estimate = offset.Take();
    REQUIRE_TRUE(estimate.has_value());
    CHECK_TRUE(std::abs(estimate->add_us - ahead) <= estimate->within_us);
    CHECK_TRUE(estimate->within_us <= (there + back) / 2 + 1);
  }
}

TEST(times_that_no_clocks_can_have_are_left_out) {
  ClockOffset offset;
  offset.Sample(100, 0, 0, 99);     // heard before it was asked
  offset.Sample(100, 50, 49, 110);  // answered before it was received
  offset.Sample(100, 50, 90, 110);  // thought about for longer than it took
  CHECK_EQ(offset.samples(), 0);
  CHECK_FALSE(offset.Take().has_value());
}

}  // namespace
