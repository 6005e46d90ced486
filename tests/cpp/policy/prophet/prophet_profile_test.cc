#include "policy/prophet/prophet_profile.h"

#include <algorithm>
#include <string>
#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test
using mercury::testing::Random;

namespace {

// Gradients in steps, the last first: key i + 1, priority -i, 30 ms between two steps.
struct Training {
  std::vector<int64_t> produced_us;  // by index
  uint64_t bytes = 1000;
  int64_t now_us = 1000000;
  double pace = 1;

  Training(int gradients, int steps) {
    for (int i = 0; i < gradients; ++i) {
      produced_us.push_back(30000 * (steps - 1 - i * steps / gradients));
    }
  }
  uint64_t Bytes(size_t i) const { return bytes * (i + 1); }
  // Gradients from the last to `first`, each with up to so much jitter.
  void Backward(ProphetProfile* profile, Random* random, int64_t jitter_us = 0, size_t first = 0) {
    const int64_t start = now_us;
    for (size_t i = produced_us.size(); i-- > first;) {
      const auto due = static_cast<int64_t>(pace * static_cast<double>(produced_us[i]));
      now_us = std::max(now_us, start + due + random->Between(0, jitter_us));
      profile->Ready(i + 1, Bytes(i), -static_cast<int32_t>(i), now_us);
    }
  }
  void Forward(ProphetProfile* profile, int64_t wait_us = 0) {
    profile->Done(1, now_us + wait_us);
    now_us += wait_us + 50000;
  }
  void Iterations(ProphetProfile* profile, Random* random, int count, int64_t jitter_us = 0) {
    for (int n = 0; n < count; ++n) {
      Backward(profile, random, jitter_us);
      Forward(profile);
    }
  }
};

std::string Text(const ProphetProfile& profile) {
  const std::string text =
      profile.Text([](uint64_t key) { return "weight " + std::to_string(key); });
  return text.substr(std::min(text.find('\n'), text.size()));  // the forward pass may vary
}

bool Says(ProphetProfile* profile, const std::string& words) {
  const std::vector<std::string> notices = profile->TakeNotices();
  return notices.size() == 1 && notices[0].find(words) != std::string::npos;
}

}  // namespace

TEST(a_steady_pattern_is_known_after_a_few_iterations) {
  Random random;
  ProphetProfile profile(50);
  Training training(12, 4);
  training.Iterations(&profile, &random, 6, 500);
  CHECK_FALSE(profile.known());  // the first does not count, and the sixth has not ended
  training.Backward(&profile, &random);
  CHECK_TRUE(profile.known());
  CHECK_EQ(profile.figures().profiles, 1U);
  REQUIRE_EQ(profile.gradients().size(), 12U);
  for (size_t i = 0; i < 12; ++i) {
    const ProfiledGradient& g = profile.gradients()[i];
    CHECK_EQ(g.key, i + 1);
    CHECK_EQ(g.bytes, training.Bytes(i));
    CHECK_TRUE(std::abs(g.produced_us - training.produced_us[i]) <= 500);
  }
  CHECK_TRUE(profile.TakeNotices().empty());
}

TEST(an_unsteady_one_takes_as_many_as_allowed_and_medians) {
  Random random;
  ProphetProfile profile(20);
  Training training(12, 4);
  for (int n = 0; n < 21; ++n) {
    training.pace = n % 2 == 0 ? 1 : 1.5;
    if (n == 20) training.pace = 50;  // one that was held up
    CHECK_FALSE(profile.known());
    training.Iterations(&profile, &random, 1);
  }
  training.pace = 1;
  training.Backward(&profile, &random);
  REQUIRE_TRUE(profile.known());
  CHECK_TRUE(profile.gradients()[0].produced_us <= 135000);
}

TEST(it_tells_what_is_due) {
  Random random;
  ProphetProfile profile(50);
  Training training(4, 2);  // 0 and 1 after 30 ms, 2 and 3 at once
  training.Iterations(&profile, &random, 7);
  CHECK_FALSE(profile.in_backward());  // not begun
  const int64_t start = training.now_us;
  profile.Ready(4, training.Bytes(3), -3, start);
  CHECK_TRUE(profile.in_backward());
  CHECK_EQ(profile.NextDue(-3), start);  // 2 should be there, too
  CHECK_EQ(profile.NextDue(-2), start + 30000);
  CHECK_EQ(profile.NextDue(0), ProphetProfile::kNotDue);
  profile.Ready(3, training.Bytes(2), -2, start + 10);
  CHECK_EQ(profile.NextDue(-3), start + 30000);
  CHECK_EQ(profile.LongestGapUs(start + 10000), 20000);
  profile.Ready(2, training.Bytes(1), -1, start + 31000);
  CHECK_EQ(profile.NextDue(-1), start + 30000);  // overdue
  CHECK_TRUE(profile.in_backward());
  profile.Ready(1, training.Bytes(0), 0, start + 32000);
  CHECK_FALSE(profile.in_backward());
  CHECK_EQ(profile.NextDue(-3), ProphetProfile::kNotDue);
}

TEST(it_follows_slow_changes_and_profiles_again_after_fast_ones) {
  Random random;
  ProphetProfile profile(50);
  Training training(12, 4);
  training.Iterations(&profile, &random, 8, 200);
  REQUIRE_TRUE(profile.known());
  for (int n = 0; n < 60; ++n) {
    training.pace += 0.01;
    training.Iterations(&profile, &random, 1, 200);
  }
  CHECK_TRUE(profile.known());
  CHECK_TRUE(profile.TakeNotices().empty());
  CHECK_TRUE(std::abs(profile.gradients()[0].produced_us - 144000) < 15000);
  training.pace = 4;  // a slower GPU
  training.Iterations(&profile, &random, 4, 200);
  CHECK_FALSE(profile.known());
  CHECK_TRUE(Says(&profile, "do not appear when"));
  training.Iterations(&profile, &random, 8, 200);
  CHECK_TRUE(profile.known());
  CHECK_EQ(profile.figures().profiles, 2U);
  CHECK_TRUE(profile.gradients()[0].produced_us >= 359000);
}

TEST(one_iteration_that_was_held_up_changes_nothing) {
  Random random;
  ProphetProfile profile(50);
  Training training(12, 4);
  training.Iterations(&profile, &random, 10);
  const std::string before = Text(profile);
  for (int n = 0; n < 10; ++n) {
    training.pace = n % 2 == 0 ? 30 : 1;
    training.Iterations(&profile, &random, 1);
  }
  training.Backward(&profile, &random);
  CHECK_EQ(Text(profile), before);
}

TEST(other_gradients_or_sizes_make_it_profile_again) {
  Random random;
  for (const bool sizes : {false, true}) {
    ProphetProfile profile(50);
    Training training(12, 4);
    training.Iterations(&profile, &random, 8);
    REQUIRE_TRUE(profile.known());
    if (sizes) {
      training.bytes *= 2;  // another model
      training.Iterations(&profile, &random, 2);
      CHECK_TRUE(Says(&profile, "another model"));
    } else {
      // Another bucket: some gradients less, for good. Once does no harm.
      training.Backward(&profile, &random, 0, 2);
      training.now_us += 1000;
      training.Iterations(&profile, &random, 3);
      CHECK_TRUE(profile.known());
      for (int n = 0; n < 4; ++n) {
        training.Backward(&profile, &random, 0, 2);
        training.now_us += 1000;
      }
      CHECK_TRUE(Says(&profile, "other gradients"));
    }
    CHECK_FALSE(profile.known());
    CHECK_FALSE(profile.in_backward());
  }
}

TEST(a_profile_is_given_to_the_next_run) {
  Random random;
  ProphetProfile first(50), second(50);
  Training training(12, 4);
  training.Iterations(&first, &random, 8);
  CHECK_OK(second.Load(first.Text([](uint64_t) { return "any name"; })));
  CHECK_EQ(Text(second), Text(first));
  CHECK_TRUE(Text(ProphetProfile(50)).empty());
  CHECK_TRUE(Text(first).find("\n1 1000 0 90000 weight 1\n") != std::string::npos);
  Training again(12, 4);
  again.Iterations(&second, &random, 1);
  const int64_t start = again.now_us;
  second.Ready(12, again.Bytes(11), -11, start);
  CHECK_TRUE(second.in_backward());
  CHECK_TRUE(second.TakeNotices().empty());
}

TEST(a_profile_that_cannot_be_used) {
  ProphetProfile profile(50);
  CHECK_STATUS(Code::kInvalidArgument, profile.Load(""));
  for (const char* bad :
       {"x\n", "1 2 3\n", "# nothing\n", "1 2 3 -4\n", "1 2 3 9223372036854775807\n",
        "1 2 3 4\n1 2 3 4\n", "\n", "1 2 99999999999 4\n"}) {
    const Status status = profile.Load(bad);
    CHECK_STATUS(Code::kInvalidArgument, status);
    CHECK_FALSE(profile.known());
  }
  // Of another model: it says so once, and learns this one.
  CHECK_OK(profile.Load("77 10 0 1000\n78 10 -1 0\n"));
  Random random;
  Training training(12, 4);
  training.Iterations(&profile, &random, 2);
  CHECK_TRUE(Says(&profile, "the profile is of another model: 0 of 12"));
  training.Iterations(&profile, &random, 8);
  CHECK_TRUE(profile.known());
  CHECK_EQ(profile.gradients().size(), 12U);
  CHECK_TRUE(profile.TakeNotices().empty());
}

TEST(a_clock_that_jumps) {
  Random random;
  ProphetProfile profile(50);
  Training training(12, 4);
  training.Iterations(&profile, &random, 8);
  const std::string before = Text(profile);
  profile.Ready(12, training.Bytes(11), -11, training.now_us);
  profile.Ready(11, training.Bytes(10), -10, training.now_us - 3600000000);
  CHECK_FALSE(profile.in_backward());
  CHECK_TRUE(Says(&profile, "went back by 3600000 ms"));
  training.now_us -= 3600000000;
  for (size_t i = 10; i-- > 0;) {
    profile.Ready(i + 1, training.Bytes(i), -static_cast<int32_t>(i), ++training.now_us);
  }
  training.Forward(&profile);
  training.Iterations(&profile, &random, 1);
  profile.Ready(12, training.Bytes(11), -11, training.now_us);
  training.now_us += 3600000000;  // and forward
  for (size_t i = 11; i-- > 0;) {
    profile.Ready(i + 1, training.Bytes(i), -static_cast<int32_t>(i), ++training.now_us);
  }
  training.Forward(&profile);
  training.Iterations(&profile, &random, 3);
  CHECK_TRUE(profile.TakeNotices().empty());
  CHECK_EQ(Text(profile), before);
}

TEST(the_wait_for_sums_is_counted) {
  Random random;
  ProphetProfile profile(50);
  Training training(12, 4);
  training.Iterations(&profile, &random, 8);
  const ProphetFigures before = profile.figures();
  training.Backward(&profile, &random);
  training.Forward(&profile, 7000);  // the most urgent sum came 7 ms late
  training.now_us += 2000;           // and the rest held up the forward pass for 2
  training.Backward(&profile, &random);
  CHECK_EQ(profile.figures().waits - before.waits, 2U);
  CHECK_EQ(profile.figures().wait_first_us - before.wait_first_us, 7000U);
  CHECK_EQ(profile.figures().wait_later_us - before.wait_later_us, 2000U);
}

TEST(a_validation_between_two_iterations_is_no_wait) {
  Random random;
  ProphetProfile profile(50);
  Training training(12, 4);
  training.Iterations(&profile, &random, 8);
  const ProphetFigures before = profile.figures();
  training.Iterations(&profile, &random, 1);
  training.now_us += 60000000;
  training.Iterations(&profile, &random, 2);
  CHECK_EQ(profile.figures().waits - before.waits, 2U);  // three, but for that one
  CHECK_EQ(profile.figures().wait_later_us, before.wait_later_us);
}

// Whatever comes, and whatever the clock says: what is due is not ready, and nothing grows.
TEST(anything_goes) {
  Random random;
  for (int trial = 0; trial < 200; ++trial) {
    ProphetProfile profile(static_cast<int>(random.Between(1, 10)));
    if (random.OneIn(2)) CHECK_OK(profile.Load("1 10 5 0\n2 10 -5 10000\n3 10 0 20000\n"));
    int64_t now = 0;
    for (int i = 0; i < 500; ++i) {
      now += random.OneIn(50) ? random.Between(-10000000, 10000000) : random.Between(0, 20000);
      const uint64_t key = random.Below(6);
      if (random.OneIn(3)) {
        profile.Done(key, now);
      } else {
        const auto priority = static_cast<int32_t>(random.OneIn(40) ? random.Below(9) : key);
        profile.Ready(key, 10 * key, priority, now);
      }
      CHECK_FALSE(profile.in_backward() && !profile.known());
      for (const int32_t p : {-9, 0, 9}) CHECK_TRUE(profile.NextDue(p) >= profile.NextDue(p - 1));
      if (profile.known()) CHECK_TRUE(profile.LongestGapUs(now) >= 0);
    }
  }
}
