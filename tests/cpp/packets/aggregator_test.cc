#include "packets/aggregator.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "harness.h"
#include "packets/lone_server.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

bool Says(const Status& status, const std::string& words) {
  return status.text().find(words) != std::string::npos;
}

std::string Sums(const std::vector<Got>& got, uint64_t from, uint8_t round) {
  std::string all;
  for (const Got& one : got) {
    CHECK_TRUE(one.header.kind == PacketKind::kSum);
    CHECK_EQ(one.header.offset, from + all.size());
    CHECK_EQ(one.header.round, round);
    all += one.payload;
  }
  return all;
}

}  // namespace

TEST(the_last_copy_sends_the_sum_to_everybody) {
  LoneServer server(Options(3));
  for (int w = 0; w < 3; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 100));
  CHECK_EQ(server.aggregator.tensors(), 1U);
  for (int w = 0; w < 3; ++w) {
    CHECK_TRUE(server.Drain(0).empty());
    CHECK_OK(server.Data(w, 0, 0, 1, Of(100, static_cast<char>(1 + w)), w));
  }
  for (int w = 0; w < 3; ++w) {
    CHECK_EQ(server.aggregator.Depths(w).size(), 1U);
    const auto got = server.Drain(w);
    REQUIRE_EQ(got.size(), 1U);
    CHECK_TRUE(got[0].header.kind == PacketKind::kSum && got[0].payload == Of(100, 6));
    CHECK_EQ(got[0].header.round, 1);
    CHECK_EQ(got[0].header.priority, 3);  // workers
  }
}

TEST(pieces_of_any_size_in_any_interleaving) {
  mercury::testing::Random random;
  for (int trial = 0; trial < 300; ++trial) {
    AggregatorOptions options = Options(3);
    options.deterministic = random.OneIn(2);
    LoneServer server(options);
    const auto bytes = static_cast<size_t>(random.Between(1, 1024));
    const auto sums_of = static_cast<uint64_t>(random.Between(64, 1024));
    server.aggregator.SetPacketBytes(1, sums_of);
    for (int w = 0; w < 3; ++w) REQUIRE_OK(server.Declare(w, 0, 7, bytes));
    for (uint8_t round = 1; round < 4; ++round) {
      size_t at[3] = {};
      std::string sum = Of(bytes, 0);
      while (at[0] + at[1] + at[2] < 3 * bytes) {
        const auto w = static_cast<int>(random.Below(3));
        if (at[w] == bytes) continue;
        const size_t n = std::min<size_t>(bytes - at[w], 64 * random.Between(1, 16));
        std::string piece(n, '\0');
        random.Fill(piece.data(), n);
        for (size_t i = 0; i < n; ++i)
          sum[at[w] + i] = static_cast<char>(sum[at[w] + i] + piece[i]);
        REQUIRE_OK(server.Data(w, 0, at[w], round, piece));
        at[w] += n;
      }
      for (int w = 0; w < 3; ++w) {
        std::string whole;
        for (const Got& got : server.Drain(w)) {
          CHECK_EQ(got.header.offset, whole.size());
          CHECK_TRUE(w != 1 || got.payload.size() <= sums_of);
          whole += got.payload;
        }
        CHECK_TRUE(whole == sum);
      }
    }
  }
}

TEST(packets_that_break_the_rules_close_the_link) {
  const auto fresh = [] {
    auto server = std::make_unique<LoneServer>(Options(2));
    REQUIRE_OK(server->Declare(0, 0, 7, 1500));  // slots of 768 and 732
    REQUIRE_OK(server->Declare(1, 0, 7, 1500));
    return server;
  };
  auto s = fresh();
  CHECK_STATUS(Code::kCorrupt, s->Data(0, 1, 0, 1, Of(64, 1)));     // unknown number
  CHECK_STATUS(Code::kCorrupt, s->Data(0, 0, 0, 0, Of(64, 1)));     // the round before
  CHECK_STATUS(Code::kCorrupt, s->Data(0, 0, 0, 2, Of(64, 1)));     // the round after
  CHECK_STATUS(Code::kCorrupt, s->Data(0, 0, 64, 1, Of(64, 1)));    // not from the beginning
  CHECK_STATUS(Code::kCorrupt, s->Data(0, 0, 1536, 1, Of(64, 1)));  // beyond the end
  CHECK_STATUS(Code::kCorrupt, s->Data(0, 0, ~uint64_t{0} - 63, 1, Of(64, 1)));
  CHECK_STATUS(Code::kCorrupt, s->Data(0, 0, 0, 1, Of(769, 1)));    // beyond the slot
  CHECK_STATUS(Code::kCorrupt, s->Data(0, 0, 768, 1, Of(733, 1)));  // beyond the tensor
  CHECK_STATUS(Code::kCorrupt, s->Data(0, 0, 0, 1, ""));            // of nothing
  CHECK_STATUS(Code::kCorrupt, s->Data(0, 0, 0, 1, Of(63, 1)));     // inside an element
  CHECK_OK(s->Data(0, 0, 0, 1, Of(128, 1)));
  CHECK_STATUS(Code::kCorrupt, s->Data(0, 0, 0, 1, Of(128, 1)));   // twice
  CHECK_STATUS(Code::kCorrupt, s->Data(0, 0, 64, 1, Of(128, 1)));  // overlapping
  CHECK_STATUS(Code::kCorrupt, s->Data(0, 0, 192, 1, Of(64, 1)));  // with a gap
  CHECK_OK(s->Data(0, 0, 128, 1, Of(640, 1)));
  CHECK_STATUS(Code::kCorrupt, s->Data(0, 0, 0, 1, Of(64, 1)));  // it has all of the slot
  for (const PacketKind kind :
       {PacketKind::kSum, PacketKind::kError, PacketKind::kAnswer, PacketKind::kAck}) {
    CHECK_STATUS(Code::kCorrupt, s->Send(0, kind, 0));
  }
  CHECK_STATUS(Code::kCorrupt, s->Send(0, PacketKind::kFetch, 1));
  CHECK_STATUS(Code::kCorrupt, s->Send(0, PacketKind::kAsk, 1));
  // None of it has spoilt anything.
  CHECK_OK(s->Data(0, 0, 768, 1, Of(732, 1)));
  CHECK_OK(s->Data(1, 0, 0, 1, Of(768, 2)));
  CHECK_OK(s->Data(1, 0, 768, 1, Of(732, 2)));
  const auto got = s->Drain(1);
  REQUIRE_EQ(got.size(), 2U);
  CHECK_TRUE(got[0].payload == Of(768, 3) && got[1].payload == Of(732, 3));
}

TEST(declarations_that_break_the_rules) {
  AggregatorOptions options = Options(2);
  options.tensors_max = 2;
  LoneServer server(options);
  CHECK_OK(server.Declare(0, 0, 7, 10));
  CHECK_OK(server.Declare(0, 0, 7, 10));  // as another link may
  CHECK_STATUS(Code::kCorrupt, server.Declare(0, 0, 8, 10));
  CHECK_OK(server.Declare(0, 1, 8, 10));
  CHECK_STATUS(Code::kExhausted, server.Declare(0, 2, 9, 10));
  CHECK_STATUS(Code::kCorrupt, server.Declare(1, 0, 9, ~uint64_t{0}));
  CHECK_STATUS(Code::kCorrupt, server.Declare(1, 0, 9, 10, static_cast<DType>(77)));
  Header h;
  h.kind = PacketKind::kDeclare;
  CHECK_STATUS(Code::kCorrupt, server.Send(1, h, "short"));
}

TEST(workers_that_disagree_fail_the_tensor_for_all) {
  for (const bool shape : {true, false}) {
    LoneServer server(Options(3));
    REQUIRE_OK(server.Declare(0, 0, 7, 100));
    REQUIRE_OK(server.Data(0, 0, 0, 1, Of(100, 1)));
    REQUIRE_OK(shape ? server.Declare(1, 0, 7, 200) : server.Declare(1, 0, 7, 100, DType::kInt8));
    const Status status = server.ErrorTo(0);
    CHECK_STATUS(Code::kInvalidArgument, status);
    CHECK_TRUE(Says(status, "'t7'") && Says(status, "worker 0 has 100 elements of uint8"));
    CHECK_TRUE(Says(status, shape ? "worker 1 has 200 elements of uint8" : "of int8"));
    CHECK_EQ(server.ErrorTo(1).text(), status.text());
    REQUIRE_OK(server.Declare(2, 0, 7, 100));  // whoever comes later hears it, too
    CHECK_EQ(server.ErrorTo(2).text(), status.text());
    CHECK_OK(server.Data(2, 0, 0, 1, Of(100, 1)));  // is dropped, and no error of the link
    CHECK_TRUE(server.Drain(2).empty());
    CHECK_EQ(server.aggregator.pool().bytes_handed_out(), 0U);
    for (int w = 0; w < 3; ++w) REQUIRE_OK(server.Declare(w, 1, 8, 10));  // others live on
    for (int w = 0; w < 3; ++w) REQUIRE_OK(server.Data(w, 1, 0, 1, Of(10, 1)));
    CHECK_EQ(server.Drain(2).size(), 1U);
  }
}

TEST(the_cap_fails_the_tensor_and_spares_the_others) {
  AggregatorOptions options = Options(2);
  options.bytes_max = 2048;
  LoneServer server(options);
  for (int w = 0; w < 2; ++w) {
    REQUIRE_OK(server.Declare(w, 0, 1, 1024));
    REQUIRE_OK(server.Declare(w, 1, 2, 1024));
    REQUIRE_OK(server.Declare(w, 2, 3, 1024));
  }
  REQUIRE_OK(server.Data(0, 0, 0, 1, Of(1024, 1)));
  REQUIRE_OK(server.Data(0, 1, 0, 1, Of(1024, 1)));
  REQUIRE_OK(server.Data(0, 2, 0, 1, Of(1024, 1)));
  for (int w = 0; w < 2; ++w) {
    const Status status = server.ErrorTo(w);
    CHECK_STATUS(Code::kExhausted, status);
    CHECK_TRUE(Says(status, "'t3'") && Says(status, "cap of 2048"));
  }
  REQUIRE_OK(server.Data(1, 1, 0, 1, Of(64, 1)));  // no room for a copy: fails 2, which frees it
  CHECK_STATUS(Code::kExhausted, server.ErrorTo(1));
  REQUIRE_OK(server.Data(1, 0, 0, 1, Of(1024, 1)));
  CHECK_EQ(server.Drain(1).size(), 1U);
}

TEST(no_allocation_that_fails_does_more_than_fail_its_tensor) {
  for (int n = 0, failed = 1; failed != 0; ++n) {
    REQUIRE_TRUE(n < 100);
    LoneServer server(Options(2));
    allocations_left = n;
    failed = 0;
    for (int w = 0; w < 2; ++w) {
      for (uint32_t t = 0; t < 3; ++t) REQUIRE_OK(server.Declare(w, t, t, 2048));
    }
    for (int w = 0; w < 2; ++w) {
      for (uint32_t t = 0; t < 3; ++t) {
        for (uint64_t at = 0; at < 2048; at += 512) {
          REQUIRE_OK(server.Data(w, t, at, 1, Of(512, 1)));
        }
      }
    }
    allocations_left = -1;
    for (int w = 0; w < 2; ++w) {
      size_t bytes[3] = {};
      bool error[3] = {};
      for (const Got& got : server.Drain(w)) {
        if (got.header.kind == PacketKind::kError) {
          CHECK_FALSE(error[got.header.tensor]);
          error[got.header.tensor] = true;
          Status status;
          Decode(got.payload, &status);
          CHECK_STATUS(Code::kExhausted, status);
        } else {
          bytes[got.header.tensor] += got.payload.size();
          CHECK_TRUE(got.payload == Of(got.payload.size(), 2));
        }
      }
      for (int t = 0; t < 3; ++t) {
        CHECK_EQ(bytes[t], error[t] ? 0U : 2048U);
        failed += error[t] ? 1 : 0;
      }
    }
  }
}

TEST(a_worker_that_has_finished_is_named) {
  LoneServer server(Options(3));
  for (int w = 0; w < 3; ++w) {
    for (uint32_t t = 0; t < 3; ++t) REQUIRE_OK(server.Declare(w, t, t, 10));
  }
  REQUIRE_OK(server.Data(0, 0, 0, 1, Of(10, 1)));
  REQUIRE_OK(server.Data(2, 1, 0, 1, Of(10, 1)));  // of this one it has sent its part
  REQUIRE_OK(server.Send(2, PacketKind::kGoodbye, 0));
  Status status = server.ErrorTo(0);
  CHECK_STATUS(Code::kPeerLost, status);
  CHECK_TRUE(Says(status, "'t0'") && Says(status, "worker 2 has finished"));
  server.Drain(1);
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Data(w, 1, 0, 1, Of(10, 1)));
  CHECK_EQ(server.Drain(0).size(), 1U);
  CHECK_TRUE(server.Drain(1)[0].header.kind == PacketKind::kSum);
  REQUIRE_OK(server.Data(1, 2, 0, 1, Of(10, 1)));  // waits for it later
  CHECK_STATUS(Code::kPeerLost, server.ErrorTo(0));
  CHECK_EQ(server.aggregator.pool().bytes_handed_out(), 192U);  // the sum of tensor 1
}

TEST(a_value_is_fetched_once_there_is_one) {
  LoneServer server(Options(2));
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 1500));
  CHECK_OK(server.Send(0, PacketKind::kFetch, 0));
  CHECK_TRUE(server.Drain(0).empty());
  CHECK_STATUS(Code::kCorrupt, server.Send(0, PacketKind::kFetch, 0));  // while it waits
  for (int w = 0; w < 2; ++w) {
    REQUIRE_OK(server.Data(w, 0, 0, 1, Of(768, 1)));
    REQUIRE_OK(server.Data(w, 0, 768, 1, Of(732, 1)));
  }
  CHECK_EQ(server.Drain(0).size(), 4U);  // the sum, and the value that it asked for
  for (int i = 0; i < 2; ++i) {
    CHECK_OK(server.Send(0, PacketKind::kFetch, 0));
    const auto got = server.Drain(0);
    REQUIRE_EQ(got.size(), 2U);
    CHECK_TRUE(got[1].payload == Of(732, 2) && got[1].header.round == 1);
  }
  CHECK_EQ(server.Drain(1).size(), 2U);
}

TEST(an_answer_names_who_is_missing) {
  LoneServer server(Options(4));
  for (int w = 0; w < 4; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 1500));
  const auto ask = [&](int worker) {
    REQUIRE_OK(server.Send(worker, PacketKind::kAsk, 0));
    const auto got = server.Drain(worker);
    REQUIRE_EQ(got.size(), 1U);
    CHECK_TRUE(got[0].header.kind == PacketKind::kAnswer);
    return got[0].payload;
  };
  CHECK_TRUE(ask(0) == std::string("\0\0\0\0", 4));  // it has itself sent nothing
  REQUIRE_OK(server.Data(0, 0, 0, 1, Of(768, 1)));
  CHECK_TRUE(ask(0) == std::string("\0\1\1\1", 4));
  REQUIRE_OK(server.Data(1, 0, 0, 1, Of(64, 1)));  // not all
  REQUIRE_OK(server.Data(2, 0, 0, 1, Of(768, 1)));
  CHECK_TRUE(ask(0) == std::string("\0\1\0\1", 4));
  CHECK_TRUE(ask(3) == std::string("\0\0\0\0", 4));
}

TEST(units_are_acknowledged_and_answered_as_a_whole) {
  AggregatorOptions options = Options(2);
  options.policy = PolicyKind::kP3;
  options.unit_bytes = 2048;
  LoneServer server(options);
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 3 * 1024));  // units of 2 and 1
  const auto send = [&](int w, uint64_t slot, uint8_t round) {
    return server.Data(w, 0, slot * 1024, round, Of(1024, 1));
  };
  REQUIRE_OK(send(0, 0, 1));
  CHECK_TRUE(server.Drain(0).empty());
  REQUIRE_OK(send(0, 1, 1));
  auto got = server.Drain(0);
  REQUIRE_EQ(got.size(), 1U);
  CHECK_TRUE(got[0].header.kind == PacketKind::kAck && got[0].header.offset == 2048);
  REQUIRE_OK(send(1, 0, 1));
  CHECK_TRUE(server.Drain(0).empty());
  // The sum of slot 0 is there, but was not sent: its next round cannot have begun.
  CHECK_STATUS(Code::kCorrupt, send(1, 0, 2));
  REQUIRE_OK(send(1, 1, 1));
  CHECK_EQ(server.Drain(0).size(), 2U);
  CHECK_EQ(server.Drain(1).size(), 3U);
  REQUIRE_OK(send(0, 0, 2));
}

TEST(a_worker_that_asks_and_does_not_listen_is_cut_off) {
  LoneServer server(Options(1));
  REQUIRE_OK(server.Declare(0, 0, 7, 3000));
  for (uint64_t at = 0; at < 3000; at += 1024) {
    REQUIRE_OK(server.Data(0, 0, at, 1, Of(std::min<size_t>(1024, 3000 - at), 1)));
  }
  Status status;
  int fetched = 0;
  for (; status.ok() && fetched < 10; ++fetched) status = server.Send(0, PacketKind::kFetch, 0);
  CHECK_STATUS(Code::kCorrupt, status);
  CHECK_TRUE(fetched > 1);
  status = Status::Ok();
  for (int i = 0; status.ok() && i < 3000; ++i) status = server.Send(0, PacketKind::kAsk, 0);
  CHECK_STATUS(Code::kCorrupt, status);
}

TEST(who_has_departed_is_told_nothing) {
  LoneServer server(Options(2));
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 100));
  REQUIRE_OK(server.Send(1, PacketKind::kGoodbye, 0));
  CHECK_OK(server.Data(0, 0, 0, 1, Of(100, 1)));
  CHECK_STATUS(Code::kPeerLost, server.ErrorTo(0));
  CHECK_TRUE(server.Drain(1).empty());
}

TEST(a_worker_that_does_not_take_its_sums_gets_no_more_of_them) {
  LoneServer server(Options(1));
  REQUIRE_OK(server.Declare(0, 0, 7, 2000));  // two slots
  CHECK_OK(server.Data(0, 0, 0, 1, Of(1024, 1)));
  const Status status = server.Data(0, 0, 0, 2, Of(1024, 1));
  CHECK_STATUS(Code::kCorrupt, status);
  CHECK_TRUE(Says(status, "before the sum of the round before was sent"));
  CHECK_OK(server.Data(0, 0, 1024, 1, Of(976, 1)));  // the other one has no sum yet
  CHECK_EQ(server.Drain(0).size(), 2U);
  CHECK_OK(server.Data(0, 0, 0, 2, Of(1024, 1)));
}

TEST(what_all_copies_have_of_a_slot_goes_back_before_the_rest_comes) {
  LoneServer server(Options(2));
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 1024));
  for (uint8_t round = 1; round < 4; ++round) {
    REQUIRE_OK(server.Data(0, 0, 0, round, Of(512, 1)));
    CHECK_TRUE(server.Drain(0).empty());
    REQUIRE_OK(server.Data(1, 0, 0, round, Of(256, 2)));
    CHECK_TRUE(Sums(server.Drain(0), 0, round) == Of(256, 3));
    // Worker 1 has not taken its part yet, and gets it with the next.
    REQUIRE_OK(server.Data(1, 0, 256, round, Of(192, 2)));
    CHECK_EQ(server.aggregator.Depths(1)[0].second, 1U);
    CHECK_TRUE(Sums(server.Drain(1), 0, round) == Of(448, 3));
    CHECK_TRUE(Sums(server.Drain(0), 256, round) == Of(192, 3));
    REQUIRE_OK(server.Data(1, 0, 448, round, Of(576, 2)));
    CHECK_TRUE(Sums(server.Drain(0), 448, round) == Of(64, 3));
    REQUIRE_OK(server.Data(0, 0, 512, round, Of(512, 1)));
    for (int w = 0; w < 2; ++w)
      CHECK_TRUE(Sums(server.Drain(w), w == 0 ? 512 : 448, round).back() == 3);
  }
}

TEST(a_part_keeps_its_place_when_its_tensor_becomes_more_urgent) {
  LoneServer server(Options(1));
  REQUIRE_OK(server.Declare(0, 0, 7, 1024));
  REQUIRE_OK(server.Data(0, 0, 0, 1, Of(256, 1), -5));
  REQUIRE_OK(server.Data(0, 0, 256, 1, Of(768, 2), 5));
  CHECK_TRUE(Sums(server.Drain(0), 0, 1) == Of(256, 1) + Of(768, 2));
}

TEST(in_the_order_of_ranks_and_in_units_there_are_no_parts) {
  for (const bool units : {false, true}) {
    AggregatorOptions options = Options(2);
    options.deterministic = !units;
    if (units) options.policy = PolicyKind::kWfbp;
    LoneServer server(options);
    for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 1024));
    for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Data(w, 0, 0, 1, Of(512, 1)));
    CHECK_TRUE(server.Drain(0).empty());
    for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Data(w, 0, 512, 1, Of(512, 1)));
    CHECK_TRUE(Sums(server.Drain(0), 0, 1) == Of(1024, 2));
  }
}

TEST(a_sum_fetched_again_is_whole_while_the_next_is_under_way) {
  LoneServer server(Options(2));
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 1024));
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Data(w, 0, 0, 1, Of(1024, 1)));
  for (int w = 0; w < 2; ++w) CHECK_EQ(server.Drain(w).size(), 1U);
  REQUIRE_OK(server.Send(0, PacketKind::kFetch, 0));
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Data(w, 0, 0, 2, Of(512, 2)));
  const auto got = server.Drain(0);
  REQUIRE_EQ(got.size(), 2U);
  CHECK_TRUE(got[0].header.round == 1 && got[0].payload == Of(1024, 2));
  CHECK_TRUE(got[1].header.round == 2 && got[1].payload == Of(512, 4));
  // To have fetched the last sum once more is not to have been sent this one.
  REQUIRE_OK(server.Send(0, PacketKind::kFetch, 0));
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Data(w, 0, 512, 2, Of(512, 3)));
  REQUIRE_EQ(server.Drain(0).size(), 2U);
  CHECK_OK(server.Data(0, 0, 0, 3, Of(64, 1)));
}

TEST(a_tensor_that_fails_takes_its_parts_with_it) {
  LoneServer server(Options(2));
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 1024));
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Data(w, 0, 0, 1, Of(512, 1)));
  REQUIRE_OK(server.Send(1, PacketKind::kGoodbye, 0));
  REQUIRE_OK(server.Data(0, 0, 512, 1, Of(512, 1)));
  CHECK_STATUS(Code::kPeerLost, server.ErrorTo(0));
  CHECK_EQ(server.aggregator.pool().bytes_handed_out(), 0U);
}

// Rows are received into memory that is kept for that long, whatever becomes of their tensor.
TEST(rows_under_way_keep_their_memory_when_their_tensor_fails) {
  LoneServer server(Options(2));
  CHECK_OK(server.Declare(0, 0, 7, 1000, DType::kUint8, 10));
  Header h;
  char* const target = server.Begin(0, PacketKind::kRows, 40, &h);
  CHECK_OK(server.Declare(1, 0, 7, 500, DType::kUint8, 10));  // another shape: the tensor fails
  CHECK_TRUE(server.aggregator.pool().bytes_handed_out() >= 40);
  std::memset(target, 'x', h.length);
  CHECK_OK(server.aggregator.OnPacket(0, h, 0));
  CHECK_EQ(server.aggregator.pool().bytes_handed_out(), 0U);
}
