#include "fabric/live/fed_rates.h"

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

TEST(a_line_holds_until_the_next_or_until_it_is_old) {
  FedRates feed({"h0", "h1"});
  CHECK_FALSE(feed.Of(1, 0).has_value());
  REQUIRE_OK(feed.Feed(R"({"host": "h1", "in": 2.5e9, "out": 1e9, "more": []})", 5));
  CHECK_FALSE(feed.Of(0, 5).has_value());
  REQUIRE_TRUE(feed.Of(1, 5 + kFeedHolds_s).has_value());
  CHECK_EQ(feed.Of(1, 5)->in_bit_per_s, 2.5e9);
  CHECK_EQ(feed.Of(1, 5)->out_bit_per_s, 1e9);
  CHECK_FALSE(feed.Of(1, 5.1 + kFeedHolds_s).has_value());
  REQUIRE_OK(feed.Feed(R"({"host": "h1", "in": 0, "out": 7})", 16));
  CHECK_EQ(feed.Of(1, 16)->in_bit_per_s, 0);
}

TEST(what_makes_no_sense_is_refused_with_its_field) {
  FedRates feed({"h0"});
  const auto says = [&feed](const std::string& line) { return feed.Feed(line, 0).text(); };
  CHECK_EQ(says("{"), "it is not JSON: line 1, column 2: a field's name in quotes is expected");
  CHECK_EQ(says("[]"), "host: it must be the name of a host");
  CHECK_EQ(says(R"({"host": 1})"), "host: it must be the name of a host");
  CHECK_EQ(says(R"({"host": "h\n1"})"), R"(host: there is no host "h\u000a1" in this job)");
  CHECK_EQ(says(R"({"host": "h0"})"), "in: it is missing");
  CHECK_EQ(says(R"({"host": "h0", "in": 1, "out": -1})"),
           "out: it must be a number of bit/s, 0 or more");
  CHECK_EQ(says(std::string(5000, ' ')), "a line has more than 4096 bytes");
  CHECK_FALSE(feed.Of(0, 0).has_value());
}
