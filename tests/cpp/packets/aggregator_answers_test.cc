// What an aggregator answers to those who only push, and to those who want the sum.
#include <string>
#include <vector>

#include "packets/lone_server.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

// Whatever comes back of a slot before the rest of it has come.
TEST(who_only_pushes_is_sent_no_part_of_a_sum) {
  for (const int lanes : {1, 2}) {
    AggregatorOptions options = Options(2);
    options.lanes = lanes;
    options.wake = [](int /*lane*/) {};
    LoneServer server(options);
    constexpr int kQuiet = 0;  // their first links
    const int wants = lanes;
    for (const int link : {kQuiet, wants}) REQUIRE_OK(server.Declare(link, 0, 7, 1024));
    const auto push = [&server](uint64_t offset, uint8_t round) {
      Header h;
      h.kind = PacketKind::kPush;
      h.offset = offset;
      h.round = round;
      return server.Send(kQuiet, h, Of(512, 1));
    };
    for (uint8_t round = 1; round < 4; ++round) {
      std::string sum;
      for (const uint64_t at : {0, 512}) {
        CHECK_OK(push(at, round));
        CHECK_OK(server.Data(wants, 0, at, round, Of(512, 2)));
        for (const Got& got : server.Drain(wants)) sum += got.payload;
        if (lanes == 1) CHECK_EQ(sum.size(), at + 512);
        if (at == 0) CHECK_TRUE(server.Drain(kQuiet).empty());
      }
      CHECK_EQ(sum, Of(1024, 3));
      const std::vector<Got> told = server.Drain(kQuiet);
      REQUIRE_EQ(told.size(), 1U);
      CHECK_TRUE(told[0].header.kind == PacketKind::kTaken);
    }
    // Later it wants one, too.
    for (const int link : {kQuiet, wants}) CHECK_OK(server.Data(link, 0, 0, 4, Of(1024, 5)));
    CHECK_EQ(server.Drain(kQuiet).at(0).payload, Of(1024, 10));
  }
}
