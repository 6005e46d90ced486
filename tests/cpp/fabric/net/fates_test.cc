#include "fabric/net/fates.h"

#include "harness.h"

using namespace mercury::fabric;

TEST(an_update_is_settled_once_and_once_more_if_it_is_lost) {
  Fates fates;
  CHECK_TRUE(fates.all_settled());
  CHECK_EQ(fates.Add(), 1);
  CHECK_EQ(fates.Add(), 2);
  CHECK_FALSE(fates.Of(1).has_value());
  fates.Settle(2, Fate::kOvertaken);
  CHECK_FALSE(fates.all_settled());
  fates.Settle(1, Fate::kCommitted);
  CHECK_TRUE(fates.all_settled());
  CHECK_TRUE(fates.Of(1) == Fate::kCommitted);
  fates.Settle(1, Fate::kLost);
  CHECK_TRUE(fates.Of(1) == Fate::kLost);
  CHECK_TRUE(fates.Of(2) == Fate::kOvertaken);
  CHECK_EQ(fates.Figures(),
           "\"pushed\": 2, \"committed\": 1, \"too_old\": 0, \"overtaken\": 1, \"late\": 0, "
           "\"orphaned\": 0, \"lost\": 1");
}

TEST(the_last_ones_are_remembered) {
  Fates fates;
  const auto kept = static_cast<int64_t>(kFatesKept);
  for (int64_t i = 0; i <= kept; ++i) fates.Settle(fates.Add(), Fate::kCommitted);
  CHECK_FALSE(fates.Of(1).has_value());
  CHECK_TRUE(fates.Of(2) == Fate::kCommitted);
  CHECK_TRUE(fates.Of(kept + 1) == Fate::kCommitted);
  CHECK_FALSE(fates.Of(kept + 2).has_value());
}
