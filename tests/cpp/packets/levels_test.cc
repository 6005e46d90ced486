#include "packets/levels.h"

#include <string>
#include <vector>

#include "harness.h"
#include "packets/lone_server.h"
#include "packets/lone_worker.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

// What a worker is told to catch up with: "number up to elements, round".
std::vector<std::string> Told(LoneServer* server, int worker) {
  std::vector<std::string> told;
  for (const Got& got : server->Drain(worker)) {
    if (got.header.kind != PacketKind::kBehind) continue;
    told.push_back(std::to_string(got.header.tensor) + " up to " +
                   std::to_string(got.header.offset) + ", " + std::to_string(got.header.round));
  }
  return told;
}

using Lines = std::vector<std::string>;

// Each on a host of its own, and so is the server.
AggregatorOptions Apart(int workers) {
  AggregatorOptions options = Options(workers);
  std::vector<int> hosts;
  for (int w = 0; w < workers; ++w) hosts.push_back(w);
  options.hosts = Hosts(std::move(hosts), {workers});
  return options;
}

// Two tensors of two slots, 0 and 1, which all workers have declared.
void DeclareTwo(LoneServer* server, int workers) {
  for (int w = 0; w < workers; ++w) {
    for (uint32_t t = 0; t < 2; ++t) REQUIRE_OK(server->Declare(w, t, t + 1, 1536));
  }
}

}  // namespace

TEST(who_is_behind_is_told_once_how_far_others_have_come) {
  Levels levels(3);
  levels.Came(0, 1, 300);
  CHECK_EQ(levels.Tell(0), 0U);
  CHECK_EQ(levels.Tell(1), 300U);
  CHECK_EQ(levels.Tell(1), 0U);
  levels.Came(1, 1, 100);
  CHECK_EQ(levels.Tell(1), 0U);
  levels.Came(2, 1, 400);
  CHECK_EQ(levels.Tell(0), 400U);
  CHECK_EQ(levels.Tell(1), 400U);
  CHECK_EQ(levels.Tell(2), 0U);
}

TEST(a_round_begins_at_nothing) {
  Levels levels(2);
  levels.Came(0, 255, 300);
  levels.Came(1, 255, 300);
  levels.Came(0, 0, 100);
  CHECK_EQ(levels.round(), 0U);
  CHECK_EQ(levels.Tell(1), 100U);
  levels.Came(1, 0, 100);
  levels.Came(0, 1, 100);
  CHECK_EQ(levels.Tell(1), 100U);  // as far, and yet in another round
}

TEST(whoever_has_left_a_tensor_is_told_when_others_leave_it_further_on) {
  LoneServer server(Apart(3));
  DeclareTwo(&server, 3);
  REQUIRE_OK(server.Data(0, 0, 0, 1, Of(128, 1)));
  REQUIRE_OK(server.Data(1, 0, 0, 1, Of(64, 1)));
  REQUIRE_OK(server.Data(1, 1, 0, 1, Of(64, 1)));  // leaves it, behind worker 0
  CHECK_TRUE(Told(&server, 1) == Lines{"0 up to 128, 1"});
  REQUIRE_OK(server.Data(0, 0, 128, 1, Of(64, 1)));
  CHECK_TRUE(Told(&server, 1).empty());            // worker 0 is still at it
  CHECK_TRUE(Told(&server, 2).empty());            // and this one has sent nothing yet
  REQUIRE_OK(server.Data(0, 1, 0, 1, Of(64, 1)));  // leaves it
  CHECK_TRUE(Told(&server, 0).empty());
  CHECK_TRUE(Told(&server, 1) == Lines{"0 up to 192, 1"});
  REQUIRE_OK(server.Data(1, 0, 64, 1, Of(64, 1)));  // catches up, in between
  REQUIRE_OK(server.Data(1, 1, 64, 1, Of(64, 1)));
  CHECK_TRUE(Told(&server, 1).empty());
  REQUIRE_OK(server.Data(2, 1, 0, 1, Of(64, 1)));  // begins with the other
  REQUIRE_OK(server.Data(1, 0, 128, 1, Of(64, 1)));
  REQUIRE_OK(server.Data(2, 0, 0, 1, Of(64, 1)));
  CHECK_TRUE(Told(&server, 2) == Lines{"1 up to 128, 1"});
}

TEST(places_count_the_slots_before) {
  LoneServer server(Apart(2));
  DeclareTwo(&server, 2);
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Data(w, 0, 0, 1, Of(768, 1)));
  REQUIRE_OK(server.Data(0, 0, 768, 1, Of(64, 1)));
  REQUIRE_OK(server.Data(1, 1, 0, 1, Of(64, 1)));
  CHECK_TRUE(Told(&server, 1) == Lines{"0 up to 832, 1"});
}

TEST(who_does_not_read_is_not_told_for_ever) {
  LoneServer server(Apart(2));
  for (int w = 0; w < 2; ++w) {
    for (uint32_t t = 0; t < 2; ++t) REQUIRE_OK(server.Declare(w, t, t + 1, 102400));
  }
  for (uint32_t t = 0; t < 2; ++t) REQUIRE_OK(server.Data(1, t, 0, 1, Of(64, 1)));
  for (uint64_t at = 0; at < 1024; at += 64) {
    for (uint32_t t = 0; t < 2; ++t) REQUIRE_OK(server.Data(0, t, at, 1, Of(64, 1)));
  }
  CHECK_TRUE(Told(&server, 1).size() > 10);
  for (uint64_t slot = 1; slot < 100; ++slot) {
    for (uint32_t t = 0; t < 2; ++t) REQUIRE_OK(server.Data(0, t, slot * 1024, 1, Of(1024, 1)));
  }
  const size_t told = Told(&server, 1).size();
  CHECK_TRUE(told > 50 && told < 70);
}

TEST(nobody_is_told_where_nothing_would_be_won) {
  AggregatorOptions fifo = Apart(2), lanes = Apart(2), beside = Apart(2);
  fifo.policy = PolicyKind::kFifo;  // nothing overtakes
  lanes.lanes = 2;                  // slots go whole
  lanes.wake = [](int) {};
  beside.hosts = Hosts({0, 1}, {0});  // its way out is used by a worker, too
  for (const AggregatorOptions& options : {fifo, lanes, beside}) {
    LoneServer server(options);
    const int next = options.lanes;  // its first link
    for (const int link : {0, next}) {
      for (uint32_t t = 0; t < 2; ++t) REQUIRE_OK(server.Declare(link, t, t + 1, 1536));
    }
    REQUIRE_OK(server.Data(0, 0, 0, 1, Of(128, 1)));
    REQUIRE_OK(server.Data(next, 0, 0, 1, Of(64, 1)));
    REQUIRE_OK(server.Data(next, 1, 0, 1, Of(64, 1)));
    CHECK_TRUE(Told(&server, next).empty());
  }
}

namespace {

// The numbers of the tensors that its next packets are of.
std::string NextOnes(LoneWorker* worker, size_t most) {
  std::string numbers;
  for (const OutPacket& packet : worker->Take(most)) {
    if (packet.header.kind == PacketKind::kData) numbers += std::to_string(packet.header.tensor);
  }
  return numbers;
}

Status SayBehind(LoneWorker* worker, uint32_t tensor, uint64_t front, uint8_t round) {
  Header header;
  header.kind = PacketKind::kBehind;
  header.tensor = tensor;
  header.offset = front;
  header.round = round;
  return worker->Receive(header, "");
}

}  // namespace

TEST(a_worker_that_is_behind_catches_up_in_between) {
  LoneWorker worker(WorkerOptions());
  const auto first = worker.Tensor(1, 64), low = worker.Tensor(2, 10000);
  const auto high = worker.Tensor(3, 10000);
  worker.Submit(first.get(), 9);  // the most urgent of all
  CHECK_EQ(NextOnes(&worker, 2), "0");
  worker.Submit(low.get(), 1);
  CHECK_EQ(NextOnes(&worker, 3), "11");
  worker.Submit(high.get(), 2);
  CHECK_EQ(NextOnes(&worker, 2), "2");
  CHECK_OK(SayBehind(&worker, 1, 4 * 960, 1));  // two more slots of it
  CHECK_EQ(NextOnes(&worker, 6), "121222");
  CHECK_OK(SayBehind(&worker, 1, 3 * 960, 1));  // which has been sent meanwhile
  CHECK_OK(SayBehind(&worker, 1, 10000, 2));    // of a round that has not begun
  CHECK_EQ(NextOnes(&worker, 2), "22");
  CHECK_OK(SayBehind(&worker, 1, ~uint64_t{0}, 1));
  CHECK_EQ(NextOnes(&worker, 3), "121");
  CHECK_STATUS(Code::kCorrupt, SayBehind(&worker, 7, 64, 1));
}

TEST(a_worker_may_hear_that_it_is_behind_before_it_begins) {
  LoneWorker worker(WorkerOptions());
  const auto first = worker.Tensor(1, 64), low = worker.Tensor(2, 1920);
  const auto high = worker.Tensor(3, 10000);
  worker.Submit(first.get(), 9);
  worker.Submit(low.get(), 1);
  worker.Drain();
  for (const uint64_t at : {0, 960}) CHECK_OK(worker.Sum(1, at, 1, std::string(960, 'x')));
  REQUIRE_EQ(low->outcomes.size(), 1U);
  CHECK_OK(SayBehind(&worker, 1, 960, 2));
  worker.Submit(high.get(), 2);
  CHECK_EQ(NextOnes(&worker, 2), "2");
  worker.Submit(low.get(), 1);
  CHECK_EQ(NextOnes(&worker, 4), "1222");
}
