// The harness must be seen to fail: a harness that cannot fail passes everything.
#include "harness.h"

#include <thread>

using namespace mercury;
using mercury::testing::Cases;
using mercury::testing::failed_checks;
using mercury::testing::kCasesPart;
using mercury::testing::Random;
using mercury::testing::Trials;

namespace {

// How many checks `run` fails, taken out of the count again.
template <typename F>
int Failures(F run) {
  const int before = failed_checks;
  std::fflush(stderr);
  run();
  const int failures = failed_checks - before;
  failed_checks -= failures;
  return failures;
}

enum class Colour : int { kRed, kBlue };

}  // namespace

TEST(a_true_check_passes) {
  CHECK_TRUE(1 < 2);
  CHECK_FALSE(2 < 1);
  CHECK_EQ(std::string("a"), "a");
  CHECK_EQ(size_t{3}, 3);
  CHECK_EQ(Colour::kRed, Colour::kRed);
  CHECK_OK(Status::Ok());
  CHECK_STATUS(Code::kCorrupt, Status::Corrupt("bad"));
}

TEST(a_false_check_fails_and_goes_on) {
  std::fprintf(stderr, "(the next 6 reports are meant to be there)\n");
  CHECK_EQ(Failures([] {
             CHECK_TRUE(2 < 1);
             CHECK_EQ(1, 2);
             CHECK_EQ(-1, ~size_t{0});
             CHECK_EQ(Colour::kRed, Colour::kBlue);
             CHECK_OK(Status::Corrupt("bad"));
             CHECK_STATUS(Code::kCorrupt, Status::Timeout("late"));
           }),
           6);
}

TEST(a_false_requirement_ends_the_test) {
  std::fprintf(stderr, "(the next report is meant to be there)\n");
  bool reached = false;
  CHECK_EQ(Failures([&] {
             try {
               REQUIRE_EQ(1, 2);
               reached = true;
             } catch (const mercury::testing::Abandoned&) {
             }
           }),
           1);
  CHECK_FALSE(reached);
}

TEST(checks_count_on_any_thread) {
  std::fprintf(stderr, "(the next 20 reports are meant to be there)\n");
  CHECK_EQ(Failures([] {
             std::thread other([] {
               for (int i = 0; i < 10; ++i) CHECK_TRUE(i < 0);
             });
             for (int i = 0; i < 10; ++i) CHECK_TRUE(i < 0);
             other.join();
           }),
           20);
}

TEST(random_numbers_follow_from_the_seed) {
  Random a;
  Random b;
  for (int i = 0; i < 100; ++i) CHECK_EQ(a(), b());
  for (int i = 0; i < 1000; ++i) {
    const int64_t drawn = a.Between(-3, 3);
    CHECK_TRUE(-3 <= drawn && drawn <= 3);
    const double unit = a.Unit();
    CHECK_TRUE(0 <= unit && unit < 1);
  }
}

TEST(a_short_run_makes_a_tenth_of_the_cases_and_at_least_one) {
  const bool may_be_long = Trials(100) == 100;
  for (const int all : {1, 9, 10, 11, 30'000}) {
    CHECK_EQ(Trials(all), may_be_long ? all : Cases((all + 9) / 10));
  }
  CHECK_EQ(Trials(1), 1);
  CHECK_EQ(Cases(1), 1);
  CHECK_EQ(Cases(3 * kCasesPart), 3);
}

TEST(all_checks_can_be_shown) {
  CHECK_EQ(mercury::testing::Shown(uint8_t{7}), "7");
  CHECK_EQ(mercury::testing::Shown(true), "true");
  CHECK_EQ(mercury::testing::Shown(Colour::kBlue), "1");
  CHECK_EQ(mercury::testing::Shown(std::vector<int>()), "(a value of 24 bytes)");
}
