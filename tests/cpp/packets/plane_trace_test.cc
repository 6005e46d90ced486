// What the data plane tells its trace, over real links: as many events as it must, from all lanes,
// with the same bytes at both ends.
#include <array>
#include <map>

#include "packets/plane.h"

using namespace mercury;
namespace {

using testing::Plane;
using testing::PlaneOptions;

// Events of one key and stage that one side saw.
struct Told {
  int events = 0;
  int64_t bytes = 0;
};

TEST(both_ends_tell_the_same) {
  constexpr int kRounds = 3, kWorkers = 2;
  const std::vector<size_t> sizes = {1, 0, 1000, 70001};
  TraceRing ring(1 << 14);
  MercuryOptions options = PlaneOptions(kWorkers, 1);
  options.lanes = 3;
  options.checksum = true;
  options.trace = &ring;
  Plane plane(options);
  plane.StartWorkers();
  REQUIRE_TRUE(plane.WaitReady());
  for (int round = 0; round < kRounds; ++round) REQUIRE_TRUE(plane.Round(sizes));
  plane.Stop();
  CHECK_EQ(ring.lost(), 0);

  // By key, stage, and whether the other end is a worker: then a server has told it.
  std::map<std::array<uint32_t, 3>, Told> told;
  TraceEvent event;
  while (ring.Take(&event)) {
    const bool by_server = event.node % 3 == static_cast<uint32_t>(TraceRole::kWorker);
    Told& seen = told[{event.key, event.operation, by_server ? 1U : 0U}];
    ++seen.events;
    seen.bytes += event.length;
    CHECK_TRUE(event.time_us > 0);
    CHECK_EQ(event.parts, 1);
  }
  for (uint32_t key = 0; key < sizes.size(); ++key) {
    const int each = kRounds * kWorkers;
    const auto payload = static_cast<int64_t>(sizes[key] * sizeof(float)) * kRounds * kWorkers;
    for (const uint32_t side : {0U, 1U}) {
      for (const uint32_t stage : {0U, 1U, 2U, 3U}) {
        const Told& seen = told[{key, stage, side}];
        CHECK_EQ(seen.events, each);
        if (stage % 2 == 0) {
          CHECK_EQ(seen.bytes, 0);
        } else {
          CHECK_TRUE(seen.bytes >= payload + each * static_cast<int64_t>(kHeaderBytes + 4));
        }
      }
    }
    CHECK_EQ((told[{key, kTraceFirstPacket, 0}].events), each);
    CHECK_EQ((told[{key, kTraceFirstPacket, 1}].events), 0);
    CHECK_EQ((told[{key, kTraceConfirm, 0}].bytes), (told[{key, kTraceConfirm, 1}].bytes));
    CHECK_EQ((told[{key, kTraceAnswer, 0}].bytes), (told[{key, kTraceAnswer, 1}].bytes));
  }
}

}  // namespace
