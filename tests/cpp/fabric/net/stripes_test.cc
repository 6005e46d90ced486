#include "fabric/net/stripes.h"

#include <set>
#include <vector>

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

TEST(each_element_is_of_one_stripe_and_all_are_where_they_are_said_to_be) {
  Random random;
  for (int round = 0; round < 300; ++round) {
    const size_t count = 1 + random.Below(16);
    const size_t most = random.OneIn(5) ? 3 * kStripeBlockMost * count : 100;
    const size_t whole = count + random.Below(most);
    std::set<size_t> all;
    for (size_t index = 0; index < count; ++index) {
      const Stripe stripe{index, count, whole};
      CHECK_TRUE(stripe.elements() > 0);
      size_t before = whole;
      for (size_t at = 0; at < stripe.elements(); ++at) {
        const size_t in = stripe.In(at);
        CHECK_TRUE(in < whole && all.insert(in).second);
        CHECK_EQ(stripe.Of(in), at);
        CHECK_EQ(stripe.Of(in + 1), at + 1);
        CHECK_TRUE(at == 0 || in > before);
        if (at > 0 && stripe.Run(at - 1) > 1) CHECK_EQ(in, before + 1);
        before = in;
      }
      size_t covered = 0;
      stripe.EachRun([&](size_t at, size_t in, size_t run) {
        CHECK_EQ(at, covered);
        CHECK_EQ(in, stripe.In(at));
        CHECK_EQ(in + run - 1, stripe.In(at + run - 1));
        covered += run;
      });
      CHECK_EQ(covered, stripe.elements());
    }
    CHECK_EQ(all.size(), whole);
  }
}

TEST(what_is_there_of_all_stripes_is_a_beginning) {
  Random random;
  for (int round = 0; round < 300; ++round) {
    const size_t count = 1 + random.Below(5);
    const size_t whole = count + random.Below(60);
    const size_t first = random.Below(whole + 1);
    size_t least = whole;
    for (size_t index = 0; index < count; ++index) {
      const Stripe stripe{index, count, whole};
      const size_t through = stripe.Through(stripe.Of(first));
      CHECK_TRUE(through >= first);
      CHECK_EQ(stripe.Of(through), stripe.Of(first));  // it has no more of it than that
      least = std::min(least, through);
    }
    CHECK_EQ(least, first);
  }
}

TEST(one_stripe_is_the_whole) {
  const Stripe stripe{0, 1, 7};
  CHECK_EQ(stripe.elements(), 7);
  CHECK_EQ(stripe.In(5), 5);
  CHECK_EQ(stripe.Through(5), 5);
}
