// What an aggregator refuses as sent twice, and the checks with which its sums leave.
#include <string>

#include "base/crc32c.h"
#include "harness.h"
#include "packets/lone_server.h"

using namespace mercury;
namespace {

using testing::LoneServer;
using testing::Of;
using testing::Options;

// Whatever has become of the round meanwhile.
TEST(a_piece_that_was_sent_twice_is_called_so) {
  for (const bool deterministic : {false, true}) {
    AggregatorOptions options = Options(2);
    options.deterministic = deterministic;
    LoneServer s(options);
    for (const int worker : {0, 1}) REQUIRE_OK(s.Declare(worker, 0, 7, 1500));
    const auto is_twice = [&](int worker, uint64_t offset, uint8_t round, size_t bytes) {
      const Status status = s.Data(worker, 0, offset, round, Of(bytes, 1));
      CHECK_STATUS(Code::kCorrupt, status);
      CHECK_EQ(status.text(), "tensor 't7': it sent the piece at " + std::to_string(offset) +
                                  " twice in round " + std::to_string(round) + " (modulo 256)");
    };
    CHECK_OK(s.Data(1, 0, 768, 1, Of(64, 1)));
    is_twice(1, 768, 1, 64);
    CHECK_OK(s.Data(1, 0, 832, 1, Of(668, 1)));
    is_twice(1, 832, 1, 668);
    CHECK_OK(s.Data(0, 0, 768, 1, Of(732, 2)));  // summed, not sent yet
    is_twice(1, 768, 1, 732);
    s.Drain(0);
    s.Drain(1);
    is_twice(1, 768, 1, 732);
    CHECK_OK(s.Data(1, 0, 768, 2, Of(64, 1)));
    is_twice(1, 768, 2, 64);
    // The round before, again; and what was never sent at all is something else.
    is_twice(1, 768, 1, 64);
    const Status gap = s.Data(1, 0, 0, 0, Of(64, 1));
    CHECK_STATUS(Code::kCorrupt, gap);
    CHECK_TRUE(gap.text().find("twice") == std::string::npos);
  }
}

TEST(sums_leave_with_their_check) {
  AggregatorOptions options = Options(3);
  options.packet_bytes = 768;
  LoneServer s(options);
  s.aggregator.SetPacketBytes(1, 256);
  for (int worker = 0; worker < 3; ++worker) REQUIRE_OK(s.Declare(worker, 0, 7, 768));
  for (uint8_t round = 1; round < 4; ++round) {
    for (int worker = 0; worker < 3; ++worker) {
      REQUIRE_OK(s.Data(worker, 0, 0, round, Of(768, static_cast<char>(worker + round))));
    }
    if (round == 2) CHECK_OK(s.Send(2, PacketKind::kFetch, 0));
    for (int worker = 0; worker < 3; ++worker) {
      OutPacket out;
      out.checked = true;
      size_t sums = 0;
      for (; s.aggregator.Next(worker, 0, &out); ++sums) {
        REQUIRE_TRUE(out.checks != nullptr);
        CHECK_EQ(out.checks->Of(out.payload, out.at, out.header.length),
                 Crc32c(0, out.payload, out.header.length));
      }
      CHECK_EQ(sums, worker == 1 ? 3U : worker == 2 && round == 2 ? 2U : 1U);
    }
  }
}

}  // namespace
