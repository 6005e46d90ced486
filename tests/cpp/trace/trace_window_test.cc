#include "trace/trace_window.h"

#include "harness.h"

using namespace mercury;
namespace {

TEST(all_steps_unless_told_otherwise) {
  const TraceWindow window;
  CHECK_TRUE(window.Covers(-1));
  CHECK_TRUE(window.Covers(0));
  CHECK_TRUE(window.Covers(1000000));
}

TEST(steps_of_the_settings) {
  const TraceWindow window(10, 50);
  for (const int64_t step : {-1, 0, 9, 50}) CHECK_FALSE(window.Covers(step));
  for (const int64_t step : {10, 49}) CHECK_TRUE(window.Covers(step));
}

TEST(an_iteration_that_has_begun_is_recorded_to_its_end) {
  TraceWindow window;
  window.Switch(false, 6);
  CHECK_EQ(window.to(), 7);
  CHECK_TRUE(window.Covers(6));
  CHECK_FALSE(window.Covers(7));
  window.Switch(true, 9);
  CHECK_EQ(window.from(), 10);
  CHECK_TRUE(window.Covers(6));
  CHECK_FALSE(window.Covers(9));
  CHECK_TRUE(window.Covers(10));
  window.Switch(true, 20);  // is on already
  CHECK_TRUE(window.Covers(10));
}

TEST(switched_off_from_the_start) {
  TraceWindow window;
  window.Switch(false, -1);
  CHECK_FALSE(window.Covers(-1));
  CHECK_FALSE(window.Covers(0));
  window.Switch(true, 3);
  CHECK_FALSE(window.Covers(-1));
  CHECK_TRUE(window.Covers(4));
}

TEST(a_switch_stays_inside_the_settings) {
  TraceWindow window(10, 20);
  window.Switch(false, 2);
  CHECK_FALSE(window.Covers(10));
  window.Switch(true, 4);
  CHECK_FALSE(window.Covers(5));
  CHECK_TRUE(window.Covers(10));
  CHECK_FALSE(window.Covers(20));
}

}  // namespace
