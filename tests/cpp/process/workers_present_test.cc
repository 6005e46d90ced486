#include "process/workers_present.h"

#include "harness.h"

using namespace mercury;

TEST(newcomers_count_once_they_are_in) {
  WorkersPresent present;
  present.Begin({0, 1});
  CHECK_TRUE(present.IsFirst(0) && !present.IsFirst(1));
  CHECK_EQ(present.Ready(), -1);
  present.Admits(3, 0, Admission::kComes);
  CHECK_EQ(present.Ready(), -1);
  present.Admits(3, 0, Admission::kReady);
  CHECK_EQ(present.Ready(), 3);
  CHECK_EQ(present.workers(), 2);
  CHECK_TRUE(present.IsAt(3, 0, Admission::kReady) && !present.IsAt(3, 0, Admission::kTakes));
  present.Admits(3, 0, Admission::kIn);
  CHECK_EQ(present.workers(), 3);
  CHECK_EQ(present.Ready(), -1);
  CHECK_TRUE(present.IsAt(3, 0, Admission::kHas));
  present.Out(0);
  CHECK_TRUE(present.IsFirst(1));
}

TEST(who_follows_in_a_place_is_another) {
  WorkersPresent present;
  present.Begin({0, 1});
  present.Out(1);
  CHECK_TRUE(!present.IsThere(1, 0));
  present.Admits(1, 1, Admission::kReady);
  CHECK_EQ(int{present.EntryOf(1)}, 1);
  CHECK_TRUE(present.IsThere(1, 1) && !present.IsThere(1, 0));
  CHECK_TRUE(present.IsAt(1, 1, Admission::kReady) && !present.IsAt(1, 0, Admission::kReady));
  present.Out(1);
  CHECK_TRUE(!present.IsThere(1, 1));
}
