// Whole jobs without sockets: the endpoints of a scheduler, a server, a replica and workers, whose
// packets are carried from one to the other in memory.
#include "fabric/net/node_endpoint.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "fabric/net/model_part.h"
#include "fabric/net/scheduler_part.h"
#include "fabric/net/worker_part.h"
#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;
using mercury::Code;
using mercury::OutPacket;
using mercury::Role;
using mercury::Status;

namespace {

constexpr size_t kElements = 50;
constexpr size_t kPacket = 64;
constexpr int64_t kDelayBound = 4;

class Job {
 public:
  // Updates travel coded in every other job.
  Job(int workers, double momentum, Random* random)
      : random_(*random),
        momentum_(momentum),
        codec_(random->OneIn(2) ? mercury::FindCompression("bf16") : nullptr),
        updates_(static_cast<size_t>(workers)) {
    std::vector<Seat> seats{{kServerNode, "h0", 1}, {kReplicaNode, "h1", 1}};
    for (int w = 0; w < workers; ++w) seats.push_back({w, "w" + std::to_string(w), 1});
    for (const Seat& seat : seats) Make(seat.node);
    Make(kSchedulerNode);
    SchedulerOptions options;
    options.collector.delay_bound = kDelayBound;
    options.collector.momentum = momentum;
    options.collector.divergence_bound = 0.1;
    options.collector.by_packets = random->OneIn(2);
    NodeEndpoint* scheduler = nodes_.at(kSchedulerPeer).get();
    parts_[kSchedulerPeer] = std::make_unique<SchedulerPart>(seats, options, scheduler);
    scheduler->Play(parts_[kSchedulerPeer].get(), {});
    for (const auto& [a, one] : nodes_) {
      for (const auto& [b, other] : nodes_) {
        if (a != b) one->Open(b);
      }
    }
    for (const auto& [peer, node] : nodes_) {
      if (peer != kSchedulerPeer) node->AskTime(now_us_);
    }
  }

  void Push(int w) {
    Vector update(kElements);
    double square = 0;
    for (float& value : update) {
      value = random_.Float(-1, 1);
      square += double{value} * double{value};
    }
    auto& all = updates_[static_cast<size_t>(w)];
    all.push_back(update);
    Request request;
    request.id.number = static_cast<int64_t>(all.size());
    request.version = versions_[w];
    request.norm = std::sqrt(square);
    worker(w)->Push(request, std::make_shared<const Vector>(update));
    ++unsettled_[w];
  }

  // Until nothing is under way.
  void Run() {
    for (int quiet = 0, turns = 0; quiet < 3; ++turns) {
      REQUIRE_TRUE(turns < 20000);
      const bool moved = Turn();
      quiet = moved || Unsettled() ? 0 : quiet + 1;
    }
  }

  void Kill(int peer) {
    nodes_.erase(peer);
    unsettled_.erase(NodeOf(peer));
    for (const auto& [other, node] : nodes_) node->Close(peer, now_us_);
  }

  // Turns in which something is under way.
  void Turns(int turns) {
    for (; turns > 0; --turns) Turn();
  }

  void Get(int w) { worker(w)->Get({}); }
  const ModelPart& model(int peer) { return dynamic_cast<ModelPart&>(*parts_.at(peer)); }
  SchedulerPart& scheduler() { return dynamic_cast<SchedulerPart&>(*parts_.at(kSchedulerPeer)); }
  int64_t version(int w) { return versions_[w]; }

  // The model is what its commits give, one by one; none was too late.
  void Check(int peer) {
    const ModelPart& holder = model(peer);
    std::vector<double> sum(kElements, 0), step(kElements, 0), rounded(kElements, 0);
    int64_t version = 0;
    std::set<std::pair<int, int64_t>> applied;
    for (const Committed& commit : holder.commits()) {
      const UpdateId id = commit.update.id;
      CHECK_EQ(commit.version, ++version);
      CHECK_TRUE(commit.version - commit.update.version <= kDelayBound);
      CHECK_TRUE(applied.emplace(id.worker, id.number).second);
      const Vector& update =
          updates_[static_cast<size_t>(id.worker)][static_cast<size_t>(id.number - 1)];
      for (size_t i = 0; i < kElements; ++i) {
        step[i] = momentum_ * step[i] + double{update[i]};
        sum[i] += step[i];
        // An update and the group that it is in are rounded once each.
        if (codec_ != nullptr) rounded[i] += std::abs(double{update[i]}) / (1 - momentum_) / 64;
      }
    }
    for (size_t i = 0; i < kElements; ++i) {
      CHECK_TRUE(std::abs(sum[i] - double{holder.model()[i]}) < 1e-4 + rounded[i]);
    }
  }

 private:
  WorkerPart* worker(int w) { return dynamic_cast<WorkerPart*>(parts_.at(PeerOf(w)).get()); }

  void Make(int node) {
    const int peer = PeerOf(node);
    auto endpoint = std::make_unique<NodeEndpoint>(node, kPacket,
                                                   [](int, const Letter&) { return Status::Ok(); });
    if (node >= 0) {
      WorkerEvents events;
      events.settled = [this, node](UpdateId, Fate fate) {
        unsettled_[node] -= fate == Fate::kLost ? 0 : 1;
      };
      events.got = [this, node](const Edition& its, const auto&) { versions_[node] = its.version; };
      parts_[peer] = std::make_unique<WorkerPart>(node, momentum_, kPacket, endpoint.get(), events,
                                                  SpareVectors(), codec_);
    } else if (node != kSchedulerNode) {
      ModelOptions options;
      options.role = node == kServerNode ? Role::kServer : Role::kReplica;
      options.delay_bound = kDelayBound;
      options.rule.momentum = momentum_;
      options.elements = kElements;
      options.replica = true;
      options.packet_bytes = kPacket;
      parts_[peer] = std::make_unique<ModelPart>(options, Vector(kElements, 0), endpoint.get());
    }
    const Expected expected{kElements, momentum_ > 0, codec_};
    if (node != kSchedulerNode) endpoint->Play(parts_[peer].get(), expected);
    nodes_[peer] = std::move(endpoint);
  }

  // Whether anything has moved.
  bool Turn() {
    now_us_ += 1000;
    bool moved = false;
    for (const auto& [peer, node] : nodes_) node->Turn(now_us_);
    for (const auto& [from, node] : nodes_) {
      for (const auto& [to, other] : nodes_) moved |= from != to && Carry(from, to);
    }
    return moved;
  }

  bool Unsettled() const {
    return std::any_of(unsettled_.begin(), unsettled_.end(),
                       [](const auto& its) { return its.second > 0; });
  }

  bool Carry(int from, int to) {
    OutPacket packet;
    bool any = false;
    // Not all at once: what is said on other links comes in between.
    for (uint64_t left = 1 + random_.Below(4); left > 0; --left, packet = OutPacket()) {
      if (!nodes_.at(from)->Next(to, now_us_, &packet)) break;
      any = true;
      char* target = nullptr;
      REQUIRE_OK(nodes_.at(to)->OnHeader(from, packet.header, now_us_, &target));
      std::memcpy(target, packet.payload, packet.header.length);
      REQUIRE_OK(nodes_.at(to)->OnPacket(from, packet.header, now_us_));
    }
    return any;
  }

  Random& random_;
  const double momentum_;
  const mercury::Codec* const codec_;
  int64_t now_us_ = 1'000'000;
  std::map<int, std::unique_ptr<NodeEndpoint>> nodes_;  // by peer
  std::map<int, std::unique_ptr<Part>> parts_;
  std::vector<std::vector<Vector>> updates_;  // by worker
  std::map<int, int64_t> versions_;
  std::map<int, int> unsettled_;  // updates, by worker
};

}  // namespace

TEST(the_model_is_what_its_commits_give_one_by_one) {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Job job(4, random.OneIn(2) ? 0 : 0.5, &random);
    for (int i = 0; i < 5; ++i) {
      for (int w = 0; w < 4; ++w) {
        for (uint64_t pushes = random.Below(3); pushes > 0; --pushes) job.Push(w);
      }
      job.Run();
      for (int w = 0; w < 4; ++w) job.Get(w);
      job.Run();
    }
    job.Check(kServerPeer);
    CHECK_EQ(job.version(0), job.model(kServerPeer).version());
    CHECK_TRUE(job.model(kServerPeer).version() > 0);
  }
}

TEST(when_a_worker_dies_in_the_middle_the_others_are_applied_and_get_the_model) {
  Random random;
  for (int round = 0; round < 60; ++round) {
    Job job(5, random.OneIn(2) ? 0 : 0.5, &random);
    for (int i = 0; i < 3; ++i) {
      for (int w = 0; w < 5; ++w) job.Push(w);
      job.Run();
    }
    for (int w = 0; w < 5; ++w) job.Push(w);
    if (random.OneIn(2)) job.Run();
    for (int w = 0; w < 5; ++w) job.Get(w);
    job.Turns(static_cast<int>(random.Below(40)));
    job.Kill(PeerOf(2));
    job.Run();
    job.Check(kServerPeer);
    for (const int w : {0, 1, 3, 4}) {
      CHECK_TRUE(job.version(w) > 0);
      job.Get(w);
    }
    job.Run();
    for (const int w : {0, 1, 3, 4}) CHECK_EQ(job.version(w), job.model(kServerPeer).version());
  }
}

TEST(when_the_replica_dies_in_the_middle_what_went_through_it_goes_straight) {
  Random random;
  for (int round = 0; round < 60; ++round) {
    Job job(4, random.OneIn(2) ? 0 : 0.5, &random);
    for (int i = 0; i < 2; ++i) {
      for (int w = 0; w < 4; ++w) job.Push(w);
      job.Run();
      for (int w = 0; w < 4; ++w) job.Get(w);
      job.Run();
    }
    const int64_t had = job.model(kServerPeer).version();
    for (int w = 0; w < 4; ++w) job.Push(w);
    job.Turns(static_cast<int>(random.Below(20)));
    job.Kill(kReplicaPeer);
    job.Run();
    job.Check(kServerPeer);
    CHECK_EQ(job.model(kServerPeer).version(), had + 4);
  }
}

TEST(when_the_server_dies_its_replica_goes_on) {
  Random random;
  for (int round = 0; round < 20; ++round) {
    Job job(3, random.OneIn(2) ? 0 : 0.5, &random);
    for (int i = 0; i < 3; ++i) {
      for (int w = 0; w < 3; ++w) job.Push(w);
      job.Run();
      for (int w = 0; w < 3; ++w) job.Get(w);
      job.Run();
    }
    for (int w = 0; w < 3; ++w) job.Push(w);
    job.Kill(kServerPeer);
    const int64_t had = job.model(kReplicaPeer).version();
    CHECK_TRUE(had > 0);
    job.Run();
    CHECK_TRUE(job.model(kReplicaPeer).is_server());
    CHECK_TRUE(job.model(kReplicaPeer).version() > had);
    job.Check(kReplicaPeer);
    job.Get(0);
    job.Run();
    CHECK_EQ(job.version(0), job.model(kReplicaPeer).version());
    CHECK_OK(job.scheduler().failure());
  }
}

TEST(nodes_know_the_scheduler_s_time) {
  NodeEndpoint node(0, kPacket, [](int, const Letter&) { return Status::Ok(); });
  CHECK_EQ(node.SchedulerTime(5'000'000), 5);
  node.Open(kSchedulerPeer);
  node.AskTime(5'000'000);
  CHECK_FALSE(node.all_said());
  OutPacket packet;
  CHECK_TRUE(node.Next(kSchedulerPeer, 5'000'000, &packet));
  Letter asked;
  CHECK_OK(Decode({packet.payload, packet.header.length}, &asked));
  Dock scheduler(1024);
  scheduler.Post(TimeLetter{std::get<TimeLetter>(asked).asked_us, 90'000'000});
  OutPacket back;
  CHECK_TRUE(scheduler.Next(&back));
  char* target = nullptr;
  CHECK_OK(node.OnHeader(kSchedulerPeer, back.header, 5'002'000, &target));
  std::memcpy(target, back.payload, back.header.length);
  CHECK_OK(node.OnPacket(kSchedulerPeer, back.header, 5'002'000));
  CHECK_TRUE(std::abs(node.SchedulerTime(5'002'000) - 90.001) < 1e-4);
}

TEST(nothing_is_heard_before_the_job_has_begun) {
  NodeEndpoint node(0, 1024, [](int, const Letter&) { return Status::Ok(); });
  char* target = nullptr;
  Dock other(1024);
  other.Post(Request());
  OutPacket packet;
  CHECK_TRUE(other.Next(&packet));
  CHECK_STATUS(Code::kInternal, node.OnHeader(kServerPeer, packet.header, 0, &target));
  node.Open(kServerPeer);
  CHECK_OK(node.OnHeader(kServerPeer, packet.header, 0, &target));
  std::memcpy(target, packet.payload, packet.header.length);
  CHECK_STATUS(Code::kCorrupt, node.OnPacket(kServerPeer, packet.header, 0));
}

TEST(the_scheduler_is_told_of_the_first_values_transfer_and_does_not_mind) {
  NodeEndpoint node(kSchedulerNode, 1024, [](int, const Letter&) { return Status::Ok(); });
  node.Open(kServerPeer);
  Dock other(1024);
  other.Post(Carriage());
  OutPacket packet;
  CHECK_TRUE(other.Next(&packet));
  char* target = nullptr;
  CHECK_OK(node.OnHeader(kServerPeer, packet.header, 0, &target));
  std::memcpy(target, packet.payload, packet.header.length);
  CHECK_OK(node.OnPacket(kServerPeer, packet.header, 0));
}
