// A worker and a server, whole vans in one process, with a box between them that does what networks
// do: it stops, loses, slows, changes a bit, resets.
//
// Thread-safety: a LinkJob belongs to one thread.
#pragma once

#include <algorithm>
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
#include "ps/internal/customer.h"
#include "tcp_proxy.h"
#include "van_job.h"

namespace mercury::testing {

// A heartbeat, and the silence after which a link has failed; long ones where something else must
// be noticed first.
inline constexpr MembershipTimes kShort{400, 3000, 10000, 60000}, kLong{400, 60000, 10000, 60000};

// Reaches the first node of one kind through a box.
class BoxedVan : public ZmqVan {
 public:
  BoxedVan(ZmqVanOptions options, VanObserver* observer, TcpProxy* box, Role behind)
      : ZmqVan(std::move(options), observer), box_(box), behind_(behind) {}
  void Connect(const ps::Node& node) override {
    ps::Node boxed = node;
    if (node.id == NodeId(behind_, 0)) {
      box_->LeadTo(node.port);
      boxed.port = box_->port();
    }
    ZmqVan::Connect(boxed);
  }

 private:
  TcpProxy* const box_;
  const Role behind_;
};

// A worker asks a server, which answers; `boxed` reaches `behind` through the box.
class LinkJob {
 public:
  LinkJob(const MembershipTimes& times, Role boxed, Role behind, TcpProxy::Mode mode)
      : job_(1, 1, times),
        serves_(kServerApp, kServerApp, [this](const ps::Message& m) { Answer(m); }),
        asks_(kWorkerApp, 0, [this](const ps::Message& m) { Heard(m); }) {
    box.Set(mode);
    job_.CheckData();
    worker_ = &Add(Role::kWorker, boxed, behind);
    server_ = &Add(Role::kServer, boxed, behind);
    for (const auto& node : job_.nodes) {
      REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.id != 0; }));
    }
  }
  ~LinkJob() {
    for (const auto& node : job_.nodes) node->van->Stop();  // before the customers
  }

  // The server's answer is of the same bytes.
  void Ask(int number, size_t bytes, size_t body_bytes = 0, int app = kServerApp) {
    ps::Message request;
    request.meta.request = true;
    request.meta.push = true;
    request.meta.app_id = app;
    request.meta.body.assign(body_bytes, 'b');
    request.meta.recver = NodeId(Role::kServer, 0);
    request.meta.head = number;
    request.AddData(ps::SArray<char>(std::make_shared<std::vector<char>>(bytes, 'x')));
    worker_->van->SendMsg(request);
  }
  // Until the worker has `count` answers.
  bool Answered(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return answers_.size() >= count; });
  }
  size_t asked() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return asked_;
  }
  // Everybody hears of one failure, and what it was.
  void CheckEnd(Code code, const std::string& text) {
    for (const auto& node : job_.nodes) {
      REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.ends != 0; }));
      CHECK_STATUS(code, node->observer.failure);
      if (node->observer.failure.text().find(text) == std::string::npos) {
        CHECK_EQ(node->observer.failure.text(), text);
      }
    }
  }
  bool alive() const {
    return std::none_of(job_.nodes.begin(), job_.nodes.end(),
                        [](const auto& node) { return node->observer.Ended(); });
  }
  Node& worker() { return *worker_; }

  TcpProxy box;

 private:
  Node& Add(Role role, Role boxed, Role behind) {
    return role == boxed ? job_.AddSpecial<BoxedVan>(role, &box, behind) : job_.Add(role);
  }
  void Answer(const ps::Message& asked) {
    ps::Message answer = AnswerTo(asked);
    answer.AddData(asked.data.at(0));
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++asked_;
    }
    server_->van->SendMsg(answer);
  }
  void Heard(const ps::Message& answer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    answers_.push_back(answer.meta.head);
    changed_.notify_all();
  }

  VanJob job_;
  Node *worker_ = nullptr, *server_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> answers_;
  size_t asked_ = 0;
  ps::Customer serves_, asks_;
};

inline bool Until(const std::function<bool()>& reached) {
  for (int turn = 0; turn < 6000 && !reached(); ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return reached();
}

inline std::string Names(const std::string& why) {
  return "worker 0 and server 0 cannot reach each other: " + why;
}

// All that is sent from now on is gone: a connection breaks while it is under way.
inline void LoseOneWay(LinkJob* job, const std::function<void()>& send) {
  job->box.Set(TcpProxy::kSwallow);
  const uint64_t before = job->box.swallowed();
  send();
  Until([&] { return job->box.swallowed() != before; });
  job->box.Set(TcpProxy::kPass);
  job->box.Reset();
}

}  // namespace mercury::testing
