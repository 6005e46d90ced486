// Workers that share a host: what crosses its links, who gets what, and what happens when one of
// them leaves, fails or never comes.
#include <memory>
#include <string>
#include <vector>

#include "packets/lone_server.h"
#include "packets/lone_worker.h"
#include "packets/packet_job.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

// Two hosts of three workers each: 0, 1, 2 and 3, 4, 5. A server beside each, or both elsewhere.
NetworkOptions TwoHosts(bool beside) {
  NetworkOptions o;
  o.workers = 6;
  o.shares = ServerShares(2);
  o.policy.packet_bytes = 4096;
  o.hosts = Hosts({0, 0, 0, 1, 1, 1}, beside ? std::vector<int>{0, 1} : std::vector<int>{2, 2});
  return o;
}

struct Bench {
  explicit Bench(const NetworkOptions& options)
      : network(options, &random), job(&network, &random) {}

  // All give it; what each hears.
  std::vector<Status> Sum(size_t tensor, const std::vector<int>& workers) {
    std::vector<Status> heard(6, Status::Timeout("nothing"));
    for (const int w : workers) {
      job.Submit(w, tensor, 0, [&heard, w](const Status& s) { heard[static_cast<size_t>(w)] = s; });
    }
    network.Run([this] { return job.over(); });
    return heard;
  }
  uint64_t Sent(int worker, int server) { return network.pipe(true, worker, server).bytes(); }

  Random random;
  Network network;
  Job job;
};

bool Near(uint64_t bytes, uint64_t expected) {
  return bytes > expected * 9 / 10 && bytes < expected * 11 / 10;
}

const std::vector<int> kAll = {0, 1, 2, 3, 4, 5};

}  // namespace

TEST(one_copy_leaves_a_host_and_one_sum_comes) {
  for (const bool beside : {true, false}) {
    Bench bench(TwoHosts(beside));
    const size_t t = bench.job.Add(1, DType::kFloat32, 50000);
    for (int round = 0; round < 3; ++round) {
      for (const Status& status : bench.Sum(t, kAll)) CHECK_OK(status);
    }
    CHECK_EQ(bench.job.wrong(), 0U);
    const uint64_t half = 3 * 100000;
    for (const int w : kAll) {
      for (const int s : {0, 1}) {
        const bool own = beside && (w < 3) == (s == 0);
        const bool sends = own || w == 0 || w == 3;
        CHECK_TRUE(sends ? Near(bench.Sent(w, s), half) : bench.Sent(w, s) < 1000);
        const uint64_t came = bench.network.pipe(false, w, s).bytes();
        CHECK_TRUE(sends ? Near(came, half) : came < 1000);
      }
    }
  }
}

TEST(who_only_pushes_is_told_when_the_sum_is_made) {
  for (const std::vector<int>& quiet : {std::vector<int>{0}, {1}, {0, 1, 2}, kAll}) {
    Bench bench(TwoHosts(false));
    const size_t t = bench.job.Add(1, DType::kInt32, 5000);
    size_t told = 0;
    for (const int w : kAll) {
      const bool pushes = std::count(quiet.begin(), quiet.end(), w) != 0;
      bench.job.Submit(
          w, t, 0,
          [&](const Status& status) {
            CHECK_OK(status);
            ++told;
          },
          pushes);
    }
    CHECK_TRUE(bench.network.Run([&] { return told == 6; }));
    bench.network.Settle();
    // And then asks for it: the servers have it.
    for (const int w : quiet) bench.job.Fetch(w, t, 0, [&](const Status& s) { CHECK_OK(s); });
    CHECK_TRUE(bench.network.Run([&] { return bench.job.over(); }));
    CHECK_EQ(bench.job.wrong(), 0U);
  }
}

TEST(a_host_that_differs_fails_the_tensor_for_all) {
  // Within a host, and between hosts.
  for (const int other : {1, 2, 3, 4}) {
    Bench bench(TwoHosts(false));
    const size_t t = bench.job.Add(1, DType::kInt32, 5000),
                 fine = bench.job.Add(2, DType::kInt32, 9);
    bench.job.Resize(other, t, 4999);
    const std::vector<Status> heard = bench.Sum(t, kAll);
    for (const Status& status : heard) {
      CHECK_STATUS(Code::kInvalidArgument, status);
      CHECK_TRUE(status.text().find("4999 elements") != std::string::npos);
      CHECK_TRUE(status.text().find("worker " + std::to_string(other)) != std::string::npos);
    }
    for (const Status& status : bench.Sum(fine, kAll)) CHECK_OK(status);
  }
}

TEST(who_has_left_is_named_on_every_host) {
  for (const int gone : {0, 1, 3, 5}) {
    Bench bench(TwoHosts(gone % 2 == 1));
    const size_t t = bench.job.Add(1, DType::kFloat32, 9000);
    for (const Status& status : bench.Sum(t, kAll)) CHECK_OK(status);
    bench.network.Settle();
    bench.network.Depart(gone);
    std::vector<int> rest = kAll;
    rest.erase(rest.begin() + gone);
    const std::vector<Status> heard = bench.Sum(t, rest);
    for (const int w : rest) {
      const Status& status = heard[static_cast<size_t>(w)];
      CHECK_STATUS(Code::kPeerLost, status);
      CHECK_TRUE(status.text().find("worker " + std::to_string(gone) + " has finished") !=
                 std::string::npos);
    }
  }
}

TEST(who_does_not_come_is_named_and_nobody_of_its_host) {
  for (const int late : {0, 2, 3, 4}) {
    NetworkOptions options = TwoHosts(false);
    options.ticks = true;
    options.stall = {1000000, 5000000};
    std::vector<int> blamed;
    options.stalled = [&](int worker, const std::string& /*why*/) { blamed.push_back(worker); };
    Bench bench(options);
    const size_t t = bench.job.Add(1, DType::kFloat32, 9000);
    for (const int w : kAll) {
      if (w != late) bench.job.Submit(w, t, 0);
    }
    CHECK_TRUE(bench.network.Run([&] { return !blamed.empty(); }, 60000000));
    REQUIRE_TRUE(!blamed.empty());
    CHECK_EQ(blamed[0], late);
    bench.job.Submit(late, t, 0);
    CHECK_TRUE(bench.network.Run([&] { return bench.job.over(); }));
    CHECK_EQ(bench.job.wrong(), 0U);
  }
}

// A server with a leader of three among its four workers.
TEST(copies_that_stand_for_others) {
  AggregatorOptions options = Options(4);
  options.hosts = Hosts({0, 0, 0, 1}, {2});
  const auto fresh = [&] {
    auto server = std::make_unique<LoneServer>(options);
    for (int w = 0; w < 4; ++w) REQUIRE_OK(server->Declare(w, 0, 7, 700));
    Declaration together;
    together.key = 7;
    together.elements = 700;
    together.dtype = DType::kUint8;
    together.codec = PlainCodec(DType::kUint8).number;
    together.name = "t";
    together.workers = 3;
    const auto declare = [&](int worker) {
      Header h;
      h.kind = PacketKind::kDeclare;
      h.tensor = 1;
      return server->Send(worker, h, Encode(together));
    };
    CHECK_OK(declare(0));
    CHECK_STATUS(Code::kCorrupt, declare(1));  // it leads nobody
    CHECK_STATUS(Code::kCorrupt, declare(3));
    together.workers = 2;
    CHECK_STATUS(Code::kCorrupt, declare(0));
    return server;
  };
  auto server = fresh();
  CHECK_OK(server->Data(0, 1, 0, 1, std::string(700, 'a' - 1)));
  CHECK_STATUS(Code::kCorrupt, server->Data(2, 0, 0, 1, std::string(700, 'b')));  // it is in that
  CHECK_OK(server->Data(3, 0, 0, 1, std::string(700, 1)));
  for (const int w : {0, 3}) {
    const auto got = server->Drain(w);
    REQUIRE_EQ(got.size(), 1U);
    CHECK_EQ(got[0].payload, std::string(700, 'a'));
  }
  CHECK_TRUE(server->Drain(1).empty() && server->Drain(2).empty());
  // The next time each sends for itself, and nobody for them.
  for (int w = 0; w < 4; ++w) {
    CHECK_OK(server->Data(w, 0, 0, 2, std::string(700, static_cast<char>(w))));
    if (w == 1) {
      CHECK_STATUS(Code::kCorrupt, server->Data(0, 1, 0, 2, std::string(700, 9)));
    }
  }
  CHECK_EQ(server->Drain(2).at(0).payload, std::string(700, 6));

  // Who is missing is whoever is in nobody's copy.
  server = fresh();
  CHECK_OK(server->Data(3, 0, 0, 1, std::string(700, 1)));
  CHECK_OK(server->Send(3, PacketKind::kAsk, 0));
  CHECK_EQ(server->Drain(3).at(0).payload, std::string("\1\1\1\0", 4));
  CHECK_OK(server->Data(0, 1, 0, 1, std::string(700, 1)));
  CHECK_EQ(server->Drain(3).size(), 1U);

  // A leader says what its host could not do; nobody else does.
  server = fresh();
  const auto fail = [&](int worker, const std::string& text) {
    Header h;
    h.kind = PacketKind::kError;
    return server->Send(worker, h, text);
  };
  const std::string why = Encode(Status::Exhausted("worker 0 has no memory"));
  CHECK_STATUS(Code::kCorrupt, fail(1, why));
  CHECK_STATUS(Code::kCorrupt, fail(3, why));
  CHECK_OK(fail(0, why));
  for (int w = 0; w < 4; ++w) CHECK_STATUS(Code::kExhausted, server->ErrorTo(w));
}

TEST(a_leader_s_operation_is_held_no_longer_than_it_is_needed) {
  AggregatorOptions options = Options(2);
  options.ranks = {0, 1};
  options.servers = {1};  // the other one is on this host
  options.shares = ServerShares(2);
  Aggregator host_sums(options);
  std::vector<uint64_t> ready(2);
  bool held = false, free = false;
  for (uint64_t key = 0; key < 20; ++key) {
    TensorTraits traits;
    traits.key = key;
    traits.shape = {10};
    traits.name = "t" + std::to_string(key);
    const auto op = std::make_shared<Operation>();
    op->tensor = std::make_shared<mercury::Tensor>(traits);
    CHECK_OK(host_sums.Begin(op, 1, &ready));
    const bool leaves = Placement(key, 10, 4, 1024, options.shares).Server(0) == 1;
    (leaves ? held : free) = true;
    CHECK_EQ(op.use_count(), leaves ? 2 : 1);
    host_sums.LetGo();
    CHECK_EQ(op.use_count(), 1);
  }
  CHECK_TRUE(held && free);
}

// A server that only says that a sum is made, where somebody on the host wants it, is broken.
TEST(a_leader_takes_nothing_instead_of_a_sum_that_its_host_wants) {
  for (const auto& [leader, follower] : {std::pair{PacketKind::kData, PacketKind::kPush},
                                         {PacketKind::kPush, PacketKind::kData},
                                         {PacketKind::kPush, PacketKind::kPush}}) {
    const bool wanted = leader == PacketKind::kData || follower == PacketKind::kData;
    WorkerStreamsOptions of_leader = WorkerOptions();
    of_leader.num_workers = 2;
    of_leader.hosts = Hosts({0, 0}, {1});
    AggregatorOptions of_host = Options(2);
    of_host.OfHost(of_leader.hosts, 0);
    LoneServer host(of_host);
    of_leader.host_sums = {std::shared_ptr<void>(), &host.aggregator};
    LoneWorker worker(of_leader);
    const auto t = worker.Tensor(7, 700);
    REQUIRE_OK(host.Declare(1, 0, 7, 700));
    Header copy;
    copy.kind = follower;
    copy.round = 1;
    REQUIRE_OK(host.Send(1, copy, Of(700, 1)));
    const auto op = worker.Operation_(t.get());
    if (leader == PacketKind::kPush) op->kind = Operation::Kind::kPush;
    worker.streams.Submit(op, worker.now_us);
    CHECK_EQ(worker.Drain().size(), 2U);
    const Status status = worker.Text(PacketKind::kTaken, 0, 0, "");
    CHECK_EQ(t->outcomes.size(), wanted ? 0U : 1U);
    if (!wanted) CHECK_OK(status);
    if (!wanted) continue;
    REQUIRE_STATUS(Code::kCorrupt, status);
    CHECK_OK(worker.Sum(0, 0, 1, Of(700, 'z')));
    REQUIRE_EQ(t->outcomes.size(), 1U);
    CHECK_OK(t->outcomes[0]);
    const std::vector<Got> got = host.Drain(1);
    REQUIRE_EQ(got.size(), 1U);
    CHECK_TRUE(got[0].header.kind ==
               (follower == PacketKind::kData ? PacketKind::kSum : PacketKind::kTaken));
  }
}

// None of the sum is on a server beside them, and no other host has given its copy.
TEST(who_leaves_while_the_leader_waits_is_named) {
  Bench bench(TwoHosts(false));
  const size_t t = bench.job.Add(1, DType::kFloat32, 9000);
  Status heard = Status::Timeout("nothing");
  bench.job.Submit(0, t, 0, [&heard](const Status& status) { heard = status; });
  bench.network.Settle();
  bench.network.Depart(1);
  bench.network.Run([&] { return bench.job.over(); });
  CHECK_STATUS(Code::kPeerLost, heard);
  CHECK_TRUE(heard.text().find("worker 1 has finished") != std::string::npos);
}
