// Links between a worker and a server that do what links do: whole vans in one process, with a box
// between them. Whoever waits learns that the link has failed, and between whom.
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "control/meta_bounds.h"
#include "ps/internal/customer.h"
#include "tcp_proxy.h"
#include "van_job.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

constexpr int kServerApp = 7, kWorkerApp = 8;
// A heartbeat, and the silence after which a link has failed; long ones where something else must
// be noticed first.
constexpr MembershipTimes kShort{400, 3000, 10000, 60000}, kLong{400, 60000, 10000, 60000};

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
      if (node->observer.failure.message.find(text) == std::string::npos) {
        CHECK_EQ(node->observer.failure.message, text);
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
    ps::Message answer;
    answer.meta.request = true;  // or ps-lite looks for what it answers
    answer.meta.app_id = kWorkerApp;
    answer.meta.customer_id = 0;
    answer.meta.head = asked.meta.head;
    answer.meta.recver = asked.meta.sender;
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

  Job job_;
  Node *worker_ = nullptr, *server_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> answers_;
  size_t asked_ = 0;
  ps::Customer serves_, asks_;
};

bool Until(const std::function<bool()>& reached) {
  for (int turn = 0; turn < 6000 && !reached(); ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return reached();
}

constexpr char kLink[] = "worker 0 and server 0 cannot reach each other: ";

std::string Names(const std::string& why) { return kLink + why; }

// All that is sent from now on is gone: a connection breaks while it is under way.
void LoseOneWay(LinkJob* job, const std::function<void()>& send) {
  job->box.Set(TcpProxy::kSwallow);
  const uint64_t before = job->box.swallowed();
  send();
  Until([&] { return job->box.swallowed() != before; });
  job->box.Set(TcpProxy::kPass);
  job->box.Reset();
}

}  // namespace

TEST(a_reset_that_takes_the_last_request_with_it) {
  LinkJob job(kLong, Role::kWorker, Role::kServer, TcpProxy::kPass);
  job.Ask(1, 100);
  REQUIRE_TRUE(job.Answered(1));
  LoseOneWay(&job, [&] { job.Ask(2, 100); });
  job.CheckEnd(Code::kPeerLost, Names("messages were lost on the way"));
}

TEST(a_reset_that_takes_the_last_answer_with_it) {
  LinkJob job(kLong, Role::kServer, Role::kWorker, TcpProxy::kPass);
  job.Ask(1, 100);
  REQUIRE_TRUE(job.Answered(1));
  LoseOneWay(&job, [&] { job.Ask(2, 100); });
  job.CheckEnd(Code::kPeerLost, Names("messages were lost on the way"));
}

TEST(a_reset_with_nothing_under_way_does_no_harm) {
  LinkJob job(kLong, Role::kWorker, Role::kServer, TcpProxy::kPass);
  for (int i = 1; i <= 3; ++i) {
    job.Ask(i, 100);
    REQUIRE_TRUE(job.Answered(static_cast<size_t>(i)));
    // Until all has been acknowledged, too.
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * kLong.heartbeat_interval_ms));
    job.box.Reset();
  }
  CHECK_TRUE(job.alive());
}

TEST(two_that_have_never_reached_each_other) {
  LinkJob job(kShort, Role::kWorker, Role::kServer, TcpProxy::kStop);
  job.Ask(1, 100);
  job.CheckEnd(Code::kPeerLost, Names("nothing that worker 0 sent has arrived for 3 s"));
}

TEST(a_link_that_is_cut_under_a_large_request) {
  LinkJob job(kShort, Role::kWorker, Role::kServer, TcpProxy::kPass);
  job.Ask(1, 100);
  REQUIRE_TRUE(job.Answered(1));
  job.box.Set(TcpProxy::kStop);
  job.Ask(2, 40 << 20);
  job.CheckEnd(Code::kPeerLost, Names("nothing that worker 0 sent has arrived for 3 s"));
}

TEST(a_box_that_takes_answers_and_delivers_none) {
  LinkJob job(kShort, Role::kServer, Role::kWorker, TcpProxy::kPass);
  job.Ask(1, 100);
  REQUIRE_TRUE(job.Answered(1));
  job.box.Set(TcpProxy::kSwallow);
  job.Ask(2, 100000);
  job.CheckEnd(Code::kPeerLost, Names("nothing that server 0 sent has arrived for 3 s"));
}

TEST(a_slow_link_is_not_a_silent_one) {
  constexpr MembershipTimes kHasty{200, 2000, 10000, 60000};
  LinkJob job(kHasty, Role::kWorker, Role::kServer, TcpProxy::kSlow);
  job.Ask(1, 5 << 20);  // takes more than twice the time-out
  REQUIRE_TRUE(job.Answered(1));
  CHECK_TRUE(job.alive());
}

TEST(a_flipped_bit_is_never_handed_over) {
  LinkJob job(kLong, Role::kWorker, Role::kServer, TcpProxy::kPass);
  job.Ask(1, 100000);
  REQUIRE_TRUE(job.Answered(1));
  job.box.Set(TcpProxy::kFlip);
  job.Ask(2, 100000);
  job.CheckEnd(Code::kCorrupt,
               "worker 0: a push (100000 bytes, key 0) for server 0 was damaged on the way");
  CHECK_EQ(job.asked(), 1U);
}

TEST(a_message_that_cannot_be_read_ends_the_job_for_somebody_waits) {
  LinkJob job(kLong, Role::kWorker, Role::kServer, TcpProxy::kPass);
  job.Ask(1, 100, kMetaBodyBytesMax);
  REQUIRE_TRUE(job.Answered(1));
  job.Ask(2, 100, kMetaBodyBytesMax + 8);
  job.CheckEnd(Code::kCorrupt,
               "worker 0: a message for server 0 is of no use: meta with a body of ");
  CHECK_EQ(job.asked(), 1U);
}

TEST(a_message_for_nobody_ends_the_job_for_somebody_waits) {
  LinkJob job(kLong, Role::kWorker, Role::kServer, TcpProxy::kPass);
  job.Ask(1, 100, 0, kWorkerApp + 1);
  job.CheckEnd(Code::kCorrupt,
               "worker 0: a message for server 0 is of no use: it is for application 9");
}

TEST(a_last_word_to_the_scheduler_that_is_lost) {
  LinkJob job(kLong, Role::kWorker, Role::kScheduler, TcpProxy::kPass);
  LoseOneWay(&job, [&] { job.worker().van->EnterBarrier(); });
  job.CheckEnd(Code::kPeerLost, "worker 0 and the scheduler cannot reach each other: messages");
}

TEST(who_has_left_is_not_called_on_again) {
  TcpProxy box;
  Job job(2, 1, kLong);
  Node& server = job.AddSpecial<BoxedVan>(Role::kServer, &box, Role::kWorker);
  Node& leaves = job.Add(Role::kWorker, 0);
  Node& stays = job.Add(Role::kWorker, 1);
  for (const auto& node : job.nodes) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.id != 0; }));
  }
  REQUIRE_TRUE(Until([&] { return box.open() == 1; }));
  leaves.van->Leave("");
  REQUIRE_TRUE(server.observer.Wait([&] { return server.observer.departed.size() == 1; }));
  // It still listens: it is the server that has hung up.
  CHECK_TRUE(Until([&] { return box.open() == 0; }));
  // A late word to it is nobody's failure.
  ps::Message late;
  late.meta.request = true;
  late.meta.app_id = kWorkerApp;
  late.meta.recver = NodeId(Role::kWorker, 0);
  server.van->SendMsg(late);
  stays.van->Leave("");
  for (Node* node : {&server, &job.scheduler()}) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.ends == 1; }));
    CHECK_OK(node->observer.failure);
  }
}
