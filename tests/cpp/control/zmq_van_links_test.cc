// Links between a worker and a server that lose, damage or delay what they carry. Whoever waits
// learns that the link has failed, and between whom.
#include <chrono>
#include <string>
#include <thread>

#include "control/meta_bounds.h"
#include "link_job.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

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

TEST(a_slow_link_is_not_a_silent_one) {
  constexpr MembershipTimes kHasty{200, 2000, 10000, 60000};
  LinkJob job(kHasty, Role::kWorker, Role::kServer, TcpProxy::kSlow);
  job.Ask(1, 5 << 20);  // takes more than twice the time-out
  REQUIRE_TRUE(job.Answered(1));
  CHECK_TRUE(job.alive());
}

// What it said to the scheduler is lost: the others go on, if they may.
TEST(who_has_lost_messages_to_the_scheduler_is_done_without) {
  for (const int least : {0, 1}) {
    TcpProxy box;
    VanJob job(2, 1, kLong);
    if (least != 0) job.GoesOnWith(least);
    job.Add(Role::kServer);
    job.Add(Role::kWorker);
    Node& behind = job.AddSpecial<BoxedVan>(Role::kWorker, &box, Role::kScheduler);
    for (size_t i = 1; i < job.nodes.size(); ++i) {
      Node& node = *job.nodes[i];
      REQUIRE_TRUE(node.observer.Wait([&] { return node.observer.id != 0; }));
    }
    box.Set(TcpProxy::kSwallow);
    REQUIRE_TRUE(Until([&] { return box.swallowed() != 0; }));
    box.Set(TcpProxy::kPass);
    box.Reset();
    REQUIRE_TRUE(behind.observer.Wait([&] { return behind.observer.ends != 0; }));
    const auto& left = job.nodes[2];
    if (least == 0) {
      REQUIRE_TRUE(left->observer.Wait([&] { return left->observer.ends != 0; }));
    } else {
      REQUIRE_TRUE(left->observer.Wait([&] { return !left->observer.lost.empty(); }));
      CHECK_EQ(left->observer.lost[0], behind.observer.id);
      CHECK_FALSE(left->observer.Ended());
    }
  }
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
  VanJob job(2, 1, kLong);
  Node& server = job.AddSpecial<BoxedVan>(Role::kServer, &box, Role::kWorker);
  Node& leaves = job.Add(Role::kWorker, 0);
  Node& stays = job.Add(Role::kWorker, 1);
  for (const auto& node : job.nodes) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.id != 0; }));
  }
  REQUIRE_TRUE(Until([&] { return box.open() == 1; }));
  leaves.van->Leave(Status::Ok());
  REQUIRE_TRUE(server.observer.Wait([&] { return server.observer.departed.size() == 1; }));
  // It still listens: it is the server that has hung up.
  CHECK_TRUE(Until([&] { return box.open() == 0; }));
  // A late word to it is nobody's failure.
  ps::Message late;
  late.meta.request = true;
  late.meta.app_id = kWorkerApp;
  late.meta.recver = NodeId(Role::kWorker, 0);
  server.van->SendMsg(late);
  stays.van->Leave(Status::Ok());
  for (Node* node : {&server, &job.scheduler()}) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.ends == 1; }));
    CHECK_OK(node->observer.failure);
  }
}
