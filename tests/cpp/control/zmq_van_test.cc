// Whole vans in one process, over real sockets on loopback: joining, barriers, leaving, failing,
// being refused. (Tensors need one ps-lite per process: tests/integration has them.)
#include "control/zmq_van.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ps/internal/customer.h"
#include "van_job.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

// Hears what the scheduler assigns only some turns after the first message of a peer, as it may
// happen on a busy host.
class LateVan : public ZmqVan {
 public:
  using ZmqVan::ZmqVan;
  int RecvMsg(ps::Message* message) override {
    if (assigned_bytes_ != 0 && peer_spoke_ && --turns_ == 0) {
      *message = std::move(assigned_);
      return std::exchange(assigned_bytes_, 0);
    }
    const int bytes = ZmqVan::RecvMsg(message);
    if (bytes <= 0) return bytes;
    peer_spoke_ = peer_spoke_ || message->meta.control.empty();
    if (message->meta.control.cmd != ps::Control::ADD_NODE) return bytes;
    assigned_ = *message;
    assigned_bytes_ = bytes;
    return 0;
  }

 private:
  ps::Message assigned_;
  int assigned_bytes_ = 0;
  bool peer_spoke_ = false;
  int turns_ = 10;
};

// A worker that has registered: of two with one number, the one that is not refused.
Node& Registered(VanJob* job, int hint) {
  Node& one = job->Add(Role::kWorker, hint);
  Node& twin = job->Add(Role::kWorker, hint);
  while (!one.observer.Ended() && !twin.observer.Ended()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return one.observer.Ended() ? twin : one;
}

}  // namespace

TEST(a_job_from_joining_to_leaving) {
  VanJob job(2, 1);
  Node& second = job.Add(Role::kWorker, 1);
  Node& server = job.Add(Role::kServer);
  Node& first = job.Add(Role::kWorker, 0);
  for (auto& node : job.nodes) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.id != 0; }));
  }
  CHECK_EQ(first.observer.id, NodeId(Role::kWorker, 0));
  CHECK_EQ(second.observer.id, NodeId(Role::kWorker, 1));
  CHECK_EQ(server.observer.id, NodeId(Role::kServer, 0));
  for (int round = 1; round <= 20; ++round) {
    first.van->EnterBarrier();
    second.van->EnterBarrier();
    for (Node* node : {&first, &second}) {
      REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.barriers == round; }));
    }
  }
  first.van->Leave(Status::Ok());
  REQUIRE_TRUE(server.observer.Wait([&] { return server.observer.departed.size() == 1; }));
  CHECK_EQ(server.observer.departed[0], NodeId(Role::kWorker, 0));
  second.van->Leave(Status::Ok());
  for (Node* node : {&server, &job.scheduler()}) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.ends == 1; }));
    CHECK_OK(node->observer.failure);
  }
}

TEST(a_failure_reaches_everybody_once) {
  VanJob job(2, 2);
  for (int i = 0; i < 2; ++i) {
    job.Add(Role::kWorker, i);
    job.Add(Role::kServer, i);
  }
  for (auto& node : job.nodes) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.id != 0; }));
  }
  job.nodes[1]->van->Leave(Status::PeerLost("ValueError: no"));
  job.nodes[1]->van->Fail("again");
  for (auto& node : job.nodes) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.ends != 0; }));
    CHECK_STATUS(Code::kPeerLost, node->observer.failure);
    CHECK_TRUE(node->observer.failure.text().find("ValueError: no") != std::string::npos);
  }
  for (auto& node : job.nodes) CHECK_EQ(node->observer.ends, 1);
}

TEST(a_request_that_comes_before_the_node_knows_its_place_is_answered) {
  VanJob job(1, 1);
  Node& worker = job.Add(Role::kWorker);
  ps::Message request;
  request.meta.request = true;
  request.meta.app_id = kServerApp;
  request.meta.recver = NodeId(Role::kServer, 0);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int> answers;
  ps::Customer asks(kWorkerApp, 0, [&](const ps::Message& answer) {
    const std::lock_guard<std::mutex> lock(mutex);
    answers.push_back(answer.meta.head);
    changed.notify_all();
  });
  Node& server = job.AddSpecial<LateVan>(Role::kServer);
  ps::Customer serves(kServerApp, kServerApp, [&](const ps::Message& asked) {
    ps::Message answer = AnswerTo(asked);
    server.van->SendMsg(answer);
  });
  REQUIRE_TRUE(worker.observer.Wait([&] { return worker.observer.id != 0; }));
  for (int i = 0; i < 3; ++i) {
    request.meta.head = i;
    worker.van->SendMsg(request);
  }
  std::unique_lock<std::mutex> lock(mutex);
  REQUIRE_TRUE(changed.wait_for(lock, kPatience, [&] { return answers.size() == 3; }));
  CHECK_TRUE(answers == std::vector<int>({0, 1, 2}));
  CHECK_EQ(server.observer.id, NodeId(Role::kServer, 0));
  lock.unlock();
  for (auto& node : job.nodes) node->van->Stop();  // before the customers that they hand over to
}

TEST(a_node_that_vanishes_is_missed) {
  VanJob job(2, 1);
  Node& victim = job.Add(Role::kWorker, 1);
  Node& server = job.Add(Role::kServer, 0);
  Node& other = job.Add(Role::kWorker, 0);
  for (auto& node : job.nodes) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.id != 0; }));
  }
  victim.van->Stop();  // without a word
  for (Node* node : {&server, &other, &job.scheduler()}) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.ends != 0; }));
    CHECK_TRUE(node->observer.failure.text().find("lost worker 1") != std::string::npos);
  }
  CHECK_EQ(other.van->NumLost(4), 1);
  CHECK_EQ(other.van->NumLost(2), 0);
}

TEST(a_node_that_vanishes_while_others_are_awaited_is_missed) {
  VanJob job(2, 1, MembershipTimes{100, 500, 100000, 60000});
  Node& server = job.Add(Role::kServer, 0);
  Registered(&job, 1).van->Stop();  // without a word
  for (Node* node : {&server, &job.scheduler()}) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.ends != 0; }));
    CHECK_STATUS(Code::kPeerLost, node->observer.failure);
    CHECK_TRUE(node->observer.failure.text().find("lost worker (DMLC_TASK_ID=1)") !=
               std::string::npos);
  }
}

TEST(nodes_left_over_from_an_earlier_job_do_not_disturb_a_new_one) {
  VanJob earlier(2, 2);
  for (int i = 0; i < 2; ++i) {
    earlier.Add(Role::kWorker, i);
    earlier.Add(Role::kServer, i);
  }
  for (auto& node : earlier.nodes) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.id != 0; }));
  }
  const int port = earlier.scheduler().van->my_port();
  earlier.scheduler().van->Stop();  // without a word
  VanJob next(1, 1, 60000, port);
  // They go on to send heartbeats until they have noticed, and then that they have failed.
  for (size_t i = 1; i < earlier.nodes.size(); ++i) {
    Observer& left_over = earlier.nodes[i]->observer;
    REQUIRE_TRUE(left_over.Wait([&] { return left_over.ends != 0; }));
  }
  next.Add(Role::kWorker);
  next.Add(Role::kServer);
  for (auto& node : next.nodes) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.id != 0; }));
    CHECK_TRUE(!node->observer.Ended());
  }
}

TEST(a_scheduler_that_starts_again_before_the_job_does_is_told_who_is_there) {
  VanJob job(1, 1);
  Node& worker = Registered(&job, 0);
  const int port = job.scheduler().van->my_port();
  job.scheduler().van->Stop();
  VanJob again(1, 1, 60000, port);
  Node& server = again.Add(Role::kServer);
  for (Node* node : {&worker, &server, &again.scheduler()}) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.id != 0; }));
  }
}

TEST(who_is_not_needed_is_told) {
  VanJob job(1, 1);
  Node& worker = job.Add(Role::kWorker);
  job.Add(Role::kServer);
  REQUIRE_TRUE(worker.observer.Wait([&] { return worker.observer.id != 0; }));
  Node& late = job.Add(Role::kWorker);
  REQUIRE_TRUE(late.observer.Wait([&] { return late.observer.ends != 0; }));
  CHECK_STATUS(Code::kInvalidArgument, late.observer.failure);
  CHECK_TRUE(!worker.observer.Ended());
}

TEST(nodes_that_count_the_job_otherwise_are_refused) {
  VanJob job(2, 2);
  job.Expect(2, 1);
  Node& worker = job.Add(Role::kWorker);
  job.Expect(1, 2);
  Node& server = job.Add(Role::kServer);
  for (Node* node : {&worker, &server}) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.ends != 0; }));
    CHECK_STATUS(Code::kInvalidArgument, node->observer.failure);
  }
  CHECK_TRUE(worker.observer.failure.text().find("it has DMLC_NUM_SERVER=1, the scheduler 2") !=
             std::string::npos);
  CHECK_TRUE(server.observer.failure.text().find("it has DMLC_NUM_WORKER=1, the scheduler 2") !=
             std::string::npos);
}

TEST(what_worker_0_was_told_is_what_all_use) {
  VanJob job(2, 1);
  job.Add(Role::kServer);
  job.Add(Role::kWorker, 1);
  job.Tell("p3");
  job.Add(Role::kWorker, 0);
  for (auto& node : job.nodes) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.id != 0; }));
    CHECK_EQ(node->observer.agreed, "DMLC_NUM_WORKER=2\nDMLC_NUM_SERVER=1\nMERCURY_POLICY=p3\n");
  }
}

TEST(who_was_told_otherwise_than_worker_0_ends_the_job_and_everybody_knows) {
  VanJob job(2, 1);
  job.Add(Role::kServer);
  job.Tell("fifo");
  job.Add(Role::kWorker, 1);
  job.Tell("p3");
  job.Add(Role::kWorker, 0);
  for (auto& node : job.nodes) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.ends != 0; }));
    CHECK_STATUS(Code::kInvalidArgument, node->observer.failure);
    CHECK_EQ(node->observer.failure.text(), "worker 1 has MERCURY_POLICY=fifo, worker 0 p3");
    CHECK_EQ(node->observer.id, 0);
  }
}

TEST(a_node_that_cannot_use_what_was_agreed_fails_the_job) {
  VanJob job(1, 1);
  Node& server = job.Add(Role::kServer);
  server.observer.refuses = true;
  job.Add(Role::kWorker);
  for (auto& node : job.nodes) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.ends != 0; }));
    CHECK_TRUE(node->observer.failure.text().find("no such policy") != std::string::npos);
  }
  CHECK_EQ(server.observer.id, 0);
}

TEST(an_exception_on_the_van_s_thread_fails_the_job_and_not_the_process) {
  VanJob job(2, 1);
  Node& first = job.Add(Role::kWorker, 0);
  Node& second = job.Add(Role::kWorker, 1);
  second.observer.throw_when_ready = true;
  job.Add(Role::kServer);
  for (auto& node : job.nodes) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.ends != 0; }));
    CHECK_TRUE(node->observer.failure.text().find("no room") != std::string::npos);
  }
  CHECK_EQ(first.observer.ends, 1);
  CHECK_EQ(second.observer.ends, 1);
}

TEST(a_scheduler_that_is_stopped_says_who_it_is) {
  VanJob job(1, 1);
  Node& worker = job.Add(Role::kWorker);
  job.Add(Role::kServer);
  for (auto& node : job.nodes) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.id != 0; }));
  }
  job.scheduler().van->Leave(Status::PeerLost("it was stopped"));
  REQUIRE_TRUE(worker.observer.Wait([&] { return worker.observer.ends != 0; }));
  CHECK_EQ(worker.observer.failure.text(), "the scheduler ended: it was stopped");
}

TEST(who_comes_when_the_start_has_failed_hears_why) {
  VanJob job(2, 1);
  Node& early = job.Add(Role::kServer, 0);
  const std::string why = "was killed by signal 9";
  job.scheduler().van->OtherEnded({Role::kWorker, 1, why, true});
  for (Node* node : {&job.scheduler(), &early}) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.ends != 0; }));
  }
  Node& late = job.Add(Role::kWorker, 0);
  REQUIRE_TRUE(late.observer.Wait([&] { return late.observer.ends != 0; }));
  CHECK_STATUS(Code::kPeerLost, late.observer.failure);
  CHECK_EQ(late.observer.failure.text(), "worker 1 " + why);
  CHECK_TRUE(Comes([&] { return !job.scheduler().van->awaits_late(); }));
}

TEST(a_start_that_has_timed_out_is_over_for_all) {
  VanJob job(2, 1, 500);
  job.scheduler().van->OtherEnded({Role::kWorker, 1, "ended with exit code 0", false});
  REQUIRE_TRUE(job.scheduler().observer.Wait([&] { return job.scheduler().observer.ends != 0; }));
  CHECK_STATUS(Code::kTimeout, job.scheduler().observer.failure);
  CHECK_TRUE(!job.scheduler().van->awaits_late());
}

TEST(another_token_is_not_heard) {
  VanJob job(1, 1, 1500);
  Node& server = job.Add(Role::kServer);
  Node& stranger = job.Add(Role::kWorker, -1, "guess");
  REQUIRE_TRUE(server.observer.Wait([&] { return server.observer.ends != 0; }));
  CHECK_STATUS(Code::kTimeout, server.observer.failure);
  CHECK_TRUE(server.observer.failure.text().find("1 of 1 workers") != std::string::npos);
  REQUIRE_TRUE(stranger.observer.Wait([&] { return stranger.observer.ends != 0; }));
  CHECK_STATUS(Code::kTimeout, stranger.observer.failure);
}

TEST(a_taken_port_is_an_error_that_names_it) {
  VanJob job(1, 1);
  ZmqVanOptions options;
  options.role = Role::kServer;
  options.host = options.scheduler_host = "127.0.0.1";
  options.scheduler_port = options.port = job.scheduler().van->my_port();
  Observer observer;
  ZmqVan van(options, &observer);
  van.Start(0, false);
  CHECK_STATUS(Code::kInvalidArgument, van.start_status());
  CHECK_TRUE(van.start_status().text().find("127.0.0.1:" + std::to_string(options.port)) !=
             std::string::npos);
}
