// Jobs of nodes that share a process, over loopback.
#include "fabric/net/fabric_node.h"

#include <limits>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;
using mercury::Code;
using mercury::Status;

namespace {

constexpr size_t kElements = 40000;
constexpr int kSliceMs = 100;
constexpr int kSlices = 600;

FabricNodeOptions Options(int node, int workers, int replicas) {
  FabricNodeOptions options;
  options.node = node;
  options.workers = workers;
  options.replicas = replicas;
  options.host = "127.0.0.1";
  options.token = "secret";
  options.elements = kElements;
  options.planning.collector.delay_bound = 100;
  options.start_timeout_us = 60'000'000;
  return options;
}

template <typename F>
Status Until(const F& wait) {
  Status status;
  for (int slice = 0; slice < kSlices; ++slice) {
    if (wait(&status)) return status;
  }
  return Status::Timeout("the test has waited for long");
}

struct Job {
  // `first`: worker 0 gives the first values.
  explicit Job(int workers, const std::vector<double>& weights = {}, bool first = false,
               int servers = 1, int replicas = 1)
      : first_(first), servers_(servers), replicas_(replicas) {
    FabricNodeOptions options = Options(kSchedulerNode, workers, replicas);
    options.weights = weights;
    options.servers = servers;
    options.planning.collector.by_packets = servers > 1;
    scheduler = std::make_unique<FabricNode>(options, Vector());
    REQUIRE_OK(scheduler->Start());
    nodes[kSchedulerNode] = scheduler.get();
    for (int node = kReplicaNode; node < workers; ++node) Add(node, workers);
    for (int server = 1; server < servers; ++server) Add(ServerNode(server), workers);
    for (int replica = 1; replica < replicas; ++replica) Add(ReplicaNode(replica), workers);
  }
  void Add(int node, int workers) {
    FabricNodeOptions options = Options(node, workers, replicas_);
    options.scheduler = {"127.0.0.1", scheduler->port()};
    options.servers = servers_;
    if (first_ && node < 0) options.elements = 0;
    if (first_ && node >= 0) options.rule = {0.5, false};
    const bool has = first_ ? node == 0 : node < 0;
    others.push_back(std::make_unique<FabricNode>(options, has ? Vector(kElements, 1) : Vector()));
    REQUIRE_OK(others.back()->Start());
    nodes[node] = others.back().get();
  }
  void Begin() {
    for (const auto& [node, its] : nodes) {
      REQUIRE_OK(Until([n = its](Status* status) { return n->WaitBegun(kSliceMs, status); }));
    }
  }
  int64_t Get(int worker, Vector* model) {
    int64_t version = -1;
    FabricNode* node = nodes.at(worker);
    CHECK_OK(Until([&](Status* s) { return node->WaitSettled(kSliceMs, s); }));
    CHECK_OK(node->AskModel());
    model->resize(kElements);
    CHECK_OK(
        Until([&](Status* s) { return node->WaitModel(kSliceMs, s, model->data(), &version); }));
    return version;
  }
  void End(int workers) {
    for (int worker = 0; worker < workers; ++worker) nodes.at(worker)->Leave(false);
    for (const int node : {kSchedulerNode, kServerNode, kReplicaNode}) {
      FabricNode* its = nodes.at(node);
      CHECK_OK(Until([its](Status* s) { return its->WaitEnded(kSliceMs, s); }));
      its->Leave(false);
    }
  }

  const bool first_;
  const int servers_;
  const int replicas_;
  std::unique_ptr<FabricNode> scheduler;
  std::vector<std::unique_ptr<FabricNode>> others;
  std::map<int, FabricNode*> nodes;
};

}  // namespace

TEST(workers_push_and_get_what_the_server_has_summed) {
  constexpr int kPushes = 5;
  Job job(2, {1, 2});
  job.Begin();
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (int worker = 0; worker < 2; ++worker) {
    threads.emplace_back([&job, worker] {
      Vector model;
      int64_t number = 0;
      for (int i = 0; i < kPushes; ++i) {
        job.Get(worker, &model);
        const Vector update(kElements, 2);
        CHECK_OK(job.nodes.at(worker)->Push(update.data(), 400, &number));
        CHECK_EQ(number, i + 1);
      }
      job.Get(worker, &model);
    });
  }
  for (std::thread& thread : threads) thread.join();
  Vector model;
  CHECK_EQ(job.Get(0, &model), 2 * kPushes);
  CHECK_EQ(model.front(), 1.0F + kPushes * (2 + 4));
  CHECK_TRUE(model == Vector(kElements, model.front()));
  CHECK_TRUE(job.nodes.at(1)->Stats().find("\"pushed\": 5, \"committed\": 5") != std::string::npos);
  job.End(2);
  int64_t version = 0;
  Vector left(kElements);
  CHECK_OK(job.nodes.at(kServerNode)->CopyModel(left.data(), left.size(), &version));
  CHECK_EQ(version, 2 * kPushes);
  CHECK_TRUE(left == model);
  CHECK_STATUS(Code::kClosed, job.nodes.at(0)->AskModel());
}

TEST(an_update_is_not_sent_unless_all_of_it_is_finite_then) {
  Job job(2, {1, 2});
  job.Begin();
  int64_t number = 0;
  Vector update(kElements, std::numeric_limits<float>::max());
  CHECK_OK(job.nodes.at(0)->Push(update.data(), -1, &number));
  CHECK_STATUS(Code::kInvalidArgument, job.nodes.at(1)->Push(update.data(), -1, &number));
  update.back() = std::numeric_limits<float>::quiet_NaN();
  CHECK_STATUS(Code::kInvalidArgument, job.nodes.at(0)->Push(update.data(), 1, &number));
}

TEST(worker_0_gives_the_first_values_and_workers_say_what_the_server_does) {
  Job job(2, {}, true);
  job.Begin();
  Vector model;
  CHECK_EQ(job.Get(1, &model), 0);
  CHECK_TRUE(model == Vector(kElements, 1));
  const Vector update(kElements, 2);
  int64_t number = 0;
  for (int i = 0; i < 2; ++i) {
    CHECK_OK(job.nodes.at(1)->Push(update.data(), 400, &number));
    job.Get(1, &model);
  }
  CHECK_EQ(model.front(), 1 + 2 + 3.0F);  // the second step has half of the first one in it
  job.End(2);
  for (const int node : {kServerNode, kReplicaNode}) {
    int64_t version = 0;
    Vector left(kElements);
    CHECK_OK(job.nodes.at(node)->CopyModel(left.data(), left.size(), &version));
    CHECK_TRUE(left == model);
  }
}

TEST(several_servers_share_the_model_until_one_is_lost_and_the_replica_has_all_of_it) {
  Job job(2, {}, true, 3);
  job.Begin();
  Vector model, first(kElements), left(kElements);
  for (size_t i = 0; i < kElements; ++i) first[i] = static_cast<float>(i % 1000);
  int64_t number = 0, version = 0;
  job.Get(0, &model);
  CHECK_TRUE(model == Vector(kElements, 1));
  for (int i = 0; i < 2; ++i) {
    CHECK_OK(job.nodes.at(i)->Push(first.data(), -1, &number));
    job.Get(1 - i, &model);
  }
  while (job.Get(1, &model) < 2) continue;
  for (size_t i = 0; i < kElements; ++i) CHECK_EQ(model[i], 1 + 2.5F * first[i]);
  const int last = ServerNode(2);
  CHECK_STATUS(Code::kInvalidArgument,
               job.nodes.at(last)->CopyModel(left.data(), left.size(), &version));
  job.nodes.at(last)->Leave(true);
  CHECK_OK(job.nodes.at(0)->Push(first.data(), -1, &number));
  while (job.Get(0, &model) < 3) continue;
  job.End(2);
  CHECK_OK(job.nodes.at(kReplicaNode)->CopyModel(left.data(), left.size(), &version));
  CHECK_EQ(version, 3);
  CHECK_TRUE(left == model);
  CHECK_TRUE(job.nodes.at(kServerNode)->Stats().find("\"is_server\": false") != std::string::npos);
}

// Of one server, or of several: the first replica takes the place of all.
void LoseOneAfterAnother(int servers) {
  Job job(2, {}, true, servers, 3);
  job.Begin();
  const Vector update(kElements, 2);
  Vector model, left(kElements);
  int64_t number = 0, pushed = 0;
  const auto push = [&] {
    CHECK_OK(job.nodes.at(0)->Push(update.data(), -1, &number));
    ++pushed;
    while (job.Get(1, &model) < pushed) continue;
  };
  const auto version_at = [&](int replica) {
    int64_t version = 0;
    CHECK_OK(job.nodes.at(ReplicaNode(replica))->CopyModel(left.data(), left.size(), &version));
    return version;
  };
  int server = kServerNode;
  for (int next = 0; next < 3; ++next) {
    push();
    while (version_at(next) == 0) std::this_thread::yield();  // the model has come
    push();
    // Planned after that was known; what the replica lacks would be lost.
    while (version_at(next) < pushed) std::this_thread::yield();
    job.nodes.at(server)->Leave(true);
    server = ReplicaNode(next);
  }
  push();
  CHECK_EQ(version_at(2), pushed);
  for (int worker = 0; worker < 2; ++worker) job.nodes.at(worker)->Leave(false);
  CHECK_OK(Until([&](Status* s) { return job.scheduler->WaitEnded(kSliceMs, s); }));
  job.scheduler->Leave(false);
  CHECK_OK(Until([&](Status* s) { return job.nodes.at(server)->WaitEnded(kSliceMs, s); }));
  CHECK_EQ(version_at(2), pushed);
  CHECK_TRUE(left == model);
  CHECK_TRUE(job.nodes.at(server)->Stats().find("\"is_server\": true") != std::string::npos);
}

TEST(replicas_in_reserve_become_the_server_one_after_another) { LoseOneAfterAnother(1); }

TEST(replicas_in_reserve_follow_who_took_the_place_of_several_servers) { LoseOneAfterAnother(2); }

TEST(the_first_of_several_servers_has_the_model_in_the_end) {
  Job job(1, {}, false, 2);
  job.Begin();
  const Vector update(kElements, 2);
  Vector model, left(kElements);
  int64_t number = 0, version = 0;
  CHECK_OK(job.nodes.at(0)->Push(update.data(), -1, &number));
  while (job.Get(0, &model) < 1) continue;
  job.End(1);
  CHECK_OK(job.nodes.at(kServerNode)->CopyModel(left.data(), left.size(), &version));
  CHECK_TRUE(left == Vector(kElements, 3));
}

TEST(who_is_there_already_is_not_let_in_twice) {
  Job job(1);
  job.Begin();
  job.Add(0, 1);
  const Status status = Until([&](Status* s) { return job.others.back()->WaitBegun(kSliceMs, s); });
  CHECK_STATUS(Code::kPeerLost, status);
  CHECK_EQ(status.text().substr(0, 19), "lost the scheduler:");
  job.nodes[0] = job.others[2].get();  // the first one goes on
  Vector model;
  CHECK_EQ(job.Get(0, &model), 0);
  job.End(1);
}

TEST(a_job_that_does_not_begin_says_for_whom_it_waited) {
  FabricNodeOptions options = Options(kSchedulerNode, 1, 0);
  options.start_timeout_us = 100'000;
  FabricNode scheduler(options, Vector());
  REQUIRE_OK(scheduler.Start());
  options = Options(kServerNode, 1, 0);
  options.scheduler = {"127.0.0.1", scheduler.port()};
  options.start_timeout_us = 1'000'000;
  FabricNode server(options, Vector(kElements, 0));
  REQUIRE_OK(server.Start());
  Status status = Until([&](Status* s) { return scheduler.WaitBegun(kSliceMs, s); });
  CHECK_STATUS(Code::kTimeout, status);
  CHECK_TRUE(status.text().find("worker 0 did not come") != std::string::npos);
  // The server may come too late to hear why.
  status = Until([&](Status* s) { return server.WaitBegun(kSliceMs, s); });
  CHECK_TRUE(!status.ok());
}
