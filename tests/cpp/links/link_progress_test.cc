#include "links/link_progress.h"

#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <utility>

#include "harness.h"

using namespace mercury;
namespace {

using testing::Random;

constexpr int64_t kSecond = 1000000;
constexpr int64_t kTimeout = 10 * kSecond;
constexpr uint64_t kReportBytes = 28;

// One direction: bytes in order, some of them a report; each has its time of arrival.
struct Parcel {
  int64_t at_us;
  uint64_t bytes;
  bool ends_report;
  bool of_report;
  uint64_t count;
};
struct Way {
  double bytes_per_us = 100;
  int64_t delay_us = 100;
  bool swallows = false;
  int64_t free_at_us = 0;
  std::deque<Parcel> parcels;

  // As segments, each of which takes its time.
  void Take(uint64_t bytes, bool report, uint64_t count, int64_t now_us) {
    if (swallows) return;
    while (bytes != 0) {
      const uint64_t part = std::min<uint64_t>(bytes, 1448);
      bytes -= part;
      free_at_us = std::max(free_at_us, now_us) +
                   static_cast<int64_t>(static_cast<double>(part) / bytes_per_us);
      parcels.push_back({free_at_us + delay_us, part, report && bytes == 0, report, count});
    }
  }
};

// Two ends that tick as a lane does, and the ways between them.
struct Pair {
  std::array<LinkProgress, 2> ends{LinkProgress(kTimeout), LinkProgress(kTimeout)};
  std::array<Way, 2> ways;  // from end 0, from end 1
  std::array<Status, 2> status;
  std::array<bool, 2> stopped{};  // a process that does nothing
  std::array<uint64_t, 2> in_packet{};
  std::array<int, 2> reports{}, ticks{};
  int64_t now_us = kSecond;

  void Send(size_t end, uint64_t bytes) {
    ends[end].Sent(bytes, now_us);
    ways[end].Take(bytes, false, 0, now_us);
  }
  void Step(size_t e) {
    if (stopped[e] || !status[e].ok()) return;
    auto& parcels = ways[1 - e].parcels;
    while (!parcels.empty() && parcels.front().at_us <= now_us) {
      const Parcel parcel = parcels.front();
      parcels.pop_front();
      ends[e].Received(parcel.bytes, !parcel.of_report, now_us);
      if (parcel.ends_report) CHECK_OK(ends[e].Heard(parcel.count));
    }
    if (now_us >= ends[e].tick_at_us()) {
      ++ticks[e];
      status[e] = ends[e].Tick(now_us, in_packet[e] != 0);
    }
    // A report waits its turn behind what is being sent.
    if (status[e].ok() && ends[e].report_due() && ways[e].free_at_us <= now_us) {
      const uint64_t count = ends[e].TakeReport(kReportBytes);
      ends[e].Sent(kReportBytes, now_us);
      ways[e].Take(kReportBytes, true, count, now_us);
      ++reports[e];
    }
  }
  void Run(int64_t us) {
    const int64_t until = now_us + us;
    while (now_us < until && status[0].ok() && status[1].ok()) {
      now_us += 50000;
      Step(0);
      Step(1);
    }
  }
  bool idle() const { return ends[0].tick_at_us() == kNever && ends[1].tick_at_us() == kNever; }
};

TEST(an_idle_link_stays_idle) {
  Pair pair;
  pair.Run(100 * kSecond);
  CHECK_EQ(pair.reports[0] + pair.reports[1] + pair.ticks[0] + pair.ticks[1], 0);
  pair.Send(0, 5000);
  pair.Run(100 * kSecond);
  CHECK_OK(pair.status[0]);
  CHECK_TRUE(pair.idle());
  // One report, which is not reported itself.
  CHECK_EQ(pair.reports[0], 0);
  CHECK_EQ(pair.reports[1], 1);
  CHECK_TRUE(pair.ticks[0] + pair.ticks[1] <= 4);
}

TEST(whichever_way_bytes_vanish_the_link_ends_in_time) {
  for (const auto& [first, second] : {std::pair{true, false}, {false, true}, {true, true}}) {
    for (const bool talk_both : {false, true}) {
      Pair pair;
      for (int i = 0; i < 20; ++i) {
        pair.Send(0, 3000);
        if (talk_both) pair.Send(1, 3000);
        pair.Run(300000);
      }
      REQUIRE_OK(pair.status[0]);
      pair.ways[0].swallows = first;
      pair.ways[1].swallows = second;
      const int64_t since_us = pair.now_us;
      for (int i = 0; i < 100; ++i) {
        pair.Send(0, 3000);
        if (talk_both) pair.Send(1, 3000);
        pair.Run(300000);
      }
      const Status& status = pair.status[0].ok() ? pair.status[1] : pair.status[0];
      CHECK_STATUS(Code::kPeerLost, status);
      CHECK_TRUE(status.text().find("bytes vanish on the way") != std::string::npos);
      CHECK_TRUE(pair.now_us - since_us >= kTimeout - kSecond);
      CHECK_TRUE(pair.now_us - since_us <= kTimeout + 3 * kSecond);
    }
  }
}

TEST(the_last_bytes_before_a_silence_are_missed_too) {
  Pair pair;
  pair.Send(0, 3000);
  pair.Run(5 * kSecond);
  pair.ways[0].swallows = true;
  pair.Send(0, 1);
  pair.Run(60 * kSecond);
  CHECK_STATUS(Code::kPeerLost, pair.status[0]);
  CHECK_OK(pair.status[1]);
}

// 10 kbit/s, both ways full: each report waits for a packet of 64 KiB.
TEST(a_slow_link_is_not_a_silent_one) {
  Pair pair;
  for (Way& way : pair.ways) {
    way.bytes_per_us = 0.00125;
    way.delay_us = 2 * kSecond;
  }
  for (int i = 0; i < 10; ++i) {
    pair.Send(0, 65536);
    pair.Send(1, 65536);
    pair.Run(40 * kSecond);
  }
  pair.Run(3000 * kSecond);
  CHECK_OK(pair.status[0]);
  CHECK_OK(pair.status[1]);
  CHECK_TRUE(pair.idle());
}

TEST(any_link_whose_bytes_move_lasts) {
  Random random;
  for (int trial = 0; trial < 100; ++trial) {
    Pair pair;
    for (Way& way : pair.ways) {
      way.bytes_per_us = random.OneIn(2) ? 0.002 : static_cast<double>(random.Between(1, 1000));
      way.delay_us = random.Between(0, 3 * kSecond);
    }
    for (int i = 0; i < 30; ++i) {
      if (!random.OneIn(3))
        pair.Send(random.Below(2), static_cast<uint64_t>(random.Between(1, 20000)));
      pair.Run(random.Between(0, random.OneIn(4) ? 20 * kSecond : kSecond));
    }
    pair.Run(1000 * kSecond);
    CHECK_OK(pair.status[0]);
    CHECK_OK(pair.status[1]);
    CHECK_TRUE(pair.idle());
  }
}

TEST(who_was_stopped_itself_does_not_blame_the_other) {
  Pair pair;
  for (int i = 0; i < 10; ++i) {
    pair.Send(0, 3000);
    pair.Send(1, 3000);
    pair.stopped[0] = true;
    pair.Run(8 * kSecond);  // for longer, the other one is right to give up
    pair.stopped[0] = false;
    pair.Run(3 * kSecond);
  }
  CHECK_OK(pair.status[0]);
  CHECK_OK(pair.status[1]);
  // And if it was long: what has come meanwhile is read first.
  pair.Send(0, 3000);
  pair.Run(100000);
  pair.now_us += 1000 * kSecond;
  pair.Run(3 * kSecond);
  CHECK_OK(pair.status[0]);
  CHECK_OK(pair.status[1]);
}

TEST(a_packet_that_does_not_go_on_ends_the_link) {
  Pair pair;
  pair.Send(0, 3000);
  pair.in_packet[1] = 1;  // its length was changed on the way: more is waited for than was sent
  pair.Run(60 * kSecond);
  CHECK_OK(pair.status[0]);
  CHECK_STATUS(Code::kPeerLost, pair.status[1]);
  CHECK_TRUE(pair.status[1].text().find("a packet that had begun") != std::string::npos);
}

TEST(reports_that_cannot_be_are_corrupt) {
  LinkProgress progress(kTimeout);
  progress.Sent(1000, 1);
  CHECK_OK(progress.Heard(0));
  CHECK_OK(progress.Heard(400));
  CHECK_OK(progress.Heard(400));
  CHECK_OK(progress.Heard(1000));
  CHECK_STATUS(Code::kCorrupt, progress.Heard(999));
  CHECK_STATUS(Code::kCorrupt, progress.Heard(1001));
}

}  // namespace
