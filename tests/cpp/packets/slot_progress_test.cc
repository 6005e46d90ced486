#include "packets/slot_progress.h"

#include "harness.h"

using namespace mercury;
namespace {

TEST(what_all_have_is_what_the_slowest_has) {
  SlotProgress progress;
  progress.Resize(2, 3);
  for (size_t w = 0; w < 3; ++w) CHECK_EQ(progress.Of(1, w), 0U);
  progress.Of(1, 0) = 128;
  progress.Of(1, 1) = SlotProgress::kComplete;
  CHECK_EQ(progress.InAll(1), 128U);  // of those that have begun
  progress.Of(1, 2) = 64;
  CHECK_EQ(progress.InAll(1), 64U);
  CHECK_FALSE(progress.Takes(0, 0));  // the slots' books are their own
  progress.Of(1, 0) = progress.Of(1, 2) = SlotProgress::kComplete;
  CHECK_EQ(progress.InAll(1), SlotProgress::kComplete);
}

TEST(who_is_owed_a_sum_has_sent_nothing_of_the_next) {
  SlotProgress progress;
  progress.Resize(3, 2);
  for (size_t w = 0; w < 2; ++w) progress.Of(1, w) = SlotProgress::kComplete;
  progress.Summed(1);
  progress.Summed(0);  // nobody has sent it anything: nobody is owed its sum
  for (size_t w = 0; w < 2; ++w) {
    CHECK_EQ(progress.Of(1, w), SlotProgress::kOwed);
    CHECK_FALSE(progress.Takes(1, w));
    CHECK_EQ(progress.Of(0, w) + progress.Of(2, w), 0U);
  }
  progress.Of(1, 1) = 64;
  CHECK_EQ(progress.InAll(1), 64U);
}

TEST(a_copy_stands_for_as_many_as_it_says) {
  SlotProgress progress;
  progress.Resize(2, 2);
  progress.StandsFor(1, 0) = 4;
  CHECK_EQ(int{progress.StandsFor(1, 0)}, 4);
  CHECK_EQ(int{progress.StandsFor(1, 1)} + progress.StandsFor(0, 0), 0);
}

TEST(an_answer_waits_for_one_worker_alone) {
  SlotProgress progress;
  progress.Resize(2, 2);
  progress.Queued(1, 0) = 1;
  CHECK_EQ(int{progress.Queued(1, 1)} + progress.Queued(0, 0) + progress.Queued(0, 1), 0);
  CHECK_EQ(int{progress.Queued(1, 0)}, 1);
}

}  // namespace
