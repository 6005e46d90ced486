// Membership while not all are here: who is refused, who is lost, who takes whose place.
#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "control/envelope.h"
#include "control/membership.h"
#include "harness.h"
#include "members.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

TEST(one_number_is_one_node_s) {
  SchedulerMembership s(2, 1, Times(), 0);
  Join(&s, M(Role::kWorker, 2, 1), 0);
  Join(&s, M(Role::kServer, 9, 1), 0);  // roles have numbers of their own
  REQUIRE_EQ(s.members().size(), 2U);
  CHECK_EQ(
      Find(Join(&s, M(Role::kWorker, 3, 1), 0), Action::kReject)->text,
      "worker (DMLC_TASK_ID=1) at 10.0.0.2:2 is registered already, and 10.0.0.3:3 has the same "
      "number: give each node one of its own");
  CHECK_EQ(s.members().size(), 2U);
}

TEST(who_comes_late_hears_whose_place_it_is) {
  SchedulerMembership s(2, 1, Times(), 0);
  Join(&s, M(Role::kServer, 1), 0);
  Join(&s, M(Role::kWorker, 2, 0), 1000);
  Join(&s, M(Role::kWorker, 3, 1), 1000);
  CHECK_EQ(Find(Join(&s, M(Role::kWorker, 4, 1), 6000), Action::kReject)->text,
           "the job has its 2 workers already; worker 1 was registered from 10.0.0.3:3 5 s ago; a "
           "node that was restarted cannot join a job that has begun");
}

TEST(a_node_that_is_lost_while_others_gather_is_named) {
  SchedulerMembership s(2, 1, Times(), 0);
  Join(&s, M(Role::kWorker, 2, 1), 0);
  s.GuestBroke(s.members()[0].guest, 0);
  CHECK_TRUE(s.Tick(2500).empty());
  const std::string lost =
      "lost worker (DMLC_TASK_ID=1) at 10.0.0.2:2 before the job had begun: its connection broke";
  CHECK_EQ(Find(s.Tick(3000), Action::kWarn)->text, lost + "; waiting for another in its place");
  CHECK_TRUE(s.Tick(6000).empty());  // said once
  CHECK_TRUE(Says(Find(s.Tick(10000), Action::kWarn), "2 of 2 workers and 1 of 1 servers"));
  const Actions failed = s.Tick(13000);
  CHECK_EQ(Find(failed, Action::kFail)->status.text(),
           lost + ", and no other took its place within 10 s");
  CHECK_STATUS(Code::kPeerLost, failed[0].status);
}

TEST(who_has_ended_is_not_waited_for) {
  for (const bool comes_first : {true, false}) {
    SchedulerMembership s(2, 1, Times(), 0);
    const std::string how = "ended with exit code 0";
    Join(&s, M(Role::kServer, 9, 0), 0);  // servers always come
    if (comes_first) Join(&s, M(Role::kWorker, 2, 0), 0);
    const Actions told = s.Ended({Role::kWorker, 1, how, false});
    CHECK_EQ(told.size(), comes_first ? 1U : 0U);
    const Actions failed = comes_first ? told : Join(&s, M(Role::kWorker, 2, 0), 0);
    REQUIRE_TRUE(Find(failed, Action::kFail) != nullptr);
    CHECK_EQ(Find(failed, Action::kFail)->status.text(),
             "worker 1 " + how + " before the job had begun");
    CHECK_TRUE(!s.AwaitsLate());
  }
}

TEST(a_worker_that_ends_when_it_has_registered_is_not_one_that_waits) {
  SchedulerMembership s(2, 1, Times(), 0);
  Join(&s, M(Role::kWorker, 2, 0), 0);
  CHECK_TRUE(s.Ended({Role::kWorker, 0, "ended with exit code 0", false}).empty());
  CHECK_TRUE(
      Says(Find(Join(&s, M(Role::kWorker, 3, 1), 0), Action::kFail), "worker 0 ended with exit"));
}

TEST(workers_that_all_end_without_a_store_are_not_waited_for) {
  SchedulerMembership s(2, 1, Times(), 0);
  Join(&s, M(Role::kServer, 9, 0), 0);
  CHECK_TRUE(s.Ended({Role::kWorker, 1, "ended with exit code 0", false}).empty());
  CHECK_TRUE(Says(Find(s.Ended({Role::kWorker, 0, "ended with exit code 0", false}), Action::kFail),
                  "worker 1 ended with exit code 0 before the job had begun, and no worker has "
                  "joined it"));
}

TEST(an_end_in_a_job_that_has_begun_fails_it_only_if_it_failed) {
  SchedulerMembership s(1, 1, Times(), 0);
  Join(&s, M(Role::kWorker, 2, 0), 0);
  Join(&s, M(Role::kServer, 9, 0), 0);
  REQUIRE_TRUE(s.running());
  CHECK_TRUE(s.Ended({Role::kWorker, 0, "ended with exit code 0", false}).empty());
  CHECK_EQ(Find(s.Ended({Role::kServer, 0, "was killed by signal 9", true}), Action::kFail)
               ->status.text(),
           "server 0 was killed by signal 9");
  CHECK_TRUE(!s.AwaitsLate());
  CHECK_TRUE(!s.ComesLate(M(Role::kWorker, 4, 0)));
}

TEST(whoever_comes_when_the_start_has_failed_is_awaited_and_told_once) {
  SchedulerMembership s(3, 1, Times(), 0);
  Join(&s, M(Role::kServer, 9, 0), 0);
  CHECK_TRUE(!s.AwaitsLate());
  CHECK_TRUE(Find(s.Ended({Role::kWorker, 1, "was killed by signal 9", true}), Action::kFail) !=
             nullptr);
  CHECK_TRUE(s.AwaitsLate());
  CHECK_TRUE(s.ComesLate(M(Role::kWorker, 2, 0)));
  CHECK_TRUE(!s.ComesLate(M(Role::kWorker, 2, 0)));
  CHECK_TRUE(s.AwaitsLate());
  s.Ended({Role::kWorker, 0, "ended with exit code 69", false});  // as it was told to
  CHECK_TRUE(s.AwaitsLate());
  s.Ended({Role::kWorker, 2, "ended with exit code 0", false});
  CHECK_TRUE(!s.AwaitsLate());
}

TEST(a_connection_that_is_there_again_is_no_loss) {
  SchedulerMembership s(1, 1, Times(), 0);
  Join(&s, M(Role::kWorker, 2, 0), 0);
  const int guest = s.members()[0].guest;
  s.GuestBroke(guest, 0);
  CHECK_TRUE(s.GuestIsThere(guest, 1000).empty());
  CHECK_TRUE(s.Tick(9000).empty());
  s.GuestBroke(guest, 9000);
  // Nobody is given a rank beside one that may be lost.
  CHECK_TRUE(Join(&s, M(Role::kServer, 1), 9500).empty());
  CHECK_TRUE(Find(s.GuestIsThere(guest, 9600), Action::kAssign) != nullptr);
  CHECK_TRUE(s.GuestIsThere(guest, 9700).empty());
}

TEST(a_node_that_was_started_again_takes_its_own_place_only_if_that_is_free) {
  for (const int hint : {-1, 0}) {
    SchedulerMembership s(1, 1, Times(), 0);
    Join(&s, M(Role::kWorker, 2, hint), 0);
    const int guest = s.members()[0].guest;
    CHECK_TRUE(Find(Join(&s, M(Role::kWorker, 3, hint), 0), Action::kReject) != nullptr);
    s.GuestBroke(guest, 100);
    CHECK_TRUE(Says(Find(Join(&s, M(Role::kWorker, 3, hint), 200), Action::kWarn),
                    "10.0.0.3:3 takes the place of worker"));
    REQUIRE_EQ(s.members().size(), 1U);
    CHECK_TRUE(s.members()[0].guest != guest);
    CHECK_TRUE(s.GuestIsThere(guest, 300).empty());  // it is nobody's any more
    CHECK_TRUE(Find(Join(&s, M(Role::kServer, 1), 400), Action::kAssign) != nullptr);
  }
}

TEST(a_node_that_is_never_reached_is_lost) {
  SchedulerMembership s(1, 1, Times(), 0);
  s.Register(M(Role::kWorker, 2, 0), 0);
  CHECK_TRUE(Join(&s, M(Role::kServer, 1), 0).empty());  // nobody is given a rank before
  CHECK_TRUE(Find(Join(&s, M(Role::kWorker, 3, 0), 2500), Action::kReject) != nullptr);
  CHECK_TRUE(s.Tick(2900).empty());
  CHECK_EQ(Find(s.Tick(3000), Action::kWarn)->text,
           "lost worker (DMLC_TASK_ID=0) at 10.0.0.2:2 before the job had begun: the scheduler "
           "cannot connect to it there; waiting for another in its place");
  CHECK_TRUE(Says(Find(s.Tick(10000), Action::kWarn), "which has not been reached yet"));
  CHECK_TRUE(Find(Join(&s, M(Role::kWorker, 3, 0), 11000), Action::kAssign) != nullptr);
}

TEST(a_node_that_refuses_connections_is_lost_at_once) {
  SchedulerMembership s(1, 1, Times(), 0);
  s.Register(M(Role::kWorker, 2, 0), 0);
  s.GuestBroke(s.members()[0].guest, 10);
  CHECK_TRUE(Says(Find(Join(&s, M(Role::kWorker, 3, 0), 20), Action::kWarn), "takes the place"));
}

TEST(who_has_the_address_of_a_lost_one_of_another_role_takes_no_place) {
  SchedulerMembership s(2, 1, Times(), 0);
  Join(&s, M(Role::kWorker, 2, 0), 0);
  s.GuestBroke(s.members()[0].guest, 100);
  Member server = M(Role::kServer, 2, 0);
  server.life = 77;
  CHECK_TRUE(Join(&s, server, 200).empty());
  REQUIRE_EQ(s.members().size(), 2U);
  server.life = 78;  // the job has its server
  CHECK_TRUE(Find(Join(&s, server, 300), Action::kReject) != nullptr);
  CHECK_TRUE(Says(Find(s.Tick(3100), Action::kWarn), "lost worker (DMLC_TASK_ID=0)"));
}

TEST(a_node_may_end_before_it_hears_that_it_has_a_rank) {
  SchedulerMembership s(1, 1, Times(), 0);
  Join(&s, M(Role::kServer, 1), 0);
  CHECK_TRUE(Find(Join(&s, M(Role::kWorker, 2, 0), 0), Action::kAssign) != nullptr);
  CHECK_EQ(Find(s.Withdraw(2000, "interrupted", 100), Action::kFail)->status.text(),
           "worker 0 ended: interrupted");
  CHECK_TRUE(s.Withdraw(2000, "interrupted", 200).empty());
}

// Nodes that start, die and start again while others gather: with a patient scheduler and enough
// lives the job begins, with one member in each place; else it fails, once, and says of whom.
TEST(random_starts_begin_whole_jobs_or_fail_once) {
  mercury::testing::Random random;
  for (int round = 0; round < 2000; ++round) {
    constexpr int kWorkers = 3, kServers = 2;
    SchedulerMembership s(kWorkers, kServers, Times(), 0);
    std::vector<bool> alive(kWorkers + kServers, false);
    int begins = 0, fails = 0, port = 1000;
    int64_t now = 0;
    const bool dies = round % 2 == 0;
    while (begins + fails == 0 && now < 200000) {
      now += 1 + static_cast<int64_t>(random() % 900);
      const auto place = static_cast<size_t>(random() % alive.size());
      const bool worker = place < kWorkers;
      const int hint = static_cast<int>(worker ? place : place - kWorkers);
      Actions actions;
      const auto held = std::find_if(s.members().begin(), s.members().end(), [&](const Member& m) {
        return m.rank_hint == hint && (m.role == Role::kWorker) == worker;
      });
      if (!alive[place]) {
        Member m = M(worker ? Role::kWorker : Role::kServer, ++port, hint);
        const bool taken = held != s.members().end() && held->broken_ms < 0;
        // Some die before they are reached.
        actions = dies && random() % 4 == 0 ? s.Register(m, now) : Join(&s, m, now);
        CHECK_EQ(Find(actions, Action::kReject) != nullptr, taken);
        alive[place] = !taken;
      } else if (dies && random() % 3 == 0 && held != s.members().end()) {
        s.GuestBroke(held->guest, now);
        alive[place] = false;
      }
      for (const Actions& some : {actions, s.Tick(now)}) {
        begins += Find(some, Action::kAssign) != nullptr ? 1 : 0;
        fails += Find(some, Action::kFail) != nullptr ? 1 : 0;
        if (Find(some, Action::kFail) != nullptr) {
          CHECK_TRUE(Says(Find(some, Action::kFail), "lost ") ||
                     Says(Find(some, Action::kFail), "not everybody registered"));
        }
      }
    }
    REQUIRE_EQ(begins + fails, 1);
    if (begins == 0) continue;
    CHECK_TRUE(std::all_of(alive.begin(), alive.end(), [](bool a) { return a; }));
    std::set<int> ids;
    for (const Member& m : s.members()) ids.insert(m.id);
    CHECK_EQ(ids.size(), alive.size());
    CHECK_EQ(ids.count(kNoNode), 0U);
  }
}

TEST(while_the_scheduler_can_reach_nobody_nobody_else_is_to_blame) {
  const std::string why = "the scheduler has no file descriptor left";
  SchedulerMembership s(2, 1, Times(), 0);
  Join(&s, M(Role::kServer, 9, 0), 0);
  REQUIRE_TRUE(s.Register(M(Role::kWorker, 2, 1), 0).empty());  // and is not reached
  for (int64_t now = 500; now < 3500; now += 500) CHECK_TRUE(s.Tick(now, why).empty());
  const Actions failed = s.Tick(3500, why);
  REQUIRE_EQ(failed.size(), 1U);
  CHECK_EQ(Find(failed, Action::kFail)->status.text(), why);
}

TEST(a_scheduler_that_can_reach_others_again_has_lost_no_time_of_theirs) {
  SchedulerMembership s(2, 1, Times(), 0);
  REQUIRE_TRUE(s.Register(M(Role::kWorker, 2, 1), 0).empty());
  for (int64_t now = 500; now <= 2500; now += 500) CHECK_TRUE(s.Tick(now, "full").empty());
  CHECK_TRUE(s.Tick(5000).empty());
  CHECK_TRUE(s.Tick(5100, "full").empty());  // counted anew
  CHECK_TRUE(Says(Find(s.Tick(6000), Action::kWarn), "the scheduler cannot connect to it there"));
}
