#include "messages/server_store.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

Buffer Floats(const std::vector<float>& values) {
  Buffer buffer = Buffer::Allocate(values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(buffer.data, values.data(), buffer.bytes);
  return buffer;
}

std::vector<float> Values(const Buffer& buffer) {
  std::vector<float> values(buffer.bytes / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), buffer.data, buffer.bytes);
  return values;
}

class Harness {
 public:
  explicit Harness(int workers, uint64_t bytes_max = 0, bool deterministic = false)
      : store(workers, bytes_max, deterministic) {}

  uint64_t Send(int worker, StoreOperation op, uint64_t key, const std::vector<float>& values,
                bool asynchronous = false) {
    StoreRequest r;
    r.worker = worker;
    r.operation = op;
    r.key = key;
    r.bytes = values.size() * sizeof(float);
    r.asynchronous = asynchronous;
    if (op != StoreOperation::kPull) r.payload = Floats(values);
    return Ask(std::move(r));
  }
  uint64_t Ask(StoreRequest r) {
    r.ticket = ++tickets;
    std::vector<StoreReply> replies;
    store.Handle(std::move(r), &replies);
    Take(std::move(replies));
    return tickets;
  }
  void Take(std::vector<StoreReply> replies) {
    for (StoreReply& reply : replies) {
      CHECK_TRUE(answers.count(reply.ticket) == 0);  // one reply each
      answers[reply.ticket] = std::move(reply);
    }
  }
  bool Answered(uint64_t ticket) const { return answers.count(ticket) != 0; }
  Status StatusOf(uint64_t ticket) const { return answers.at(ticket).status; }

  ServerStore store;
  uint64_t tickets = 0;
  std::map<uint64_t, StoreReply> answers;
};

}  // namespace

TEST(whom_a_piece_waits_for_is_known) {
  Harness h(3);
  CHECK_TRUE(h.store.Missing(7, 0).empty());
  h.Send(1, StoreOperation::kPull, 7, {0, 0});
  CHECK_TRUE(h.store.Missing(7, 0) == std::vector<int>{0});  // who gives first values
  h.Send(2, StoreOperation::kPush, 7, {10, 20});
  CHECK_TRUE(h.store.Missing(7, 0) == (std::vector<int>{0, 1}));
  CHECK_TRUE(h.store.Missing(7, 8).empty());
  h.Send(0, StoreOperation::kPush, 7, {1, 2});
  h.Send(1, StoreOperation::kPush, 7, {100, 200});
  CHECK_TRUE(h.store.Missing(7, 0).empty());
}

TEST(a_round_completes_with_the_last_push) {
  Harness h(3);
  const uint64_t a = h.Send(0, StoreOperation::kPush, 7, {1, 2});
  const uint64_t b = h.Send(2, StoreOperation::kPush, 7, {10, 20});
  CHECK_TRUE(!h.Answered(a) && !h.Answered(b));
  const uint64_t c = h.Send(1, StoreOperation::kPush, 7, {100, 200});
  CHECK_TRUE(h.Answered(a) && h.Answered(b) && h.Answered(c));
  const uint64_t pull = h.Send(1, StoreOperation::kPull, 7, {0, 0});
  CHECK_TRUE((Values(h.answers[pull].value) == std::vector<float>{111, 222}));
}

TEST(pulls_wait_for_the_first_value) {
  Harness h(2);
  const uint64_t pull = h.Send(1, StoreOperation::kPull, 7, {0});
  CHECK_TRUE(!h.Answered(pull));
  const uint64_t init = h.Send(0, StoreOperation::kInit, 7, {5});
  CHECK_TRUE(h.Answered(init) && h.Answered(pull));
  CHECK_TRUE(Values(h.answers[pull].value) == std::vector<float>{5});
}

TEST(a_pull_behind_its_push_waits_for_that_rounds_sum) {
  Harness h(2);
  h.Send(0, StoreOperation::kInit, 7, {5});
  for (int round = 1; round <= 3; ++round) {
    const auto value = static_cast<float>(round);
    const uint64_t push = h.Send(0, StoreOperation::kPush, 7, {value});
    const uint64_t pull = h.Send(0, StoreOperation::kPull, 7, {0});
    CHECK_TRUE(!h.Answered(push) && !h.Answered(pull));
    // Who has not pushed the round asks for the value as it is.
    const uint64_t other = h.Send(1, StoreOperation::kPull, 7, {0});
    CHECK_TRUE(h.Answered(other) && !h.Answered(pull));
    const uint64_t last = h.Send(1, StoreOperation::kPush, 7, {10});
    CHECK_TRUE(h.Answered(push) && h.Answered(last));
    // This worker is a round ahead before the other's pull of the round has come.
    const uint64_t ahead = h.Send(0, StoreOperation::kPush, 7, {100});
    const uint64_t late = h.Send(1, StoreOperation::kPull, 7, {0});
    const uint64_t next = h.Send(0, StoreOperation::kPull, 7, {0});
    CHECK_TRUE(Values(h.answers[pull].value) == std::vector<float>{value + 10});
    CHECK_TRUE(Values(h.answers[late].value) == std::vector<float>{value + 10});
    CHECK_TRUE(!h.Answered(ahead) && !h.Answered(next));
    h.Send(1, StoreOperation::kPush, 7, {200});
    CHECK_TRUE(Values(h.answers[next].value) == std::vector<float>{300});
  }
}

TEST(a_first_value_in_the_midst_of_a_round_is_no_sum) {
  Harness h(2);
  h.Send(0, StoreOperation::kPush, 7, {1});
  const uint64_t pull = h.Send(0, StoreOperation::kPull, 7, {0});
  const uint64_t first = h.Send(1, StoreOperation::kPull, 7, {0});
  h.Send(1, StoreOperation::kInit, 7, {5});
  CHECK_TRUE(Values(h.answers[first].value) == std::vector<float>{5});
  CHECK_TRUE(!h.Answered(pull));
  h.Send(1, StoreOperation::kPush, 7, {2});
  CHECK_TRUE(Values(h.answers[pull].value) == std::vector<float>{3});
}

TEST(a_value_on_its_way_is_not_written_again) {
  Harness h(2);
  for (bool asynchronous : {false, true}) {
    const uint64_t key = asynchronous ? 1 : 2;
    h.Send(0, StoreOperation::kInit, key, std::vector<float>(3000, 1), asynchronous);
    const uint64_t pull =
        h.Send(0, StoreOperation::kPull, key, std::vector<float>(3000), asynchronous);
    const Buffer on_its_way = h.answers[pull].value;
    h.Send(0, StoreOperation::kPush, key, std::vector<float>(3000, 5), asynchronous);
    h.Send(1, StoreOperation::kPush, key, std::vector<float>(3000, 6), asynchronous);
    CHECK_TRUE(Values(on_its_way) == std::vector<float>(3000, 1));
    const uint64_t after =
        h.Send(0, StoreOperation::kPull, key, std::vector<float>(3000), asynchronous);
    CHECK_TRUE(Values(h.answers[after].value) ==
               std::vector<float>(3000, asynchronous ? 12.0F : 11.0F));
  }
}

TEST(asynchronous_pushes_do_not_wait) {
  Harness h(2);
  h.Send(0, StoreOperation::kInit, 7, {1}, true);
  const uint64_t push = h.Send(1, StoreOperation::kPush, 7, {2}, true);
  CHECK_TRUE(h.Answered(push));
  h.Send(1, StoreOperation::kPush, 7, {4}, true);
  const uint64_t pull = h.Send(0, StoreOperation::kPull, 7, {0}, true);
  CHECK_TRUE(Values(h.answers[pull].value) == std::vector<float>{7});
}

TEST(workers_that_disagree_fail_the_tensor_for_all) {
  Harness h(2);
  const uint64_t first = h.Send(0, StoreOperation::kPush, 7, {1, 2});
  const uint64_t pull = h.Send(0, StoreOperation::kPull, 7, {0, 0});
  const uint64_t second = h.Send(1, StoreOperation::kPush, 7, {1, 2, 3});
  CHECK_STATUS(Code::kInvalidArgument, h.StatusOf(first));
  CHECK_STATUS(Code::kInvalidArgument, h.StatusOf(pull));
  CHECK_STATUS(Code::kInvalidArgument, h.StatusOf(second));
  CHECK_TRUE(h.StatusOf(first).text().find("worker 1 has 12 bytes of float32, worker 0 has 8") !=
             std::string::npos);
  CHECK_STATUS(Code::kInvalidArgument, h.StatusOf(h.Send(0, StoreOperation::kPull, 7, {0, 0})));
}

TEST(pushing_twice_in_a_round_is_refused) {
  Harness h(2);
  const uint64_t first = h.Send(0, StoreOperation::kPush, 7, {1});
  const Status second = h.StatusOf(h.Send(0, StoreOperation::kPush, 7, {1}));
  CHECK_STATUS(Code::kCorrupt, second);
  CHECK_EQ(second.text(), "worker 0 sent the piece at 0 of key 7 twice in one round");
  CHECK_TRUE(!h.Answered(first));
}

TEST(a_departed_worker_is_named) {
  Harness h(2);
  const uint64_t waiting = h.Send(0, StoreOperation::kPush, 7, {1});
  const uint64_t pull = h.Send(0, StoreOperation::kPull, 7, {0});
  std::vector<StoreReply> replies;
  h.store.Departed(1, &replies);
  h.Take(std::move(replies));
  CHECK_STATUS(Code::kPeerLost, h.StatusOf(waiting));
  CHECK_STATUS(Code::kPeerLost, h.StatusOf(pull));
  CHECK_TRUE(h.StatusOf(waiting).text().find("worker 1 has finished") != std::string::npos);
  CHECK_STATUS(Code::kPeerLost, h.StatusOf(h.Send(0, StoreOperation::kPush, 8, {1})));
  CHECK_TRUE(h.Answered(h.Send(0, StoreOperation::kInit, 9, {1})));
}

TEST(memory_has_a_limit_and_is_given_back) {
  Harness h(1, 1000);
  for (int i = 0; i < 100; ++i) {
    CHECK_STATUS(Code::kOk,
                 h.StatusOf(h.Send(0, StoreOperation::kPush, 7, std::vector<float>(100))));
  }
  CHECK_EQ(h.store.bytes(), uint64_t{400});
  CHECK_STATUS(Code::kExhausted,
               h.StatusOf(h.Send(0, StoreOperation::kPush, 8, std::vector<float>(200))));
}

TEST(an_asynchronous_value_outlives_a_push_that_has_no_memory) {
  Harness h(1, 1500);
  h.Send(0, StoreOperation::kInit, 7, std::vector<float>(250, 1), true);
  const uint64_t pull = h.Send(0, StoreOperation::kPull, 7, std::vector<float>(250), true);
  // The answer shares the value, so that the sum needs a copy.
  CHECK_STATUS(Code::kExhausted,
               h.StatusOf(h.Send(0, StoreOperation::kPush, 7, std::vector<float>(250, 2), true)));
  CHECK_EQ(h.store.bytes(), uint64_t{1000});
  const uint64_t again = h.Send(0, StoreOperation::kPull, 7, std::vector<float>(250), true);
  CHECK_TRUE(Values(h.answers[again].value) == std::vector<float>(250, 1));
  h.answers.erase(pull);
  h.answers.erase(again);
  CHECK_OK(h.StatusOf(h.Send(0, StoreOperation::kPush, 7, std::vector<float>(250, 2), true)));
  const uint64_t last = h.Send(0, StoreOperation::kPull, 7, std::vector<float>(250), true);
  CHECK_TRUE(Values(h.answers[last].value) == std::vector<float>(250, 3));
  CHECK_EQ(h.store.bytes(), uint64_t{1000});
}

TEST(requests_that_make_no_sense) {
  Harness h(2);
  const auto send = [&](const std::function<void(StoreRequest*)>& forge) {
    StoreRequest r;
    r.key = h.tickets;
    r.bytes = 8;
    r.payload = Floats({1, 2});
    forge(&r);
    return h.StatusOf(h.Ask(std::move(r)));
  };
  CHECK_STATUS(Code::kCorrupt,
               send([](StoreRequest* r) { r->operation = static_cast<StoreOperation>(9); }));
  CHECK_STATUS(Code::kCorrupt, send([](StoreRequest* r) { r->dtype = static_cast<DType>(99); }));
  CHECK_STATUS(Code::kCorrupt, send([](StoreRequest* r) { r->worker = 2; }));
  CHECK_STATUS(Code::kCorrupt, send([](StoreRequest* r) { r->worker = -1; }));
  CHECK_STATUS(Code::kCorrupt, send([](StoreRequest* r) { r->bytes = 7; }));
  CHECK_STATUS(Code::kCorrupt, send([](StoreRequest* r) { r->bytes = 12; }));
  CHECK_STATUS(Code::kCorrupt, send([](StoreRequest* r) { r->codec = FindCompression("2bit"); }));
}

TEST(rows_of_another_piece_are_refused) {
  for (const StoreOperation operation : {StoreOperation::kInit, StoreOperation::kPush}) {
    for (const int64_t row : {int64_t{-1}, int64_t{3}, int64_t{4}, int64_t{7}, int64_t{8}}) {
      Harness h(1);
      StoreRequest r;
      r.operation = operation;
      r.key = 7;
      r.offset = 32;  // rows 4 to 7
      r.bytes = 32;
      r.row_bytes = 8;
      r.payload = Buffer::Allocate(24);
      const int64_t set[3] = {1, row, 0};
      std::memcpy(r.payload.data, set, sizeof(set));
      const bool there = row >= 4 && row < 8;
      CHECK_STATUS(there ? Code::kOk : Code::kCorrupt, h.StatusOf(h.Ask(std::move(r))));
    }
  }
}

// A push of values of which no two sums in another order are alike.
StoreRequest PushOf(const std::string& kind, int worker) {
  const float scale[] = {1e8F, 1.1F, -1e8F, 1e-3F};
  std::vector<float> values(kind == "whole arrays" ? 5000 : 8);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = scale[worker] * (1 + static_cast<float>(i % 7) / 3);
  }
  StoreRequest r;
  r.worker = worker;
  r.key = 7;
  r.bytes = values.size() * sizeof(float);
  if (kind == "rows") {  // 0 and 2 of 0 to 3, of two elements
    r.row_bytes = 8;
    const int64_t head[] = {2, 0, 2};
    r.payload = Buffer::Allocate(sizeof(head) + 16);
    std::memcpy(r.payload.data, head, sizeof(head));
    std::memcpy(r.payload.data + sizeof(head), values.data(), 16);
  } else if (kind == "compressed") {
    r.codec = FindCompression("2bit");
    const float threshold = std::abs(scale[worker]);
    const std::vector<uint8_t> packed(r.codec->bytes(values.size()),
                                      scale[worker] > 0 ? 0xff : 0xaa);
    r.payload = Buffer::Allocate(sizeof(threshold) + packed.size());
    std::memcpy(r.payload.data, &threshold, sizeof(threshold));
    std::memcpy(r.payload.data + sizeof(threshold), packed.data(), packed.size());
  } else {
    r.payload = Floats(values);
  }
  return r;
}

// The sums of all orders of arrival, in each of two rounds.
std::set<std::string> SumsOf(const std::string& kind, bool deterministic) {
  std::set<std::string> sums;
  std::vector<int> order = {0, 1, 2, 3};
  do {
    Harness h(4, 1 << 20, deterministic);
    for (int round = 0; round < 2; ++round) {
      for (const int worker : order) h.Ask(PushOf(kind, worker));
      REQUIRE_OK(h.StatusOf(h.tickets));
      StoreRequest r = PushOf(kind, 0);
      r.operation = StoreOperation::kPull;
      r.payload = {};
      r.codec = nullptr;
      const Buffer& value = h.answers[h.Ask(std::move(r))].value;
      sums.emplace(value.data, value.bytes);
      CHECK_EQ(h.store.bytes(), value.bytes);  // nothing else is kept
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return sums;
}

TEST(where_order_counts_sums_are_those_in_the_order_of_ranks) {
  for (const std::string kind : {"whole arrays", "few elements", "rows", "compressed"}) {
    const std::set<std::string> sums = SumsOf(kind, true);
    CHECK_EQ(sums.size(), 1U);
    CHECK_TRUE(SumsOf(kind, false).size() > 1);
    CHECK_TRUE(SumsOf(kind, false).count(*sums.begin()) == 1);
    if (kind != "few elements") continue;
    float first;
    std::memcpy(&first, sums.begin()->data(), sizeof(first));
    CHECK_EQ(first, ((1e8F + 1.1F) - 1e8F) + 1e-3F);
  }
}

TEST(what_is_kept_for_its_order_is_checked_counted_and_given_back) {
  Harness h(2, 100, true);
  const uint64_t first = h.Send(0, StoreOperation::kPush, 7, std::vector<float>(15));
  CHECK_EQ(h.store.bytes(), uint64_t{60});
  CHECK_STATUS(Code::kExhausted,
               h.StatusOf(h.Send(1, StoreOperation::kPush, 7, std::vector<float>(15))));
  CHECK_STATUS(Code::kExhausted, h.StatusOf(first));  // no sum without the other's part
  CHECK_STATUS(Code::kExhausted,
               h.StatusOf(h.Send(0, StoreOperation::kPush, 7, std::vector<float>(15))));
  CHECK_EQ(h.store.bytes(), uint64_t{0});

  StoreRequest rows = PushOf("rows", 0);
  rows.key = 8;
  rows.payload.bytes -= 1;
  CHECK_STATUS(Code::kCorrupt, h.StatusOf(h.Ask(std::move(rows))));
}

// Rows 0 and 2: 40 bytes, of which a sum of them holds 32.
TEST(rows_have_the_limit_too) {
  for (const bool deterministic : {false, true}) {
    Harness h(2, 130, deterministic);
    const auto send = [&](StoreOperation operation, int worker, uint64_t key) {
      StoreRequest r = PushOf("rows", worker);
      r.operation = operation;
      r.key = key;
      return h.Ask(std::move(r));
    };
    CHECK_OK(h.StatusOf(send(StoreOperation::kInit, 0, 7)));
    CHECK_EQ(h.store.bytes(), uint64_t{40});
    const uint64_t first = send(StoreOperation::kPush, 0, 7);
    CHECK_EQ(h.store.bytes(), uint64_t{deterministic ? 80U : 72U});
    const uint64_t second = send(StoreOperation::kPush, 1, 7);
    CHECK_OK(h.StatusOf(first));
    CHECK_OK(h.StatusOf(second));
    CHECK_EQ(h.store.bytes(), uint64_t{40});  // the value alone

    CHECK_OK(h.StatusOf(send(StoreOperation::kInit, 0, 8)));
    CHECK_OK(h.StatusOf(send(StoreOperation::kInit, 0, 9)));
    const Status full = h.StatusOf(send(StoreOperation::kInit, 0, 10));
    CHECK_STATUS(Code::kExhausted, full);
    CHECK_TRUE(full.text().find("MERCURY_SERVER_BYTES_MAX is 130") != std::string::npos);
    CHECK_STATUS(Code::kExhausted, h.StatusOf(send(StoreOperation::kPush, 0, 7)));
    CHECK_EQ(h.store.bytes(), uint64_t{120});
  }
}

TEST(a_round_of_rows_that_fails_gives_its_memory_back) {
  Harness h(2);
  h.Ask(PushOf("rows", 0));
  CHECK_EQ(h.store.bytes(), uint64_t{32});
  std::vector<StoreReply> replies;
  h.store.Departed(1, &replies);
  CHECK_EQ(replies.size(), size_t{1});
  CHECK_EQ(h.store.bytes(), uint64_t{0});
}

TEST(zero_size_tensors_synchronise) {
  Harness h(2);
  const uint64_t a = h.Send(0, StoreOperation::kPush, 7, {});
  CHECK_TRUE(!h.Answered(a));
  h.Send(1, StoreOperation::kPush, 7, {});
  CHECK_STATUS(Code::kOk, h.StatusOf(a));
  CHECK_STATUS(Code::kOk, h.StatusOf(h.Send(1, StoreOperation::kPull, 7, {})));
}

TEST(random_rounds_match_a_reference) {
  mercury::testing::Random random;
  for (int trial = 0; trial < 30; ++trial) {
    const int workers = 1 + static_cast<int>(random() % 5);
    Harness h(workers);
    const int keys = 1 + static_cast<int>(random() % 4);
    struct Place {
      int rounds = 0;  // that this worker has pushed of this key
      uint64_t push = 0, pull = 0;
      bool asks = false;  // its pull is still to be sent
    };
    std::vector<Place> places(static_cast<size_t>(workers * keys));
    const auto value = [](int worker, int key, int round) {
      return static_cast<float>((worker + 1) * 3 + key * 7 + round);
    };
    for (int step = 0; step < 600; ++step) {
      const int worker = static_cast<int>(random() % static_cast<uint64_t>(workers));
      const int key = static_cast<int>(random() % static_cast<uint64_t>(keys));
      Place& place = places[static_cast<size_t>(worker * keys + key)];
      if (place.asks) {
        place.asks = false;
        place.pull = h.Send(worker, StoreOperation::kPull, static_cast<uint64_t>(key),
                            std::vector<float>(5));
      } else if (place.rounds == 0 || h.Answered(place.pull)) {
        if (place.rounds != 0) {
          float expected = 0;
          for (int w = 0; w < workers; ++w) expected += value(w, key, place.rounds - 1);
          CHECK_TRUE(h.Answered(place.push));
          CHECK_TRUE(Values(h.answers[place.pull].value) == std::vector<float>(5, expected));
        }
        place.push = h.Send(worker, StoreOperation::kPush, static_cast<uint64_t>(key),
                            std::vector<float>(5, value(worker, key, place.rounds)));
        ++place.rounds;
        place.asks = true;
      }
    }
  }
}
