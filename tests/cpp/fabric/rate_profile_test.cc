#include "fabric/rate_profile.h"

#include <cmath>

#include "fabric/random_batch.h"

using namespace mercury::testing;

namespace {

double RateAt(const RateProfile& profile, double at_s) { return profile.Rate(profile.Find(at_s)); }

bool Same(const RateProfile& a, const RateProfile& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a.Rate(i) != b.Rate(i) || a.EndOf(i) != b.EndOf(i)) return false;
  }
  return true;
}

}  // namespace

TEST(a_step_holds_until_the_next) {
  const RateProfile profile({{0, 10}, {1, 0}, {3, 20}});
  CHECK_EQ(RateAt(profile, 0), 10);
  CHECK_EQ(RateAt(profile, 0.999), 10);
  CHECK_EQ(RateAt(profile, 1), 0);
  CHECK_EQ(RateAt(profile, 3), 20);
  CHECK_EQ(RateAt(profile, 1e9), 20);
}

TEST(what_is_below_one_bit_a_second_is_none) {
  const RateProfile profile({{0, 0.999}, {1, 5}});
  CHECK_EQ(RateAt(profile, 0), 0);
  CHECK_EQ(profile.EndOf(0), 1);
}

TEST(a_transfer_takes_the_less_of_both_ways) {
  const RateProfile out({{0, 100}, {2, 10}});
  const RateProfile in({{0, 0}, {1, 50}});
  std::vector<RateSpan> pieces;
  CHECK_EQ(Flow(out, in, 0, 70, &pieces), 4);  // 50 bits in [1, 2), 20 in [2, 4)
  CHECK_EQ(pieces.size(), 2);
  CHECK_EQ(pieces[0].start_s, 1);
  CHECK_EQ(pieces[0].bit_per_s, 50);
  CHECK_EQ(pieces[1].start_s, 2);
  CHECK_EQ(pieces[1].end_s, 4);
  CHECK_EQ(pieces[1].bit_per_s, 10);
}

TEST(a_transfer_that_ends_where_the_rate_does_has_no_crumb_after_the_gap) {
  const RateProfile out({{0, 0.1e9}, {0.3, 0}, {7, 1e9}});
  const RateProfile in({{0, 1e9}});
  CHECK_TRUE(std::abs(Flow(out, in, 0, 0.3 * 0.1e9, nullptr) - 0.3) < 1e-9);
}

TEST(what_is_taken_is_gone_and_comes_back_to_the_last_bit) {
  Random random;
  for (int round = 0; round < 2000; ++round) {
    RateProfile left = RandomProfile(&random);
    const RateProfile other = RandomProfile(&random);
    std::vector<RateProfile> before;
    std::vector<RateProfile::Change> changes;
    std::vector<RateStep> replaced;
    for (int i = 0; i < 5; ++i) {
      std::vector<RateSpan> pieces;
      const double ready_s = random.Unit();
      const double end_s = Flow(left, other, ready_s, 1e9 * (0.1 + random.Unit()), &pieces);
      REQUIRE_TRUE(!pieces.empty() && pieces.back().end_s == end_s);
      before.push_back(left);
      changes.push_back(left.Take(pieces, &replaced));
      for (int k = 0; k < 20; ++k) {
        const double at_s = 1.2 * end_s * random.Unit();
        double taken = 0;
        for (const RateSpan& piece : pieces) {
          if (piece.start_s <= at_s && at_s < piece.end_s) taken = piece.bit_per_s;
        }
        CHECK_TRUE(std::abs(RateAt(before.back(), at_s) - taken - RateAt(left, at_s)) < 1.5);
      }
    }
    while (!changes.empty()) {
      left.Undo(changes.back(), &replaced);
      CHECK_TRUE(Same(left, before.back()));
      changes.pop_back();
      before.pop_back();
    }
    CHECK_TRUE(replaced.empty());
  }
}

TEST(what_leads_through_two_ways_has_the_less_of_both) {
  Random random;
  for (int round = 0; round < 300; ++round) {
    const RateProfile one = RandomProfile(&random), other = RandomProfile(&random);
    const RateProfile least = Least(one, other);
    for (double at_s = 0; at_s < 2; at_s += 0.01 + 0.02 * random.Unit()) {
      CHECK_EQ(least.Rate(least.Find(at_s)),
               std::min(one.Rate(one.Find(at_s)), other.Rate(other.Find(at_s))));
    }
    for (size_t step = 1; step < least.size(); ++step) {
      CHECK_TRUE(least.Rate(step) != least.Rate(step - 1));
    }
  }
}
