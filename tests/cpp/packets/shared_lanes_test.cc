// Streams and aggregators whose links are in several lanes: who carries what, who is called, and
// what is refused.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "packets/lone_server.h"
#include "packets/lone_worker.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

// Whose lanes note what they are woken for.
WorkerStreamsOptions WorkerLanes(std::vector<int>* woken) {
  WorkerStreamsOptions options = WorkerOptions();
  options.lanes = 2;
  options.wake = [woken](int lane) { woken->push_back(lane); };
  return options;
}

constexpr uint64_t kSlot = 64 << 10;

// Of slots that are sent in parts, once sums come slowly.
WorkerStreamsOptions LanesOfSlots(std::vector<int>* woken) {
  WorkerStreamsOptions options = WorkerLanes(woken);
  options.policy.packet_bytes = kSlot;
  options.policy.credit.fixed_bytes = 0;
  options.policy.credit.bytes_min = 2 * kSlot;
  return options;
}

// One worker and two lanes, so that links 0 and 1 are the worker's.
AggregatorOptions ServerLanes(std::vector<int>* woken) {
  AggregatorOptions options = Options(1);
  options.lanes = 2;
  options.wake = [woken](int lane) { woken->push_back(lane); };
  return options;
}

}  // namespace

TEST(what_has_failed_is_over_when_every_lane_has_let_go_of_it) {
  std::vector<int> woken;
  LoneWorker worker(WorkerLanes(&woken));
  const auto t = worker.Tensor(1, 8000);
  worker.Submit(t.get());
  std::vector<OutPacket> first = worker.Take(2, 0), second = worker.Take(2, 1);
  CHECK_OK(worker.Text(PacketKind::kError, 0, 0, Encode(Status::Exhausted("no memory"))));
  CHECK_EQ(worker.streams.under_way(), 0U);
  first.clear();
  CHECK_TRUE(t->outcomes.empty());
  second.clear();
  REQUIRE_EQ(t->outcomes.size(), 1U);
  CHECK_STATUS(Code::kExhausted, t->outcomes[0]);
}

TEST(lanes_share_a_tensor_as_they_ask) {
  std::vector<int> woken;
  LoneWorker worker(WorkerLanes(&woken));
  const auto t = worker.Tensor(1, 4096);  // of four slots
  worker.Submit(t.get());
  // Each declares the tensor first, by the same number; one takes what the other leaves.
  const std::vector<OutPacket> first = worker.Take(2, 0), second = worker.Take(10, 1);
  REQUIRE_EQ(second.size(), 4U);
  CHECK_TRUE(first[0].header.kind == PacketKind::kDeclare &&
             second[0].header.kind == PacketKind::kDeclare);
  CHECK_EQ(first[0].header.tensor, second[0].header.tensor);
  CHECK_EQ(first[1].header.offset, 0U);
  for (size_t i = 1; i < 4; ++i) CHECK_EQ(second[i].header.offset, 1024 * i);
  CHECK_TRUE(worker.Take(10, 0).empty());
  // Sums come back over any link.
  for (uint64_t slot = 0; slot < 4; ++slot) {
    const int link = slot % 3 == 0 ? 1 : 0;
    CHECK_OK(worker.Sum(0, 1024 * slot, 1, std::string(1024, 'z'), link));
  }
  REQUIRE_EQ(t->outcomes.size(), 1U);
  CHECK_OK(t->outcomes[0]);
  CHECK_EQ(t->dst, std::string(4096, 'z'));
}

TEST(a_slot_that_has_begun_stays_with_its_lane) {
  std::vector<int> woken;
  LoneWorker worker(LanesOfSlots(&woken));
  const auto t = worker.Tensor(1, 2 * kSlot);
  // Sums come slowly: then packets are a part of their slot.
  uint8_t round = 1;
  for (; round < 10; ++round) {
    worker.Submit(t.get());
    for (const uint64_t slot : {uint64_t{0}, kSlot}) {
      worker.Drain();
      worker.now_us += 500000;
      CHECK_OK(worker.Sum(0, slot, round, std::string(kSlot, 'z')));
    }
  }
  worker.Submit(t.get());
  const std::vector<OutPacket> first = worker.Take(1, 0), second = worker.Take(2, 1);
  REQUIRE_TRUE(first.size() == 1 && second.size() == 2);
  const uint32_t part = first[0].header.length;
  CHECK_TRUE(part < kSlot);
  CHECK_EQ(first[0].header.offset, 0U);
  CHECK_EQ(second[1].header.offset, kSlot);
  CHECK_EQ(worker.Take(1, 0).at(0).header.offset, part);
  // The other's rest is no business of the lane that has nothing left.
  CHECK_TRUE(worker.Take(100, 0).size() > 1);
  CHECK_TRUE(worker.Take(1, 0).empty());
  CHECK_TRUE(!worker.Take(1, 1).empty());
}

TEST(a_lane_goes_on_with_less_urgent_tensors_while_another_has_the_last_slot) {
  std::vector<int> woken;
  LoneWorker worker(LanesOfSlots(&woken));
  const auto urgent = worker.Tensor(1, kSlot), other = worker.Tensor(2, 1000);
  // Sums come slowly: then packets are a part of their slot.
  uint8_t round = 1;
  for (; round < 20; ++round) {
    worker.Submit(urgent.get(), 1);
    worker.Drain();
    worker.now_us += 100000;
    CHECK_OK(worker.Sum(0, 0, round, std::string(kSlot, 'z')));
  }
  worker.Submit(urgent.get(), 1);
  worker.Submit(other.get());
  const std::vector<OutPacket> first = worker.Take(1, 0), second = worker.Take(10, 1);
  REQUIRE_TRUE(first.size() == 1 && second.size() == 2);
  CHECK_TRUE(first[0].header.length < kSlot);
  CHECK_EQ(second[1].header.length, 1000U);  // what it has to declare goes before it
  uint64_t at = first[0].header.length;
  for (const OutPacket& rest : worker.Take(100, 0)) {
    CHECK_EQ(rest.header.offset, at);
    at += rest.header.length;
  }
  CHECK_EQ(at, kSlot);
  CHECK_OK(worker.Sum(1, 0, 1, std::string(1000, 'z'), 1));
  CHECK_OK(worker.Sum(0, 0, round, std::string(kSlot, 'z')));
  CHECK_EQ(worker.streams.under_way(), 0U);
}

// A sum that comes to one lane makes room for what is the other's.
TEST(the_lane_that_has_begun_a_slot_is_called_for_its_rest) {
  std::vector<int> woken;
  WorkerStreamsOptions options = LanesOfSlots(&woken);
  options.policy.credit.bytes_min = 17000;  // four parts of 4096 bytes go beside 2000
  LoneWorker worker(options);
  const auto large = worker.Tensor(1, kSlot), small = worker.Tensor(2, 2000);
  worker.Submit(large.get());
  worker.Drain();
  worker.now_us += 100000;
  CHECK_OK(worker.Sum(0, 0, 1, std::string(kSlot, 'z')));
  worker.Submit(small.get());
  CHECK_EQ(worker.Drain(1).size(), 2U);
  worker.Submit(large.get());
  const std::vector<OutPacket> parts = worker.Drain(0);
  REQUIRE_EQ(parts.size(), 4U);
  const uint64_t sent = parts[3].header.offset + parts[3].header.length;
  CHECK_TRUE(sent < kSlot);
  CHECK_TRUE(woken.empty());
  CHECK_OK(worker.Sum(1, 0, 1, std::string(2000, 'z'), 1));
  CHECK_TRUE(worker.Take(1, 1).empty());
  CHECK_EQ(woken, std::vector<int>{0});
  CHECK_EQ(worker.Take(1, 0).at(0).header.offset, sent);
}

TEST(a_lane_that_rests_is_called_when_the_other_is_full) {
  std::vector<int> woken;
  LoneWorker worker(WorkerLanes(&woken));
  CHECK_TRUE(worker.Take(1, 0).empty() && worker.Take(1, 1).empty());
  const auto small = worker.Tensor(1, 100), large = worker.Tensor(2, 4096);
  worker.Submit(small.get());
  CHECK_EQ(worker.Take(2, 0).size(), 2U);
  worker.streams.OnFull(0, 0);  // and nothing is left
  CHECK_TRUE(woken.empty());
  CHECK_TRUE(worker.Take(1, 0).empty());
  worker.Submit(large.get());
  worker.Take(2, 0);
  CHECK_TRUE(woken.empty());    // it asks anyway
  worker.streams.OnFull(0, 0);  // and leaves three slots
  CHECK_EQ(woken, std::vector<int>{1});
  CHECK_EQ(worker.Take(10, 1).size(), 4U);
  woken.clear();
  const auto more = worker.Tensor(3, 100);
  worker.Submit(more.get());
  CHECK_EQ(woken, std::vector<int>{1});
}

TEST(the_same_of_a_sum_on_two_links_at_once_is_refused) {
  std::vector<int> woken;
  LoneWorker worker(WorkerLanes(&woken));
  const auto t = worker.Tensor(1, 2048);
  worker.Submit(t.get());
  worker.Take(10, 0);
  Header sum;
  sum.kind = PacketKind::kSum;
  sum.round = 1;
  sum.length = 1024;
  char* target = nullptr;
  CHECK_OK(worker.streams.OnHeader(0, sum, worker.now_us, &target));
  CHECK_OK(worker.streams.OnHeader(1, sum, worker.now_us, &target));
  CHECK_OK(worker.streams.OnPacket(0, sum, worker.now_us));
  CHECK_STATUS(Code::kCorrupt, worker.streams.OnPacket(1, sum, worker.now_us));
}

// The second would make room anew, while the first is still received.
TEST(the_same_of_a_set_of_rows_on_two_links_at_once_is_refused) {
  std::vector<int> woken;
  LoneWorker worker(WorkerLanes(&woken));
  const auto t = worker.Tensor(1, 64);
  const auto op = worker.Row(t.get(), 3);
  const auto slot =
      static_cast<uint64_t>(std::find_if(op->sets.begin(), op->sets.end(),
                                         [](const Buffer& set) { return set.bytes > 8; }) -
                            op->sets.begin());
  Header sum;
  sum.kind = PacketKind::kRowSum;
  sum.round = 1;
  sum.offset = OffsetOf({slot, 0});
  sum.length = 8;
  worker.streams.Submit(op, worker.now_us);
  worker.Take(100, 0);
  char *first = nullptr, *second = nullptr;
  CHECK_OK(worker.streams.OnHeader(0, sum, worker.now_us, &first));
  CHECK_STATUS(Code::kCorrupt, worker.streams.OnHeader(1, sum, worker.now_us, &second));
  REQUIRE_TRUE(first != nullptr && op->answers[slot].data == first);
  std::memset(first, 0, sum.length);
  CHECK_OK(worker.streams.OnPacket(0, sum, worker.now_us));
}

TEST(policies_that_wait_for_units_keep_to_the_first_lane) {
  std::vector<int> woken;
  for (const PolicyKind kind : {PolicyKind::kWfbp, PolicyKind::kP3, PolicyKind::kByteScheduler}) {
    WorkerStreamsOptions options = WorkerLanes(&woken);
    options.policy.kind = kind;
    options.policy.unit_bytes = DefaultUnitBytes(kind);
    LoneWorker worker(options);
    const auto t = worker.Tensor(1, 4096);
    worker.Submit(t.get());
    CHECK_TRUE(worker.Take(10, 1).empty());
    CHECK_TRUE(worker.Take(10, 0).size() > 1);
    // What comes to another lane may make room for more: the first is called.
    CHECK_TRUE(woken.empty());
    CHECK_OK(worker.Text(PacketKind::kAnswer, 0, 0, std::string(1, '\0'), 1));
    CHECK_EQ(woken, std::vector<int>{0});
    woken.clear();
  }
}

TEST(a_copy_comes_over_any_lane_and_its_sum_leaves_over_any) {
  std::vector<int> woken;
  LoneServer server(ServerLanes(&woken));
  CHECK_OK(server.Declare(1, 0, 7, 4096));
  CHECK_STATUS(Code::kCorrupt, server.Data(0, 1, 0, 1, Of(1024, 1)));  // not that number
  CHECK_OK(server.Declare(0, 0, 7, 4096));
  OutPacket out;
  for (const int link : {0, 1}) CHECK_FALSE(server.aggregator.Next(link, 0, &out));
  for (uint64_t slot = 0; slot < 4; ++slot) {
    CHECK_OK(server.Data(static_cast<int>(slot % 2), 0, 1024 * slot, 1, Of(1024, 1)));
  }
  // Each that brought something asks by itself.
  CHECK_TRUE(woken.empty());
  CHECK_TRUE(server.aggregator.Next(1, 0, &out));
  CHECK_EQ(out.header.offset, 0U);
  CHECK_EQ(server.Drain(0).size(), 3U);
  CHECK_TRUE(server.Drain(1).empty());
}

TEST(a_lane_that_rests_is_called_for_sums_when_the_other_is_full) {
  std::vector<int> woken;
  LoneServer server(ServerLanes(&woken));
  CHECK_OK(server.Declare(0, 0, 7, 4096));
  for (const int link : {0, 1}) CHECK_TRUE(server.Drain(link).empty());
  for (uint64_t slot = 0; slot < 3; ++slot)
    CHECK_OK(server.Data(0, 0, 1024 * slot, 1, Of(1024, 1)));
  OutPacket out;
  CHECK_TRUE(server.aggregator.Next(0, 0, &out));
  CHECK_TRUE(woken.empty());
  server.aggregator.OnFull(0, 0);  // two are left
  CHECK_EQ(woken, std::vector<int>{1});
  CHECK_EQ(server.Drain(1).size(), 2U);
  // The first has not asked since: it has no room yet.
  CHECK_OK(server.Data(0, 0, 3072, 1, Of(1024, 1)));
  CHECK_EQ(woken, (std::vector<int>{1, 1}));
  CHECK_EQ(server.Drain(1).size(), 1U);
  server.aggregator.OnFull(1, 0);
  CHECK_EQ(woken, (std::vector<int>{1, 1}));
}

TEST(a_sum_that_has_begun_to_leave_stays_with_its_lane) {
  std::vector<int> woken;
  LoneServer server(ServerLanes(&woken));
  server.aggregator.SetPacketBytes(0, 256);
  CHECK_OK(server.Declare(0, 0, 7, 2048));
  for (uint64_t slot = 0; slot < 2; ++slot)
    CHECK_OK(server.Data(0, 0, 1024 * slot, 1, Of(1024, 1)));
  OutPacket out;
  CHECK_TRUE(server.aggregator.Next(0, 0, &out));
  CHECK_EQ(out.header.offset, 0U);
  CHECK_TRUE(server.aggregator.Next(1, 0, &out));
  CHECK_EQ(out.header.offset, 1024U);
  CHECK_TRUE(server.aggregator.Next(0, 0, &out));
  CHECK_EQ(out.header.offset, 256U);
  CHECK_EQ(server.Drain(1).size(), 3U);
  CHECK_EQ(server.Drain(0).size(), 2U);
}

TEST(the_same_of_a_copy_on_two_links_at_once_is_refused) {
  for (const bool deterministic : {false, true}) {
    std::vector<int> woken;
    AggregatorOptions options = ServerLanes(&woken);
    options.deterministic = deterministic;
    LoneServer server(options);
    CHECK_OK(server.Declare(0, 0, 7, 1024));
    Header h;
    h.kind = PacketKind::kData;
    h.round = 1;
    h.length = 1024;
    char *one = nullptr, *other = nullptr;
    CHECK_OK(server.aggregator.OnHeader(0, h, 0, &one));
    CHECK_OK(server.aggregator.OnHeader(1, h, 0, &other));
    REQUIRE_TRUE(one != nullptr && other != nullptr && one != other);
    CHECK_OK(server.aggregator.OnPacket(1, h, 0));
    CHECK_STATUS(Code::kCorrupt, server.aggregator.OnPacket(0, h, 0));
  }
}

TEST(a_worker_has_left_when_all_its_links_have_said_goodbye) {
  std::vector<int> woken;
  AggregatorOptions options = ServerLanes(&woken);
  options.num_workers = 2;  // links 0 and 1, and 2 and 3
  LoneServer server(options);
  for (const int link : {0, 2}) CHECK_OK(server.Declare(link, 0, 7, 1024));
  CHECK_OK(server.Data(0, 0, 0, 1, Of(1024, 1)));
  CHECK_OK(server.Send(3, PacketKind::kGoodbye, 0));
  CHECK_TRUE(server.Drain(0).empty());  // what the other one carries may still come
  CHECK_OK(server.Send(2, PacketKind::kGoodbye, 0));
  const auto got = server.Drain(0);
  REQUIRE_EQ(got.size(), 1U);
  CHECK_TRUE(got[0].header.kind == PacketKind::kError);
}

// So has a leader, to who follows it: sums may still lie unread on its other link.
TEST(a_leader_has_left_when_all_its_links_have_said_goodbye) {
  std::vector<int> woken;
  WorkerStreamsOptions options = WorkerLanes(&woken);
  options.num_workers = 2;
  options.rank = 1;
  options.hosts = Hosts({0, 0}, {1});
  LoneWorker worker(options);
  const int first = LinkOf(1, 0, 2), second = LinkOf(1, 1, 2);  // beside the server's
  const auto t = worker.Tensor(1, 1000);
  worker.Submit(t.get());
  CHECK_EQ(worker.Take(10, first).size(), 2U);
  CHECK_OK(worker.Text(PacketKind::kGoodbye, 0, 0, "", second));
  CHECK_TRUE(t->outcomes.empty());
  CHECK_OK(worker.Sum(0, 0, 1, std::string(1000, 'z'), first));
  REQUIRE_EQ(t->outcomes.size(), 1U);
  CHECK_OK(t->outcomes[0]);
  worker.Submit(t.get());
  CHECK_OK(worker.Text(PacketKind::kGoodbye, 0, 0, "", first));
  REQUIRE_EQ(t->outcomes.size(), 2U);
  CHECK_STATUS(Code::kPeerLost, t->outcomes[1]);
}

// Each worker's copies come over a lane and a thread of their own, to the same slots at once.
TEST(copies_that_come_at_once_are_added_once_each) {
  constexpr uint64_t kSlot = 1024, kSlots = 64;
  AggregatorOptions options = Options(2);
  options.lanes = 2;
  options.wake = [](int /*lane*/) {};
  LoneServer server(options);
  for (int link = 0; link < 4; ++link) CHECK_OK(server.Declare(link, 0, 7, kSlots * kSlot));
  for (uint8_t round = 1; round <= 20; ++round) {
    const auto send = [&server, round](int worker) {
      const std::string copy = Of(kSlot, static_cast<char>(worker + round));
      for (uint64_t slot = 0; slot < kSlots; ++slot) {
        CHECK_OK(server.Data(LinkOf(worker, worker, 2), 0, slot * kSlot, round, copy));
      }
    };
    std::thread other(send, 1);
    send(0);
    other.join();
    for (int worker = 0; worker < 2; ++worker) {
      const std::vector<Got> sums = server.Drain(LinkOf(worker, 0, 2));
      REQUIRE_EQ(sums.size(), kSlots);
      for (const Got& got : sums) {
        CHECK_EQ(got.header.round, round);
        CHECK_EQ(got.payload, Of(kSlot, static_cast<char>(1 + 2 * round)));
      }
    }
  }
}
