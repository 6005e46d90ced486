// The shell of the data plane over loopback: every policy, lanes and checksums, nodes that
// disagree, and a worker that knows the token but sends what it must not.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "packets/plane.h"

using namespace mercury;
namespace {

using testing::Plane;
using testing::PlaneEvent;
using testing::PlaneOptions;

const std::vector<size_t> kSizes = {1, 7, 0, 1000, 70001};

void Trains(const MercuryOptions& options) {
  Plane plane(options);
  plane.StartWorkers();
  REQUIRE_TRUE(plane.WaitReady());
  for (int round = 0; round < 3; ++round) CHECK_TRUE(plane.Round(kSizes));
  for (int w = 0; w < options.workers; ++w) {
    const auto fetched = plane.Submit(w, 4, kSizes[4], 9, true);
    REQUIRE_TRUE(plane.WaitDone());
    CHECK_OK(fetched->status);
    CHECK_TRUE(plane.Right(*fetched, 4));
  }
  plane.Stop();
  CHECK_EQ(plane.events().size(), size_t{0});
}

TEST(every_policy_gives_the_right_sums) {
  for (const PolicyKind kind :
       {PolicyKind::kPriority, PolicyKind::kFifo, PolicyKind::kWfbp, PolicyKind::kP3,
        PolicyKind::kByteScheduler, PolicyKind::kProphet}) {
    MercuryOptions options = PlaneOptions(2, 2);
    options.policy.kind = kind;
    options.policy.unit_bytes = 3 * options.policy.packet_bytes;
    Trains(options);
  }
}

TEST(lanes_and_check_sums) {
  MercuryOptions options = PlaneOptions(2, 1);
  options.lanes = 3;
  options.checksum = true;
  Trains(options);
}

TEST(small_credit_small_buffers_and_the_order_of_ranks) {
  MercuryOptions options = PlaneOptions(3, 2);
  options.policy.packet_bytes = 1024;
  options.policy.credit.fixed_bytes = 2000;
  options.deterministic = true;
  options.tcp.send_buffer_bytes = 4096;
  options.tcp.receive_buffer_bytes = 4096;
  options.tcp.congestion = "";
  Trains(options);
}

TEST(workers_that_share_a_host) {
  for (const bool beside : {true, false}) {
    for (const int lanes : {1, 3}) {
      MercuryOptions options = PlaneOptions(5, 2);
      options.hosts =
          Hosts({0, 0, 0, 1, 1}, beside ? std::vector<int>{0, 1} : std::vector<int>{2, 2});
      options.lanes = lanes;
      options.deterministic = beside && lanes == 3;
      Trains(options);
    }
  }
}

TEST(a_leader_that_ends_is_lost_to_those_who_follow) {
  MercuryOptions options = PlaneOptions(2, 1);
  options.hosts = Hosts({0, 0}, {1});
  Plane plane(options);
  plane.StartWorkers();
  REQUIRE_TRUE(plane.WaitReady());
  CHECK_TRUE(plane.Round({5000}));
  // A leader that has finished serves what it has, and says so; the other's next sum names it.
  plane.worker(0).Stop();
  const auto late = plane.Submit(1, 0, 5000, 0);
  REQUIRE_TRUE(plane.WaitDone());
  CHECK_STATUS(Code::kPeerLost, late->status);
  CHECK_TRUE(late->status.text().find("worker 0 has finished") != std::string::npos);
}

TEST(who_comes_to_a_leader_from_another_host_is_refused) {
  MercuryOptions options = PlaneOptions(3, 1);
  options.hosts = Hosts({0, 0, 1}, {2});
  Plane plane(options);
  plane.StartWorker(0, plane.Of(0));
  plane.StartWorker(1, plane.Of(1));
  MercuryOptions lost = plane.Of(2);
  lost.hosts = Hosts({0, 5, 0}, {2});  // it thinks that it follows worker 0
  plane.StartWorker(2, lost);
  CHECK_TRUE(plane.WaitEvent());
  const PlaneEvent event = plane.events().front();
  CHECK_EQ(event.rank, 2);
  CHECK_EQ(event.peer, 0);
}

TEST(the_figures_of_both_ends_agree) {
  Plane plane(PlaneOptions(1, 1));
  plane.StartWorkers();
  REQUIRE_TRUE(plane.WaitReady());
  CHECK_TRUE(plane.Round({1000}));
  const std::string worker = plane.worker(0).Figures();
  const std::string server = plane.server(0).Figures();
  CHECK_TRUE(worker.find("\"peer\":\"server 0\"") != std::string::npos);
  CHECK_TRUE(server.find("\"peer\":\"worker 0\"") != std::string::npos);
  // 4000 bytes of data and a header; the declaration beside it.
  const auto number = [](const std::string& text, const std::string& name) {
    return std::stoull(text.substr(text.find("\"" + name + "\":") + name.size() + 3));
  };
  CHECK_TRUE(number(worker, "bytes_sent") > 4000);
  CHECK_EQ(number(worker, "bytes_sent"), number(server, "bytes_received"));
  CHECK_EQ(number(worker, "bytes_received"), number(server, "bytes_sent"));
  CHECK_EQ(number(worker, "bytes_received"), 4024ULL);
  plane.Stop();
  CHECK_EQ(plane.worker(0).Figures(), "{}");
}

TEST(figures_may_be_asked_for_while_a_node_stops) {
  for (int i = 0; i < 30; ++i) {
    Plane plane(PlaneOptions(1, 1));
    plane.StartWorkers();
    REQUIRE_TRUE(plane.WaitReady());
    std::atomic<bool> over{false};
    std::thread curious([&] {
      while (!over) {
        plane.server(0).Figures();
        plane.worker(0).Figures();
      }
    });
    plane.Stop();
    over = true;
    curious.join();
    CHECK_EQ(plane.server(0).Figures(), "{}");
  }
}

// The worker with other settings hears which, and every operation fails with that.
void Disagrees(const std::string& expected, const std::function<void(MercuryOptions*)>& change) {
  Plane plane(PlaneOptions(2, 1));
  plane.StartWorker(0, plane.Of(0));
  MercuryOptions other = plane.Of(1);
  change(&other);
  plane.StartWorker(1, other);
  REQUIRE_TRUE(plane.WaitEvent());
  const PlaneEvent event = plane.events().at(0);
  CHECK_FALSE(event.at_server);
  CHECK_EQ(event.rank, 1);
  CHECK_EQ(event.peer, 0);
  if (event.status.text().find(expected) == std::string::npos) {
    CHECK_EQ(event.status.text(), expected);
  }
  const auto exchange = plane.Submit(1, 1, 10, 0);
  REQUIRE_TRUE(plane.WaitDone());
  CHECK_EQ(exchange->status.text(), event.status.text());
}

TEST(nodes_that_disagree_say_about_what) {
  Disagrees("the worker has MERCURY_POLICY number 1, the server 0",
            [](MercuryOptions* o) { o->policy.kind = PolicyKind::kFifo; });
  Disagrees("the worker has MERCURY_PACKET_BYTES 8192, the server 4096",
            [](MercuryOptions* o) { o->policy.packet_bytes = 8192; });
  Disagrees("the worker has MERCURY_LANES 2, the server 1",
            [](MercuryOptions* o) { o->lanes = 2; });
  Disagrees("the worker has MERCURY_CHECKSUM 1, the server 0",
            [](MercuryOptions* o) { o->checksum = true; });
  Disagrees("do both have the same job token?", [](MercuryOptions* o) {
    o->job = {78};
    o->handshake_timeout_us = 4000000;  // it knocks until then
  });
  Disagrees("do both have the same job token?", [](MercuryOptions* o) {
    o->token = "a guess";
    o->handshake_timeout_us = 4000000;  // it knocks until then
  });
}

TEST(a_server_that_is_not_there) {
  Plane plane(PlaneOptions(1, 1));
  plane.server(0).Stop();
  MercuryOptions options = plane.Of(0);
  options.handshake_timeout_us = 300000;
  plane.StartWorker(0, options);
  REQUIRE_TRUE(plane.WaitEvent());
  CHECK_STATUS(Code::kPeerLost, plane.events().at(0).status);
}

// A worker by hand: it shakes hands as it should, then sends what the test says.
class RawWorker {
 public:
  RawWorker(const Address& server, const MercuryOptions& options)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)), checksum_(options.checksum) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(server.port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE_EQ(connect(socket_.fd(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    Terms terms = options.terms();
    terms.server = 0;
    const HmacKey key = DataKey(options.token, options.job);
    WorkerHandshake handshake(key, terms, RandomNonce());
    while (!handshake.done()) {
      char buffer[256];
      const ssize_t got =
          recv(socket_.fd(), buffer, std::min(sizeof(buffer), handshake.wants()), 0);
      REQUIRE_TRUE(got > 0);
      std::string reply;
      REQUIRE_OK(handshake.Feed(buffer, static_cast<size_t>(got), &reply));
      Send(reply);
    }
  }
  void Send(const std::string& bytes) {
    size_t at = 0;
    while (at < bytes.size()) {
      const ssize_t sent = send(socket_.fd(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return;  // the server has heard enough
      at += static_cast<size_t>(sent);
    }
  }
  void HangUp() { socket_.Close(); }

  static std::string Packet(PacketKind kind, uint32_t tensor, uint64_t offset, uint8_t round,
                            const std::string& payload) {
    Header header;
    header.kind = kind;
    header.tensor = tensor;
    header.offset = offset;
    header.round = round;
    header.length = static_cast<uint32_t>(payload.size());
    const HeaderBytes bytes = Encode(header);
    return std::string(bytes.begin(), bytes.end()) + payload;
  }
  static std::string Declare(uint64_t elements) {
    Declaration d;
    d.key = 5;
    d.elements = elements;
    d.name = "tensor5";
    return Packet(PacketKind::kDeclare, 0, 0, 0, Encode(d));
  }

 private:
  TcpSocket socket_;
  bool checksum_;
};

struct Bad {
  const char* name;
  std::string bytes;
  Code code;
  const char* reason;
};

void IsRefused(const MercuryOptions& options, const Bad& bad) {
  Plane plane(options);
  plane.StartWorker(0, plane.Of(0));
  REQUIRE_TRUE(plane.WaitReady());
  const auto waits = plane.Submit(0, 5, 100, 0);
  RawWorker raw(plane.address(0), plane.Of(1));
  raw.Send(bad.bytes);
  if (bad.code == Code::kPeerLost) raw.HangUp();
  REQUIRE_TRUE(plane.WaitEvent());
  const PlaneEvent event = plane.events().at(0);
  CHECK_TRUE(event.at_server);
  CHECK_EQ(event.peer, 1);
  CHECK_STATUS(bad.code, event.status);
  if (event.status.text().find(bad.reason) == std::string::npos) {
    CHECK_EQ(std::string(bad.name) + ": " + event.status.text(), bad.reason);
  }
  REQUIRE_TRUE(plane.WaitDone());
  CHECK_EQ(waits->status.text(), event.status.text());
  plane.Stop();
  CHECK_EQ(plane.events().size(), size_t{1});
}

TEST(what_a_worker_must_not_send) {
  const std::string declared = RawWorker::Declare(100);
  const auto data = [](uint32_t tensor, uint64_t offset, uint8_t round, size_t bytes) {
    return RawWorker::Packet(PacketKind::kData, tensor, offset, round, std::string(bytes, 'x'));
  };
  std::string unmarked = data(0, 0, 1, 400);
  unmarked[22] = 'X';
  std::string unknown_type = declared;
  unknown_type[kHeaderBytes + 16] = 99;
  std::string cut_off = RawWorker::Packet(PacketKind::kDeclare, 0, 0, 0, "short");
  std::string second = declared + declared;
  second[declared.size() + kHeaderBytes] = 6;  // its key
  const std::vector<Bad> cases = {
      {"no mark", declared + unmarked, Code::kCorrupt, "does not begin where it should"},
      {"unknown tensor", declared + data(3, 0, 1, 400), Code::kCorrupt,
       "tensor number 3, which it has not declared"},
      {"nothing declared", data(0, 0, 1, 400), Code::kCorrupt, "which it has not declared"},
      {"round", declared + data(0, 0, 2, 400), Code::kCorrupt,
       "tensor 'tensor5': a packet of round 2 (modulo 256) while 1 is summed"},
      {"too long for its tensor", declared + data(0, 0, 1, 464), Code::kCorrupt,
       "does not fit its slot"},
      {"too long for a packet", declared + data(0, 0, 1, 4160), Code::kCorrupt, ""},
      {"ends inside an element", declared + data(0, 0, 1, 66), Code::kCorrupt,
       "66 bytes at 0, which does not fit its slot"},
      {"beyond the end", declared + data(0, 1 << 20, 1, 64), Code::kCorrupt, "beyond its end"},
      {"twice", declared + data(0, 0, 1, 64) + data(0, 0, 1, 64), Code::kCorrupt,
       "tensor 'tensor5': it sent the piece at 0 twice in round 1"},
      {"a part left out", declared + data(0, 32, 1, 64), Code::kCorrupt, "out of order, at 32"},
      {"a server's packet", declared + RawWorker::Packet(PacketKind::kSum, 0, 0, 1, "x"),
       Code::kCorrupt, "only servers send"},
      {"unknown kind", RawWorker::Packet(static_cast<PacketKind>(77), 0, 0, 1, ""), Code::kCorrupt,
       ""},
      {"unknown type", unknown_type, Code::kCorrupt, "unknown type 99"},
      {"declaration cut off", cut_off, Code::kCorrupt, "cut off"},
      {"one number for two", second, Code::kCorrupt, "number 0, which is another's"},
      {"gone in a packet", declared + data(0, 0, 1, 400).substr(0, 100), Code::kPeerLost,
       "its connection was closed"},
      {"gone without a goodbye", declared, Code::kPeerLost, "its connection was closed"},
  };
  for (const Bad& bad : cases) IsRefused(PlaneOptions(2, 1), bad);
}

TEST(a_wrong_check_sum) {
  MercuryOptions options = PlaneOptions(2, 1);
  options.checksum = true;
  IsRefused(options, {"checksum", RawWorker::Declare(100) + "abcd", Code::kCorrupt,
                      "a packet whose checksum is wrong"});
}

TEST(a_worker_that_says_goodbye_is_not_lost) {
  Plane plane(PlaneOptions(2, 1));
  plane.StartWorker(0, plane.Of(0));
  REQUIRE_TRUE(plane.WaitReady());
  RawWorker raw(plane.address(0), plane.Of(1));
  raw.Send(RawWorker::Packet(PacketKind::kGoodbye, 0, 0, 0, ""));
  raw.HangUp();
  // Who waits for it hears so.
  const auto waits = plane.Submit(0, 5, 100, 0);
  REQUIRE_TRUE(plane.WaitDone());
  CHECK_STATUS(Code::kPeerLost, waits->status);
  CHECK_TRUE(waits->status.text().find("worker 1 has finished") != std::string::npos);
  CHECK_EQ(plane.events().size(), size_t{0});
}

// It has finished, by what the scheduler says, sooner or later than its link ends; what it sent
// last does not come any more.
TEST(a_worker_that_has_left_without_a_goodbye_is_not_waited_for) {
  for (const bool said_first : {true, false}) {
    MercuryOptions options = PlaneOptions(2, 1);
    options.elastic = true;
    Plane plane(options);
    plane.StartWorker(0, plane.Of(0));
    REQUIRE_TRUE(plane.WaitReady());
    RawWorker raw(plane.address(0), plane.Of(1));
    raw.Send(RawWorker::Declare(100));
    const auto waits = plane.Submit(0, 5, 100, 0);
    const int64_t until = NowMs() + 60000;
    const std::string there = "\"worker 1\",\"connected\":1";
    while (plane.server(0).Figures().find(there) == std::string::npos)
      REQUIRE_TRUE(NowMs() < until);
    if (said_first) plane.server(0).Departed(1);
    raw.HangUp();
    if (!said_first) {
      REQUIRE_TRUE(plane.WaitEvent());
      plane.server(0).Departed(1);
    }
    REQUIRE_TRUE(plane.WaitDone());
    CHECK_OK(waits->status);
    CHECK_TRUE(waits->sum == waits->values);
  }
}

TEST(a_worker_that_leaves_a_failed_job_has_not_finished) {
  Plane plane(PlaneOptions(2, 1));
  plane.StartWorker(0, plane.Of(0));
  REQUIRE_TRUE(plane.WaitReady());
  {
    RawWorker raw(plane.address(0), plane.Of(1));
    raw.Send(RawWorker::Packet(PacketKind::kGoodbye, 0, 1, 0, ""));
    raw.HangUp();
  }
  const int64_t until = NowMs() + 60000;
  const std::string gone = "\"worker 1\",\"connected\":0";
  while (plane.server(0).Figures().find(gone) == std::string::npos) REQUIRE_TRUE(NowMs() < until);
  const auto waits = plane.Submit(0, 5, 100, 0);
  const auto fetches = plane.Submit(0, 6, 100, 0, true);
  while (plane.server(0).Figures().find("\"tensors\":2") == std::string::npos) {
    REQUIRE_TRUE(NowMs() < until);
  }
  CHECK_EQ(int{waits->times_done}, 0);  // the control plane will say why
  CHECK_EQ(int{fetches->times_done}, 0);
  CHECK_EQ(plane.events().size(), size_t{0});
}

TEST(a_second_connection_of_a_worker_changes_nothing) {
  Plane plane(PlaneOptions(2, 1));
  plane.StartWorkers();
  REQUIRE_TRUE(plane.WaitReady());
  RawWorker again(plane.address(0), plane.Of(1));
  again.Send(RawWorker::Declare(3));
  CHECK_TRUE(plane.Round(kSizes));
  CHECK_EQ(plane.events().size(), size_t{0});
}

TEST(different_shapes_name_both_workers) {
  Plane plane(PlaneOptions(2, 2));
  plane.StartWorkers();
  REQUIRE_TRUE(plane.WaitReady());
  const auto five = plane.Submit(0, 1, 5, 0);
  const auto six = plane.Submit(1, 1, 6, 0);
  REQUIRE_TRUE(plane.WaitDone());
  for (const auto& exchange : {five, six}) {
    CHECK_STATUS(Code::kInvalidArgument, exchange->status);
    const std::string& text = exchange->status.text();
    CHECK_TRUE(text.find("tensor 'tensor1'") != std::string::npos);
    CHECK_TRUE(text.find("worker 0 has") != std::string::npos);
    CHECK_TRUE(text.find("worker 1 has") != std::string::npos);
  }
  CHECK_EQ(plane.events().size(), size_t{0});
}

}  // namespace
