// Whole vans in one process, over real sockets on loopback, and what their observers hear.
//
// Thread-safety: a VanJob belongs to one thread; observers may be asked from any.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/zmq_van.h"
#include "harness.h"

namespace mercury::testing {

constexpr auto kPatience = std::chrono::seconds(60);
constexpr int kServerApp = 7, kWorkerApp = 8;

// From the application of a server to that of the worker that asked; without data.
inline ps::Message AnswerTo(const ps::Message& asked) {
  ps::Message answer;
  answer.meta.request = true;  // or ps-lite looks for what it answers
  answer.meta.app_id = kWorkerApp;
  answer.meta.customer_id = 0;
  answer.meta.head = asked.meta.head;
  answer.meta.recver = asked.meta.sender;
  return answer;
}

// Waits for what no observer is told of.
inline bool Comes(const std::function<bool()>& reached) {
  const auto by = std::chrono::steady_clock::now() + kPatience;
  while (!reached() && std::chrono::steady_clock::now() < by) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return reached();
}

class Observer : public VanObserver {
 public:
  Status OnAgreed(int /*my_node_id*/, const SharedSettings& settings) override {
    Change([&] { agreed = ToText(settings); });
    if (on_agreed) on_agreed();
    return refuses ? Status::InvalidArgument("no such policy") : Status::Ok();
  }
  void OnReady(int node) override {
    if (throw_when_ready) throw std::length_error("no room");
    Change([&] { id = node; });
  }
  void OnBarrier() override {
    Change([&] { ++barriers; });
  }
  void OnDeparted(int node) override {
    Change([&] { departed.push_back(node); });
  }
  void OnLost(int node, const Status& /*why*/) override {
    Change([&] { lost.push_back(node); });
  }
  void OnFailed(const Status& status) override {
    if (on_failed) on_failed();
    Change([&] {
      failure = status;
      ++ends;
    });
  }
  void OnEnded() override {
    Change([&] { ++ends; });
  }
  bool Wait(const std::function<bool()>& reached) {
    std::unique_lock<std::mutex> lock(mutex);
    return changed.wait_for(lock, kPatience, reached);
  }

  bool Ended() {
    std::lock_guard<std::mutex> lock(mutex);
    return ends != 0;
  }

  std::atomic<bool> throw_when_ready{false}, refuses{false};
  std::function<void()> on_agreed, on_failed;  // set before there can be a job
  std::string agreed;                          // before `id` is there
  int id = 0, barriers = 0, ends = 0;
  std::vector<int> departed, lost;
  Status failure;

 private:
  void Change(const std::function<void()>& change) {
    std::lock_guard<std::mutex> lock(mutex);
    change();
    changed.notify_all();
  }
  std::mutex mutex;
  std::condition_variable changed;
};

struct Node {
  Observer observer;
  std::unique_ptr<ZmqVan> van;
};

class VanJob {
 public:
  VanJob(int num_workers, int num_servers, int64_t start_timeout_ms = 60000, int port = 0)
      : VanJob(num_workers, num_servers, MembershipTimes{100, 20000, 10000, start_timeout_ms},
               port) {}
  VanJob(int num_workers, int num_servers, const MembershipTimes& times, int port = 0) {
    options_.host = options_.scheduler_host = "127.0.0.1";
    options_.workers = num_workers;
    options_.servers = num_servers;
    options_.token = "secret";
    options_.times = times;
    options_.role = Role::kScheduler;
    options_.port = port;  // or any that is free
    Make();
    options_.port = 0;
    options_.scheduler_port = scheduler().van->my_port();
  }
  ~VanJob() {
    for (auto& node : nodes) node->van->Stop();
  }
  Node& Add(Role role, int hint = -1, const std::string& token = "secret") {
    options_.role = role;
    options_.rank_hint = hint;
    options_.token = token;
    return Make();
  }
  // A van of another kind, made with `more`.
  template <typename AnyVan, typename... More>
  Node& AddSpecial(Role role, More... more) {
    options_.role = role;
    return Make<AnyVan>(more...);
  }
  Node& scheduler() { return *nodes[0]; }
  // What nodes that are added from now on believe.
  void Expect(int num_workers, int num_servers) {
    options_.workers = num_workers;
    options_.servers = num_servers;
  }

  // Nodes that are added from now on check what messages carry.
  void CheckData() { checks_data_ = true; }
  // With so many workers at least it goes on; before nodes are added.
  void GoesOnWith(int least) {
    least_ = least;
    Agrees(&scheduler());
  }
  // From now on nodes are told this policy; "" again tells them none.
  void Tell(const std::string& policy) {
    policy_ = {"MERCURY_POLICY", policy.empty() ? "priority" : policy, !policy.empty()};
  }

  std::vector<std::unique_ptr<Node>> nodes;

 private:
  template <typename AnyVan = ZmqVan, typename... More>
  Node& Make(More... more) {
    nodes.push_back(std::make_unique<Node>());
    Node& node = *nodes.back();
    options_.settings = {{"DMLC_NUM_WORKER", std::to_string(options_.workers), true},
                         {"DMLC_NUM_SERVER", std::to_string(options_.servers), true},
                         policy_};
    node.van = std::make_unique<AnyVan>(options_, &node.observer, more...);
    if (checks_data_) node.observer.on_agreed = [&node] { node.van->CheckData(true); };
    if (least_ != 0) Agrees(&node);
    node.van->Start(0, false);
    CHECK_OK(node.van->start_status());
    return node;
  }
  void Agrees(Node* node) const {
    node->observer.on_agreed = [node, least = least_] { node->van->GoOnWith(least, false, 0); };
  }
  ZmqVanOptions options_;
  int least_ = 0;
  SharedSetting policy_{"MERCURY_POLICY", "priority", false};
  bool checks_data_ = false;
};

}  // namespace mercury::testing
