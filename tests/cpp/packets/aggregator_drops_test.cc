// A worker goes in the middle of a sum: what becomes of its copies, packet by packet.
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "packets/lone_server.h"
#include "packets/resumption.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

// -----------------------------------------------------------------

namespace {

AggregatorOptions Elastic(int workers) {
  AggregatorOptions o = Options(workers);
  o.elastic = true;
  return o;
}

}  // namespace

TEST(a_part_of_a_copy_stays_and_the_rest_is_the_others) {
  LoneServer server(Elastic(3));
  for (int w = 0; w < 3; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 100));
  REQUIRE_OK(server.Data(0, 0, 0, 1, Of(64, 1)));
  REQUIRE_OK(server.Data(1, 0, 0, 1, Of(100, 2)));
  server.aggregator.Drop(0, 0);
  CHECK_TRUE(server.Drain(1).empty());
  REQUIRE_OK(server.Data(2, 0, 0, 1, Of(100, 4)));
  for (const int w : {1, 2}) {
    std::string sum;
    for (const Got& got : server.Drain(w)) {
      sum += got.payload;
      CHECK_EQ(got.header.priority, 3);  // it is, in part
    }
    CHECK_TRUE(sum == Of(64, 7) + Of(36, 6));
  }
  CHECK_TRUE(server.Drain(0).empty());
  CHECK_STATUS(Code::kClosed, server.Data(0, 0, 64, 1, Of(36, 1)));
  for (const int w : {1, 2}) REQUIRE_OK(server.Data(w, 0, 0, 2, Of(100, 1)));
  const auto next = server.Drain(1);
  REQUIRE_EQ(next.size(), size_t{1});
  CHECK_TRUE(next[0].payload == Of(100, 2));
  CHECK_EQ(next[0].header.priority, 2);
}

TEST(the_loss_of_the_last_one_awaited_makes_the_sum) {
  for (const bool deterministic : {false, true}) {
    AggregatorOptions options = Elastic(3);
    options.deterministic = deterministic;
    LoneServer server(options);
    for (int w = 0; w < 3; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 100));
    for (const int w : {0, 2}) REQUIRE_OK(server.Data(w, 0, 0, 1, Of(100, 3)));
    REQUIRE_OK(server.Data(1, 0, 0, 1, Of(64, 1)));
    for (const int w : {0, 1, 2}) server.Drain(w);  // what all have of it
    server.aggregator.Drop(1, 0);
    std::string rest;
    for (const Got& got : server.Drain(0)) rest += got.payload;
    // Kept copies are whole, or are not there.
    CHECK_TRUE(rest == (deterministic ? Of(100, 6) : Of(36, 6)));
  }
}

TEST(a_copy_that_is_whole_stays) {
  LoneServer server(Elastic(3));
  for (int w = 0; w < 3; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 10));
  REQUIRE_OK(server.Data(1, 0, 0, 1, Of(10, 1)));
  server.aggregator.Drop(1, 0);
  server.aggregator.Drop(1, 0);  // twice is once
  REQUIRE_OK(server.Data(0, 0, 0, 1, Of(10, 1)));
  CHECK_TRUE(server.Drain(0).empty());
  REQUIRE_OK(server.Data(2, 0, 0, 1, Of(10, 1)));
  const auto got = server.Drain(2);
  REQUIRE_EQ(got.size(), size_t{1});
  CHECK_TRUE(got[0].payload == Of(10, 3));
  CHECK_EQ(got[0].header.priority, 3);
}

TEST(what_was_to_be_sent_to_it_is_let_go_of) {
  LoneServer server(Elastic(2));
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 1000));
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Data(w, 0, 0, 1, Of(1000, 1)));
  server.aggregator.Drop(1, 0);
  CHECK_TRUE(server.aggregator.Depths(1).empty());
  server.Drain(0);
  for (uint8_t round = 2; round < 20; ++round) {
    REQUIRE_OK(server.Data(0, 0, 0, round, Of(1000, 1)));
    CHECK_EQ(server.Drain(0).size(), size_t{1});
  }
  CHECK_TRUE(server.aggregator.pool().bytes_handed_out() <= 8192);
}

TEST(without_worker_0_there_are_no_first_values) {
  LoneServer server(Elastic(2));
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 10));
  REQUIRE_OK(server.Send(1, PacketKind::kFetch, 0));
  server.aggregator.Drop(0, 0);
  auto got = server.Drain(1);
  REQUIRE_EQ(got.size(), size_t{1});
  CHECK_TRUE(got[0].header.kind == PacketKind::kError);
  // Nor of what is declared later.
  REQUIRE_OK(server.Declare(1, 1, 8, 10));
  REQUIRE_OK(server.Send(1, PacketKind::kFetch, 1));
  got = server.Drain(1);
  REQUIRE_EQ(got.size(), size_t{1});
  CHECK_TRUE(got[0].header.kind == PacketKind::kError &&
             got[0].payload.find("worker 0 has gone") != std::string::npos);
}

TEST(what_is_asked_does_not_name_it) {
  LoneServer server(Elastic(3));
  for (int w = 0; w < 3; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 10));
  REQUIRE_OK(server.Data(0, 0, 0, 1, Of(10, 1)));
  server.aggregator.Drop(1, 0);
  REQUIRE_OK(server.Send(0, PacketKind::kAsk, 0));
  const auto got = server.Drain(0);
  REQUIRE_EQ(got.size(), size_t{1});
  CHECK_TRUE(got[0].payload == std::string("\0\0\1", 3));
}

// Lanes add what arrives while others have their turns, and one worker goes in the middle of it.
TEST(lanes_add_while_a_worker_goes) {
  constexpr int kWorkers = 4, kLanes = 2, kGone = 3;
  constexpr uint64_t kSlot = 16 << 10, kSlots = 8;
  Random random;
  for (int trial = 0; trial < Trials(400); ++trial) {
    AggregatorOptions options = Elastic(kWorkers);
    options.lanes = kLanes;
    options.packet_bytes = kSlot;
    options.deterministic = random.OneIn(3);
    options.wake = [](int /*lane*/) {};
    options.allocate = nullptr;
    Aggregator aggregator(options);
    Declaration declared;
    declared.key = 7;
    declared.elements = kSlot * kSlots;
    declared.dtype = DType::kUint8;
    declared.codec = PlainCodec(DType::kUint8).number;
    const auto send = [&](int link, Header header, const std::string& payload) {
      header.length = static_cast<uint32_t>(payload.size());
      char* target = nullptr;
      Status status = aggregator.OnHeader(link, header, 0, &target);
      if (!status.ok()) return status;
      if (target != nullptr) std::memcpy(target, payload.data(), payload.size());
      return aggregator.OnPacket(link, header, 0);
    };
    for (int link = 0; link < kWorkers * kLanes; ++link) {
      Header header;
      header.kind = PacketKind::kDeclare;
      REQUIRE_OK(send(link, header, Encode(declared)));
    }
    std::vector<std::thread> threads;
    std::atomic<int> parts{0};
    const int drop_after = static_cast<int>(random.Below(kWorkers * kSlots * 4));
    for (int link = 0; link < kWorkers * kLanes; ++link) {
      threads.emplace_back([&, link, seed = random()] {
        Random own;
        own.seed(seed);
        const auto lane = static_cast<uint64_t>(link % kLanes);
        for (uint64_t slot = lane; slot < kSlots; slot += kLanes) {
          for (uint64_t at = 0; at < kSlot;) {
            const uint64_t left = (kSlot - at) / 64;
            const uint64_t count = own.OneIn(4) ? left * 64 : (own.Below(left) + 1) * 64;
            Header header;
            header.offset = slot * kSlot + at;
            header.round = 1;
            const Status status =
                send(link, header, Of(count, static_cast<char>(1 << link / kLanes)));
            ++parts;
            if (status.code() == Code::kClosed && link / kLanes == kGone) return;
            CHECK_OK(status);
            at += count;
          }
        }
      });
    }
    threads.emplace_back([&] {
      for (int look = 0; parts < drop_after && look < 20000; ++look) std::this_thread::yield();
      aggregator.Drop(kGone, 0);
    });
    for (std::thread& thread : threads) thread.join();
    std::vector<std::string> sums(kGone, Of(kSlot * kSlots, 0));
    std::vector<int> workers(kSlots, 0);
    for (int link = 0; link < kGone * kLanes; ++link) {
      OutPacket out;
      while (aggregator.Next(link, 0, &out)) {
        const Header& header = out.header;
        std::string& sum = sums[static_cast<size_t>(link / kLanes)];
        CHECK_TRUE(sum.substr(header.offset, header.length) == Of(header.length, 0));  // once
        std::memcpy(&sum[header.offset], out.payload, header.length);
        workers[header.offset / kSlot] = header.priority;
      }
    }
    for (uint64_t slot = 0; slot < kSlots; ++slot) {
      const bool some = sums[0].substr(slot * kSlot, kSlot).find('\x0f') != std::string::npos;
      CHECK_EQ(workers[slot], kGone + (some ? 1 : 0));
    }
    for (const std::string& sum : sums) {
      CHECK_TRUE(sum == sums[0]);
      CHECK_TRUE(sum.find_first_not_of("\x07\x0f") == std::string::npos);
    }
  }
}

// Of the round that is over where the lost server's slot is taken on: another worker is asked.
TEST(who_gives_what_others_fetch_may_go_too) {
  AggregatorOptions options = Elastic(3);
  options.resumes = true;
  LoneServer server(options);
  const auto stand = [&](int worker) {
    Header h;
    h.kind = PacketKind::kStands;
    h.round = 9;
    h.priority = Standing::kHasSum | Standing::kGaveFirst;
    return server.Send(worker, h);
  };
  for (int w = 0; w < 3; ++w) {
    REQUIRE_OK(server.Declare(w, 0, 7, 100));
    REQUIRE_OK(stand(w));
  }
  for (int w = 0; w < 3; ++w) {
    const auto got = server.Drain(w);
    REQUIRE_EQ(got.size(), size_t{1});
    CHECK_TRUE(got[0].header.kind == PacketKind::kResumed);
  }
  REQUIRE_OK(server.Send(2, PacketKind::kFetch, 0));
  for (const int giver : {0, 1}) {
    const auto got = server.Drain(giver);
    REQUIRE_EQ(got.size(), size_t{1});
    CHECK_TRUE(got[0].header.kind == PacketKind::kWanted);
    CHECK_EQ(int{got[0].header.round}, 9);
    if (giver == 0) server.aggregator.Drop(0, 0);
  }
  Header given;
  given.kind = PacketKind::kGiven;
  given.round = 9;
  given.priority = 3;
  REQUIRE_OK(server.Send(1, given, Of(100, 5)));
  const auto fetched = server.Drain(2);
  REQUIRE_EQ(fetched.size(), size_t{1});
  CHECK_TRUE(fetched[0].payload == Of(100, 5));
}

TEST(who_goes_in_the_middle_of_its_rows_is_not_in_their_sum) {
  LoneServer server(Elastic(2));
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 1000, DType::kUint8, 10));
  Header h;
  server.Begin(0, PacketKind::kRows, 8, &h);
  server.aggregator.Drop(0, 0);
  REQUIRE_OK(server.Send(1, h, std::string(8, '\0')));  // a set of no rows
  const auto got = server.Drain(1);
  REQUIRE_EQ(got.size(), size_t{1});
  CHECK_TRUE(got[0].header.kind == PacketKind::kRowSum);
}

// Another lane may receive into it still.
TEST(what_is_received_into_stays_when_another_takes_the_place) {
  LoneServer server(Elastic(2));
  REQUIRE_OK(server.Declare(0, 0, 7, 1000));
  Header h;
  char* const target = server.Begin(0, PacketKind::kData, 64, &h);
  server.aggregator.Drop(0, 0);
  server.aggregator.Expect(0);
  std::memset(target, 'x', h.length);
  CHECK_TRUE(server.aggregator.pool().bytes_handed_out() >= 64);
}

// Nobody waits for what had come of it.
TEST(a_tensor_that_has_failed_keeps_nobody_out) {
  LoneServer server(Elastic(2));
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 100));
  REQUIRE_OK(server.Data(1, 0, 0, 1, Of(64, 1)));
  REQUIRE_OK(server.Declare(0, 1, 7, 200));  // another shape: the tensor fails
  server.aggregator.Drop(1, 0);
  server.aggregator.Expect(1);
  CHECK_OK(server.aggregator.LetIn(1, 0));
  REQUIRE_OK(server.Declare(1, 0, 7, 100));
  CHECK_STATUS(Code::kInvalidArgument, server.ErrorTo(1));
}
