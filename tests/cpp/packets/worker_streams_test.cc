#include "packets/worker_streams.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness.h"
#include "packets/declaration.h"
#include "packets/lone_worker.h"
#include "sums/sparse_sum.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

bool Says(const Status& status, const std::string& words) {
  return status.text().find(words) != std::string::npos;
}

}  // namespace

TEST(a_tensor_is_declared_once_and_sent_from_where_it_lies) {
  LoneWorker worker(WorkerOptions());
  const auto t = worker.Tensor(9, 1500);
  for (uint8_t round = 1; round < 4; ++round) {
    worker.Submit(t.get(), -3);
    auto out = worker.Drain();
    if (round == 1) {
      CHECK_TRUE(out[0].header.kind == PacketKind::kDeclare);
      Declaration d;
      CHECK_OK(Decode(out[0].payload, out[0].header.length, &d));
      CHECK_TRUE(d.name == "t9" && d.key == 9 && d.elements == 1500);
      out.erase(out.begin());
    }
    REQUIRE_EQ(out.size(), 2U);
    CHECK_TRUE(out[0].payload == t->src.data() && out[1].payload == t->src.data() + 768);
    CHECK_EQ(out[1].header.length, 732U);
    CHECK_EQ(out[1].header.priority, -3);
    CHECK_EQ(out[1].header.round, round);
    CHECK_OK(worker.Sum(0, 768, round, std::string(732, 'b')));
    CHECK_OK(worker.Sum(0, 0, round, std::string(64, 'a')));
    CHECK_EQ(t->outcomes.size(), round - 1U);
    CHECK_OK(worker.Sum(0, 64, round, std::string(704, 'a')));
    REQUIRE_EQ(t->outcomes.size(), size_t{round});
    CHECK_OK(t->outcomes.back());
    CHECK_TRUE(t->dst == std::string(768, 'a') + std::string(732, 'b'));
    CHECK_EQ(worker.streams.under_way(), 0U);
  }
}

TEST(an_empty_tensor_is_one_packet_each_way) {
  LoneWorker worker(WorkerOptions());
  const auto t = worker.Tensor(1, 0);
  worker.Submit(t.get());
  CHECK_EQ(worker.Drain().size(), 2U);
  CHECK_TRUE(t->outcomes.empty());
  CHECK_OK(worker.Sum(0, 0, 1, ""));
  CHECK_EQ(t->outcomes.size(), 1U);
  CHECK_STATUS(Code::kCorrupt, worker.Sum(0, 0, 1, ""));
}

TEST(sums_that_nobody_waits_for_close_the_link) {
  LoneWorker worker(WorkerOptions());
  const auto t = worker.Tensor(1, 1500);
  const auto fresh = [&](uint64_t offset, uint8_t round, size_t bytes) {
    return worker.Sum(0, offset, round, std::string(bytes, 'x'));
  };
  CHECK_STATUS(Code::kCorrupt, fresh(0, 1, 64));  // no tensor at all
  worker.Submit(t.get());
  CHECK_STATUS(Code::kCorrupt, fresh(0, 1, 64));  // before anything was sent
  CHECK_EQ(worker.Drain().size(), 3U);
  CHECK_STATUS(Code::kCorrupt, fresh(0, 0, 64));
  CHECK_STATUS(Code::kCorrupt, fresh(0, 2, 64));
  CHECK_STATUS(Code::kCorrupt, fresh(64, 1, 64));
  CHECK_STATUS(Code::kCorrupt, fresh(0, 1, 769));
  CHECK_STATUS(Code::kCorrupt, fresh(768, 1, 733));
  CHECK_STATUS(Code::kCorrupt, fresh(1536, 1, 64));
  CHECK_STATUS(Code::kCorrupt, fresh(~uint64_t{0}, 1, 64));
  CHECK_STATUS(Code::kCorrupt, fresh(0, 1, 0));
  CHECK_OK(fresh(0, 1, 768));
  CHECK_STATUS(Code::kCorrupt, fresh(0, 1, 768));  // twice
  CHECK_STATUS(Code::kCorrupt, fresh(767, 1, 1));
  for (const PacketKind kind :
       {PacketKind::kData, PacketKind::kDeclare, PacketKind::kFetch, PacketKind::kAsk}) {
    CHECK_STATUS(Code::kCorrupt, worker.Text(kind, 0, 0, ""));
  }
  for (const PacketKind kind :
       {PacketKind::kError, PacketKind::kAnswer, PacketKind::kAck, PacketKind::kSum}) {
    CHECK_STATUS(Code::kCorrupt, worker.Text(kind, 1, 0, ""));
  }
  CHECK_OK(worker.Text(PacketKind::kGoodbye, 77, 0, ""));
  CHECK_TRUE(t->outcomes.empty());
  CHECK_OK(fresh(768, 1, 732));
  CHECK_EQ(t->outcomes.size(), 1U);
  CHECK_STATUS(Code::kCorrupt, fresh(0, 1, 64));  // not under way any more
}

// Whoever takes a sum of rows puts each where its number says.
TEST(a_sum_of_rows_that_are_not_its_slot_s_is_refused) {
  const auto take = [](const std::vector<int64_t>& numbers) {
    LoneWorker worker(WorkerOptions());
    const auto t = worker.Tensor(1, 512);  // of 32 slots of two rows each
    worker.streams.Submit(worker.Row(t.get(), 3), worker.now_us);
    CHECK_EQ(worker.Drain().size(), 33U);
    Header h;
    h.kind = PacketKind::kRowSum;
    h.round = 1;
    for (uint64_t slot = 0; slot < 32; ++slot) {
      h.offset = OffsetOf({slot, 0});
      if (slot != 1) CHECK_OK(worker.Receive(h, std::string(8, '\0')));
    }
    std::string set(SetBytes(numbers.size(), 8), '\0');
    EncodeSet(numbers.data(), t->src.data(), numbers.size(), 8, set.data());
    h.offset = OffsetOf({1, 0});
    const Status status = worker.Receive(h, set);
    CHECK_EQ(t->outcomes.size(), status.ok() ? 1U : 0U);
    return status;
  };
  for (const std::vector<int64_t>& right : {std::vector<int64_t>{}, {3}, {2, 3}}) {
    CHECK_OK(take(right));
  }
  for (const std::vector<int64_t>& wrong :
       {std::vector<int64_t>{4}, {1, 2}, {3, 2}, {2, 2}, {-1}, {int64_t{1} << 40}}) {
    CHECK_STATUS(Code::kCorrupt, take(wrong));
  }
}

TEST(an_error_fails_its_tensor_once_and_for_all) {
  LoneWorker worker(WorkerOptions());
  const auto t = worker.Tensor(1, 1500), other = worker.Tensor(2, 100);
  worker.Submit(t.get());
  worker.Submit(other.get());
  OutPacket on_its_way;
  for (int i = 0; i < 3; ++i) REQUIRE_TRUE(worker.streams.Next(0, 0, &on_its_way));
  CHECK_OK(worker.Sum(0, 0, 1, std::string(64, 'a')));  // part of the sum is in
  CHECK_OK(worker.Text(PacketKind::kError, 0, 0, Encode(Status::Exhausted("no memory"))));
  CHECK_TRUE(t->outcomes.empty());  // a packet of it is still to be written
  on_its_way = OutPacket();
  REQUIRE_EQ(t->outcomes.size(), 1U);
  CHECK_STATUS(Code::kExhausted, t->outcomes[0]);
  CHECK_TRUE(Says(t->outcomes[0], "no memory (said server 0)"));
  CHECK_OK(worker.Text(PacketKind::kError, 0, 0, Encode(Status::PeerLost("again"))));
  CHECK_OK(worker.Sum(0, 64, 1, std::string(64, 'a')));  // dropped
  CHECK_OK(worker.Sum(0, 99999, 9, "whatever"));
  worker.Submit(t.get());
  worker.Submit(t.get(), 0, true);
  REQUIRE_EQ(t->outcomes.size(), 3U);
  CHECK_STATUS(Code::kExhausted, t->outcomes[1]);
  CHECK_STATUS(Code::kExhausted, t->outcomes[2]);
  worker.Drain();
  CHECK_OK(worker.Sum(1, 0, 1, std::string(100, 'z')));
  REQUIRE_EQ(other->outcomes.size(), 1U);
  CHECK_OK(other->outcomes[0]);
  uint32_t number = 2;
  for (const char* text : {"", "0 0 0 0 0 0 \n", "8 0 0 0 0 0 \n"}) {  // of no failure
    const auto third = worker.Tensor(10 + number, 10);
    worker.Submit(third.get());
    worker.Drain();
    CHECK_OK(worker.Text(PacketKind::kError, number++, 0, text));
    REQUIRE_EQ(third->outcomes.size(), 1U);
    CHECK_STATUS(Code::kCorrupt, third->outcomes[0]);
  }
}

TEST(a_tensor_has_one_operation_under_way) {
  LoneWorker worker(WorkerOptions());
  const auto t = worker.Tensor(1, 100);
  worker.Submit(t.get());
  worker.Submit(t.get());
  REQUIRE_EQ(t->outcomes.size(), 1U);
  CHECK_STATUS(Code::kInternal, t->outcomes[0]);
  worker.Drain();
  CHECK_OK(worker.Sum(0, 0, 1, std::string(100, 'z')));
  CHECK_EQ(t->outcomes.size(), 2U);
  CHECK_OK(t->outcomes.back());
}

TEST(done_may_submit_the_next_round) {
  LoneWorker worker(WorkerOptions());
  const auto t = worker.Tensor(1, 100);
  auto op = worker.Operation_(t.get());
  op->done = [&](const Status& status) {
    CHECK_OK(status);
    worker.Submit(t.get());
  };
  worker.streams.Submit(std::move(op), 0);
  CHECK_EQ(worker.Drain().size(), 2U);
  CHECK_OK(worker.Sum(0, 0, 1, std::string(100, 'a')));
  CHECK_EQ(worker.Drain().size(), 1U);
  CHECK_OK(worker.Sum(0, 0, 2, std::string(100, 'b')));
  CHECK_EQ(t->outcomes.size(), 1U);
}

TEST(a_fetch_sends_nothing_and_takes_the_sum_of_the_round_before) {
  LoneWorker worker(WorkerOptions());
  const auto t = worker.Tensor(1, 100);
  worker.Submit(t.get());
  worker.Drain();
  CHECK_OK(worker.Sum(0, 0, 1, std::string(100, 'a')));
  worker.Submit(t.get(), 5, true);
  const auto out = worker.Drain();
  REQUIRE_EQ(out.size(), 1U);
  CHECK_TRUE(out[0].header.kind == PacketKind::kFetch && out[0].header.priority == 5);
  CHECK_OK(worker.Sum(0, 0, 1, std::string(100, 'b')));
  CHECK_EQ(t->outcomes.size(), 2U);
  CHECK_TRUE(t->dst == std::string(100, 'b'));
}

TEST(failing_ends_everything_and_all_that_comes_later) {
  LoneWorker worker(WorkerOptions());
  const auto a = worker.Tensor(1, 3000), b = worker.Tensor(2, 100), c = worker.Tensor(3, 10);
  worker.Submit(a.get());
  worker.Submit(b.get());
  OutPacket out;
  for (int i = 0; i < 3; ++i) REQUIRE_TRUE(worker.streams.Next(0, 0, &out));
  worker.streams.Fail(Status::PeerLost("worker 1 is lost"));
  worker.streams.Fail(Status::Internal("too late"));
  worker.Submit(c.get());
  for (const Asked* asked : {a.get(), b.get(), c.get()}) {
    REQUIRE_EQ(asked->outcomes.size(), 1U);
    CHECK_STATUS(Code::kPeerLost, asked->outcomes[0]);
  }
  CHECK_EQ(worker.streams.under_way(), 0U);
  CHECK_TRUE(worker.Drain().empty());
  CHECK_OK(worker.Sum(0, 0, 1, std::string(64, 'a')));  // dropped
}

TEST(nothing_wakes_a_worker_that_has_failed) {
  WorkerStreamsOptions options = WorkerOptions();
  options.policy.credit.fixed_bytes = 2000;
  options.shares = ServerShares(2);
  LoneWorker worker(options);
  const auto a = worker.Tensor(1, 100000);
  worker.Submit(a.get());
  CHECK_EQ(worker.streams.WakeAt(0), kNever);  // it has not been asked yet
  worker.Drain(0);
  CHECK_TRUE(worker.streams.WakeAt(0) != kNever);
  CHECK_EQ(worker.streams.WakeAt(1), kNever);
  worker.streams.Fail(Status::PeerLost("server 1 is lost"));
  CHECK_EQ(worker.streams.WakeAt(0), kNever);
}

TEST(an_operation_lives_as_long_as_a_packet_of_it) {
  auto worker = std::make_unique<LoneWorker>(WorkerOptions());
  const auto t = worker->Tensor(1, 100);
  auto memory = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = memory;
  auto op = worker->Operation_(t.get());
  op->keep = std::move(memory);
  worker->streams.Submit(std::move(op), 0);
  OutPacket out;
  for (int i = 0; i < 2; ++i) REQUIRE_TRUE(worker->streams.Next(0, 0, &out));
  worker->streams.Fail(Status::Closed("over"));
  worker.reset();
  CHECK_FALSE(watched.expired());
  out = OutPacket();
  CHECK_TRUE(watched.expired());
}

TEST(what_failed_while_packets_were_held_is_over_at_once_when_the_job_is) {
  LoneWorker worker(WorkerOptions());
  const auto t = worker.Tensor(1, 3000);
  worker.Submit(t.get());
  auto held = worker.Drain();
  CHECK_OK(worker.Text(PacketKind::kError, 0, 0, Encode(Status::Exhausted("no memory"))));
  CHECK_TRUE(t->outcomes.empty());
  worker.streams.Fail(Status::PeerLost("lost server 1"));
  REQUIRE_EQ(t->outcomes.size(), 1U);
  CHECK_STATUS(Code::kPeerLost, t->outcomes[0]);
  held.clear();
  CHECK_EQ(t->outcomes.size(), 1U);
}

// Another lane brings what its host could not do while the job's failure is told to one after the
// other.
TEST(once_the_job_has_failed_nothing_fails_for_another_reason) {
  LoneWorker worker(WorkerOptions());
  const auto first = worker.Tensor(1, 100), second = worker.Tensor(2, 100);
  auto op = worker.Operation_(first.get());
  op->done = [&](const Status& status) {
    first->outcomes.push_back(status);
    worker.streams.HostFailed(2, Status::Exhausted("worker 1 has no memory"));
  };
  worker.streams.Submit(std::move(op), worker.now_us);
  worker.Submit(second.get());
  worker.streams.Fail(Status::PeerLost("lost server 1"));
  for (const auto* t : {first.get(), second.get()}) {
    REQUIRE_EQ(t->outcomes.size(), 1U);
    CHECK_STATUS(Code::kPeerLost, t->outcomes[0]);
  }
}

TEST(a_sum_that_is_being_received_is_received_before_its_operation_fails) {
  WorkerStreamsOptions options = WorkerOptions();
  options.shares = ServerShares(2);
  LoneWorker worker(options);
  const auto t = worker.Tensor(1, 8000);
  worker.Submit(t.get());
  for (const int server : {0, 1}) worker.Drain(server);
  Header sum;
  sum.kind = PacketKind::kSum;
  sum.round = 1;
  sum.length = 64;
  // Of the first slot, which either may have.
  char* target = nullptr;
  int sums = 0;
  while (!worker.streams.OnHeader(sums, sum, worker.now_us, &target).ok()) ++sums;
  REQUIRE_TRUE(target == t->dst.data());
  Header error;
  error.kind = PacketKind::kError;
  const std::string why = Encode(Status::Exhausted("no memory"));
  error.length = static_cast<uint32_t>(why.size());
  char* text = nullptr;
  CHECK_OK(worker.streams.OnHeader(1 - sums, error, worker.now_us, &text));
  std::copy(why.begin(), why.end(), text);
  CHECK_OK(worker.streams.OnPacket(1 - sums, error, worker.now_us));
  CHECK_TRUE(t->outcomes.empty());  // bytes may still come for its memory
  CHECK_OK(worker.streams.OnPacket(sums, sum, worker.now_us));
  REQUIRE_EQ(t->outcomes.size(), 1U);
  CHECK_STATUS(Code::kExhausted, t->outcomes[0]);
}

TEST(a_stall_is_asked_about_and_reported) {
  LoneWorker worker(WorkerOptions());
  const auto t = worker.Tensor(1, 100);
  worker.Submit(t.get());
  worker.Drain();
  worker.now_us += 4000000;
  worker.streams.Tick(worker.now_us);
  CHECK_TRUE(worker.Drain().empty());
  worker.now_us += 2000000;
  worker.streams.Tick(worker.now_us);
  worker.streams.Tick(worker.now_us);
  const auto out = worker.Drain();
  REQUIRE_EQ(out.size(), 1U);
  CHECK_TRUE(out[0].header.kind == PacketKind::kAsk);
  CHECK_OK(worker.Text(PacketKind::kAnswer, 0, 0, std::string("\0\1\0\1", 4)));
  REQUIRE_EQ(worker.reports.size(), 1U);
  CHECK_EQ(worker.reports[0], "tensor 't1' has waited for 6 s: workers 1, 3 have not sent it all");
  CHECK_OK(worker.Text(PacketKind::kAnswer, 0, 0, std::string("\0\1\0\1", 4)));  // no news
  CHECK_OK(worker.Text(PacketKind::kAnswer, 0, 0, std::string(4, '\0')));
  CHECK_TRUE(worker.reports[1].find("its sum is on its way from server 0") != std::string::npos);
  CHECK_OK(worker.Sum(0, 0, 1, std::string(100, 'a')));
  CHECK_OK(worker.Text(PacketKind::kAnswer, 0, 0, std::string("\1\1", 2)));  // too late
  CHECK_EQ(worker.reports.size(), 2U);
  worker.now_us += 100000000;
  worker.streams.Tick(worker.now_us);
  CHECK_TRUE(worker.Drain().empty());
}

TEST(a_stall_ends_the_job_unless_something_of_it_moves) {
  WorkerStreamsOptions options = WorkerOptions();
  options.stall.end_us = 60000000;
  std::vector<int> stalls;
  options.stalled = [&](int rank, const std::string& /*line*/) { stalls.push_back(rank); };
  LoneWorker worker(options);
  const auto t = worker.Tensor(1, 2000);  // two packets
  worker.Submit(t.get());
  worker.Drain();
  const auto answer = [&worker] {
    return worker.Text(PacketKind::kAnswer, 0, 0, std::string("\0\0\1\1", 4));
  };
  const auto asks_after = [&](int64_t us) {
    bool asked = false;
    for (; us > 0; us -= 1000000) {
      worker.now_us += 1000000;
      worker.streams.Tick(worker.now_us);
      if (worker.Drain().empty()) continue;
      asked = true;
      CHECK_OK(answer());
    }
    return asked;
  };
  CHECK_TRUE(asks_after(40000000));
  CHECK_OK(worker.Sum(0, 0, 1, std::string(1024, 'a')));
  CHECK_EQ(worker.streams.Waiting(worker.now_us), "tensor 't1': for 40 s, 1 of 2 sums are in\n");
  CHECK_TRUE(asks_after(30000000));
  worker.now_us += 100000000;  // this process stands still: nobody else is to blame for that
  CHECK_OK(answer());
  CHECK_FALSE(asks_after(29000000));
  CHECK_TRUE(stalls.empty());
  CHECK_TRUE(asks_after(2000000));  // at the end, and not only when twice as much has passed
  CHECK_EQ(stalls, std::vector<int>{2});
}

TEST(acknowledgements_of_any_size_do_no_harm) {
  LoneWorker worker(WorkerOptions(PolicyKind::kP3));
  const auto t = worker.Tensor(1, 500000);  // three slices
  worker.Submit(t.get());
  size_t packets = worker.Drain().size();
  CHECK_TRUE(packets > 190 && packets < 200);
  CHECK_TRUE(worker.Drain().empty());
  CHECK_OK(worker.Text(PacketKind::kAck, 0, ~uint64_t{0}, ""));
  packets = worker.Drain().size();
  CHECK_TRUE(packets > 190 && packets < 200);
}

TEST(a_sum_may_come_of_what_was_sent_of_a_slot_and_of_no_more) {
  WorkerStreamsOptions options = WorkerOptions();
  options.policy.packet_bytes = 64 << 10;
  options.policy.adapt_packets = true;
  LoneWorker worker(options);
  const auto t = worker.Tensor(1, 64 << 10);
  uint8_t round = 1;
  for (; round < 20; ++round) {  // 64 KiB in a tenth of a second: a slow link
    worker.Submit(t.get());
    CHECK_TRUE(!worker.Drain().empty());
    worker.now_us += 100000;
    CHECK_OK(worker.Sum(0, 0, round, std::string(64 << 10, 'a')));
  }
  worker.Submit(t.get());
  OutPacket first;
  REQUIRE_TRUE(worker.streams.Next(0, worker.now_us, &first));
  REQUIRE_EQ(first.header.length, uint32_t{4 << 10});
  CHECK_OK(worker.Sum(0, 0, round, std::string(1 << 10, 'b')));
  CHECK_STATUS(Code::kCorrupt, worker.Sum(0, 1 << 10, round, std::string(4 << 10, 'b')));
  CHECK_OK(worker.Sum(0, 1 << 10, round, std::string(3 << 10, 'b')));
  CHECK_STATUS(Code::kCorrupt, worker.Sum(0, 4 << 10, round, std::string(64, 'b')));
  CHECK_EQ(worker.Drain().size(), 15U);
  CHECK_OK(worker.Sum(0, 4 << 10, round, std::string(60 << 10, 'b')));
  CHECK_EQ(t->outcomes.size(), size_t{round});
}

TEST(a_sum_is_given_unless_nobody_lacks_it_any_more) {
  WorkerStreamsOptions options = WorkerOptions();
  options.keeps_sums = true;
  LoneWorker worker(options);
  const auto t = worker.Tensor(1, 100);
  for (const uint8_t round : {1, 2}) {
    worker.Submit(t.get());
    worker.Drain();
    REQUIRE_OK(worker.Sum(0, 0, round, std::string(100, static_cast<char>('a' + round))));
  }
  const auto wanted = [&worker](uint8_t round) {
    Header header;
    header.kind = PacketKind::kWanted;
    header.round = round;
    return worker.Receive(header, "");
  };
  CHECK_OK(wanted(1));  // it was overtaken: who lacked it is lost
  CHECK_TRUE(worker.Drain().empty());
  CHECK_OK(wanted(2));
  const auto given = worker.Drain();
  REQUIRE_TRUE(!given.empty() && given.back().header.kind == PacketKind::kGiven);
  CHECK_EQ(given.back().payload[0], 'c');
  CHECK_STATUS(Code::kCorrupt, wanted(3));
}
