#include "control/membership.h"

#include <algorithm>
#include <random>
#include <vector>

#include "harness.h"
#include "members.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

// Two workers and one server, running since t = 0.
SchedulerMembership Running() {
  SchedulerMembership s(2, 1, Times(), 0);
  Join(&s, M(Role::kServer, 1), 0);
  Join(&s, M(Role::kWorker, 2), 0);
  Join(&s, M(Role::kWorker, 3), 0);
  return s;
}

}  // namespace

TEST(ranks_do_not_depend_on_arrival) {
  std::vector<Member> members;
  for (int i = 0; i < 5; ++i) members.push_back(M(Role::kWorker, 100 + i, i < 3 ? 2 - i : -1));
  for (int i = 0; i < 3; ++i) members.push_back(M(Role::kServer, 200 + i));
  mercury::testing::Random random;
  std::vector<std::pair<int, int>> expected;
  for (int round = 0; round < 50; ++round) {
    std::shuffle(members.begin(), members.end(), random);
    SchedulerMembership s(5, 3, Times(), 0);
    Actions actions;
    for (const Member& m : members) {
      CHECK_TRUE(actions.empty());
      actions = Join(&s, m, 0);
    }
    CHECK_TRUE(Find(actions, Action::kAssign) != nullptr);
    std::vector<std::pair<int, int>> ids;
    for (const Member& m : s.members()) ids.emplace_back(m.port, m.id);
    std::sort(ids.begin(), ids.end());
    if (expected.empty()) expected = ids;
    CHECK_TRUE(ids == expected);
  }
  // Hints first, in their order: port 102 has hint 0.
  CHECK_TRUE(std::count(expected.begin(), expected.end(),
                        std::make_pair(102, NodeId(Role::kWorker, 0))) == 1);
}

TEST(names_who_is_missing) {
  SchedulerMembership s(2, 1, Times(), 0);
  Join(&s, M(Role::kWorker, 2), 0);
  CHECK_TRUE(s.Tick(9999).empty());
  const Actions warned = s.Tick(10000);
  CHECK_TRUE(Says(Find(warned, Action::kWarn), "1 of 2 workers and 1 of 1 servers"));
  CHECK_TRUE(Says(Find(warned, Action::kWarn), "10.0.0.2:2"));
  for (int64_t t = 11000; t < 60000; t += 1000)
    CHECK_TRUE(Find(s.Tick(t), Action::kFail) == nullptr);
  CHECK_TRUE(Says(Find(s.Tick(60000), Action::kFail), "within 60 s"));
  CHECK_TRUE(s.Tick(61000).empty());
}

TEST(the_first_to_lose_patience_hears_who_is_missing) {
  SchedulerMembership s(2, 1, Times(), 5000);
  Member early = M(Role::kWorker, 2);
  early.waited_ms = 4000;  // since 2000
  Join(&s, early, 6000);
  Member later = M(Role::kServer, 3);
  later.waited_ms = 1000;
  Join(&s, later, 7000);
  CHECK_EQ(s.start_by_ms(), 62000);
  CHECK_TRUE(Find(s.Tick(61900), Action::kFail) == nullptr);
  CHECK_TRUE(Says(Find(s.Tick(62000), Action::kFail), "1 of 2 workers"));
  CHECK_EQ(s.start_by_ms(), kNever);
}

TEST(no_node_has_waited_longer_than_it_may) {
  for (const int64_t waited_ms : {int64_t{-1}, int64_t{1} << 62}) {
    SchedulerMembership s(2, 1, Times(), 100000);
    Member member = M(Role::kWorker, 2);
    member.waited_ms = waited_ms;
    Join(&s, member, 100000);
    CHECK_TRUE((Find(s.Tick(100001), Action::kFail) == nullptr) == (waited_ms < 0));
  }
}

TEST(refuses_whom_it_does_not_need) {
  SchedulerMembership s(1, 1, Times(), 0);
  Join(&s, M(Role::kWorker, 2), 0);
  CHECK_TRUE(Says(Find(Join(&s, M(Role::kWorker, 3), 0), Action::kReject), "all of its 1 workers"));
  Member twin = M(Role::kServer, 2);
  twin.life = 77;
  CHECK_TRUE(Says(Find(Join(&s, twin, 0), Action::kReject), "registered already"));
  CHECK_TRUE(Join(&s, M(Role::kWorker, 2), 0).empty());  // the same one again
  CHECK_TRUE(Find(Join(&s, M(Role::kServer, 4), 0), Action::kAssign) != nullptr);
  CHECK_TRUE(Says(Find(Join(&s, M(Role::kServer, 5), 0), Action::kReject),
                  "a node that was restarted cannot join a job that has begun"));
}

TEST(the_scheduler_s_setting_counts_first) {
  SchedulerMembership s(2, 1, Times(), 0, {{"POLICY", "fifo", true}, {"LANES", "1", false}});
  Member same = M(Role::kWorker, 2);
  same.told = {{"POLICY", "fifo", true}};
  CHECK_TRUE(Join(&s, same, 0).empty());
  Member other = M(Role::kWorker, 3);
  other.told = {{"POLICY", "p3", true}};
  CHECK_EQ(Find(Join(&s, other, 0), Action::kReject)->text, "it has POLICY=p3, the scheduler fifo");
  other.told = {{"COLOUR", "red", true}};
  CHECK_EQ(Find(Join(&s, other, 0), Action::kReject)->text,
           "it has COLOUR=red, which the scheduler does not know");
  Join(&s, M(Role::kWorker, 4), 0);
  CHECK_TRUE(Find(Join(&s, M(Role::kServer, 1), 0), Action::kAssign) != nullptr);
  CHECK_EQ(ToText(s.settings()), "POLICY=fifo\nLANES=1\n");
}

TEST(worker_0_s_setting_counts_where_the_scheduler_has_none) {
  SchedulerMembership s(2, 1, Times(), 0, {{"POLICY", "priority", false}, {"LANES", "1", false}});
  Member second = M(Role::kWorker, 2, 1);
  second.told = {{"LANES", "1", true}};
  Join(&s, second, 0);
  Member first = M(Role::kWorker, 3, 0);
  first.told = {{"POLICY", "p3", true}};
  Join(&s, first, 0);
  CHECK_TRUE(Find(Join(&s, M(Role::kServer, 1), 0), Action::kAssign) != nullptr);
  CHECK_EQ(ToText(s.settings()), "POLICY=p3\nLANES=1\n");
}

TEST(nodes_that_were_told_different_settings_make_no_job) {
  for (const bool first_was_told : {false, true}) {
    for (const Role role : {Role::kWorker, Role::kServer}) {
      SchedulerMembership s(2, 1, Times(), 0, {{"POLICY", "priority", false}});
      Member first = M(Role::kWorker, 2, 0), second = M(Role::kWorker, 3, 1);
      Member server = M(Role::kServer, 1);
      if (first_was_told) first.told = {{"POLICY", "p3", true}};
      (role == Role::kWorker ? second : server).told = {{"POLICY", "fifo", true}};
      CHECK_TRUE(Join(&s, second, 0).empty());
      CHECK_TRUE(Join(&s, server, 0).empty());
      const Actions actions = Join(&s, first, 0);
      REQUIRE_EQ(actions.size(), 1U);
      CHECK_TRUE(actions[0].kind == Action::kDisagree);
      CHECK_EQ(actions[0].status.text(),
               std::string(role == Role::kWorker ? "worker 1" : "server 0") +
                   " has POLICY=fifo, worker 0 " +
                   (first_was_told ? "p3" : "priority (the default)"));
      for (const Member& m : s.members()) CHECK_EQ(m.id, -1);  // nobody was given a rank
      CHECK_TRUE(s.Tick(100000).empty());
      CHECK_TRUE(s.Fail(Status::Internal("again")).empty());
    }
  }
}

TEST(names_the_lost) {
  SchedulerMembership s = Running();
  for (int64_t t = 500; t <= 9500; t += 500) {
    s.Heard(NodeId(Role::kServer, 0), t);
    s.Heard(NodeId(Role::kWorker, 0), t);
    CHECK_TRUE(Find(s.Tick(t), Action::kFail) == nullptr);
  }
  s.Heard(NodeId(Role::kServer, 0), 10000);
  s.Heard(NodeId(Role::kWorker, 0), 10000);
  const Actions actions = s.Tick(10000);
  CHECK_TRUE(Says(Find(actions, Action::kFail), "lost worker 1"));
  CHECK_EQ(s.roster().lost().size(), size_t{1});
}

TEST(a_suspended_scheduler_blames_nobody) {
  SchedulerMembership s = Running();
  s.Tick(1000);
  CHECK_TRUE(Find(s.Tick(3600000), Action::kFail) == nullptr);
  CHECK_TRUE(Find(s.Tick(3604000), Action::kFail) == nullptr);
  for (int64_t t = 3604500; t < 3612000; t += 500) {
    if (Find(s.Tick(t), Action::kFail) != nullptr) return;  // but silence afterwards counts
  }
  CHECK_TRUE(false);
}

TEST(ends_when_all_workers_have_left) {
  SchedulerMembership s = Running();
  const Actions first = s.Leave(NodeId(Role::kWorker, 0), Status::Ok(), 1);
  CHECK_TRUE(Find(first, Action::kDeparted) != nullptr);
  CHECK_TRUE(Find(first, Action::kEnd) == nullptr);
  CHECK_TRUE(s.Leave(NodeId(Role::kWorker, 0), Status::Ok(), 1).empty());
  for (int64_t t = 500; t < 30000; t += 500) {  // who has left is not missed
    s.Heard(NodeId(Role::kServer, 0), t);
    s.Heard(NodeId(Role::kWorker, 1), t);
    CHECK_TRUE(Find(s.Tick(t), Action::kFail) == nullptr);
  }
  CHECK_TRUE(Find(s.Leave(NodeId(Role::kWorker, 1), Status::Ok(), 1), Action::kEnd) != nullptr);
}

TEST(a_reason_fails_the_job) {
  SchedulerMembership s = Running();
  CHECK_TRUE(Says(
      Find(s.Leave(NodeId(Role::kWorker, 1), Status::PeerLost("ValueError: no"), 1), Action::kFail),
      "worker 1 ended: ValueError: no"));
  CHECK_TRUE(s.Leave(NodeId(Role::kWorker, 0), Status::Ok(), 1).empty());
  CHECK_TRUE(s.Fail(Status::Internal("again")).empty());
}

TEST(a_server_does_not_leave_early) {
  SchedulerMembership s = Running();
  CHECK_TRUE(Says(Find(s.Leave(NodeId(Role::kServer, 0), Status::Ok(), 1), Action::kFail),
                  "server 0 left"));
}

TEST(withdrawing_while_gathering_fails_the_job) {
  SchedulerMembership s(2, 1, Times(), 0);
  Join(&s, M(Role::kWorker, 2), 0);
  CHECK_TRUE(s.Withdraw(5, "x", 0).empty());
  CHECK_TRUE(
      Says(Find(s.Withdraw(2000, "interrupted", 0), Action::kFail), "10.0.0.2:2 ended before"));
}

TEST(barrier) {
  SchedulerMembership s = Running();
  CHECK_TRUE(s.Barrier(NodeId(Role::kServer, 0), s.releases()).empty());
  CHECK_TRUE(s.Barrier(NodeId(Role::kWorker, 0), s.releases()).empty());
  CHECK_TRUE(Find(s.Barrier(NodeId(Role::kWorker, 1), s.releases()), Action::kRelease) != nullptr);
  CHECK_TRUE(s.Barrier(NodeId(Role::kWorker, 1), s.releases()).empty());
  CHECK_TRUE(Says(Find(s.Leave(NodeId(Role::kWorker, 0), Status::Ok(), 1), Action::kFail),
                  "worker 1 waits for it at a barrier"));
}

TEST(random_events_fail_at_most_once) {
  mercury::testing::Random random;
  for (int round = 0; round < 200; ++round) {
    SchedulerMembership s(3, 2, Times(), 0);
    int fails = 0, ends = 0;
    int64_t now = 0;
    for (int step = 0; step < 300; ++step) {
      now += static_cast<int64_t>(random() % 800);
      Actions actions;
      const int node = 8 + static_cast<int>(random() % 6);
      switch (random() % 8) {
        case 0:
          actions = Join(
              &s,
              M(random() % 2 ? Role::kWorker : Role::kServer, 1 + static_cast<int>(random() % 40)),
              now);
          break;
        case 1:
          s.Heard(node, now);
          break;
        case 2:
          actions = s.Barrier(node, s.releases());
          break;
        case 3:
          if (random() % 10 == 0)
            actions = s.Leave(node, random() % 2 ? Status::Ok() : Status::PeerLost("why"), now);
          break;
        case 4:
          actions = s.Suspect(node, now);
          break;
        case 5:
          if (random() % 10 == 0) {
            actions = s.Accuse(node, 8 + static_cast<int>(random() % 6), "how", now);
          }
          break;
        default:
          actions = s.Tick(now);
          break;
      }
      for (const Action& a : actions) {
        fails += a.kind == Action::kFail ? 1 : 0;
        ends += a.kind == Action::kEnd ? 1 : 0;
      }
    }
    CHECK_TRUE(fails + ends <= 1);
  }
}

namespace {

const int kServer0 = NodeId(Role::kServer, 0);
const int kWorker0 = NodeId(Role::kWorker, 0), kWorker1 = NodeId(Role::kWorker, 1);

// Heartbeats of these every second, from the next on; what fails the job by then, or "".
std::string Watch(SchedulerMembership* s, const std::vector<int>& alive, int64_t* now,
                  int64_t until) {
  for (; *now < until; *now += 500) {
    for (int node : alive) {
      if (*now % 1000 == 0) s->Heard(node, *now);
    }
    const Actions actions = s->Tick(*now);
    if (const Action* fail = Find(actions, Action::kFail)) return fail->status.text();
  }
  return "";
}

}  // namespace

TEST(a_link_has_failed_if_both_ends_are_still_heard) {
  for (const bool server_says : {false, true}) {
    SchedulerMembership s = Running();
    int64_t now = 0;
    CHECK_EQ(Watch(&s, {kServer0, kWorker0, kWorker1}, &now, 20300), "");
    const int reporter = server_says ? kServer0 : kWorker1;
    const int accused = server_says ? kWorker1 : kServer0;
    CHECK_TRUE(s.Accuse(reporter, accused, "nothing arrives", now).empty());
    CHECK_TRUE(s.Accuse(accused, reporter, "nothing arrives", now).empty());
    CHECK_EQ(Watch(&s, {kServer0, kWorker0, kWorker1}, &now, now + 3000),
             "worker 1 and server 0 cannot reach each other: nothing arrives");
    CHECK_TRUE(s.roster().lost().empty());
  }
}

TEST(all_links_that_have_failed_are_named) {
  SchedulerMembership s = Running();
  int64_t now = 0;
  Watch(&s, {kServer0, kWorker0, kWorker1}, &now, 20300);
  s.Accuse(kWorker1, kServer0, "nothing arrives", now);
  s.Accuse(kServer0, kWorker0, "nothing arrives", now);
  CHECK_EQ(Watch(&s, {kServer0, kWorker0, kWorker1}, &now, now + 3000),
           "worker 0 and server 0, worker 1 and server 0 cannot reach each other: nothing arrives");
}

TEST(a_node_whose_connections_all_break_is_lost_at_once) {
  for (const bool accused_first : {false, true}) {
    SchedulerMembership s = Running();
    int64_t now = 0;
    Watch(&s, {kServer0, kWorker0, kWorker1}, &now, 20300);
    const auto accuse = [&] {
      return s.Accuse(kWorker0, kServer0, "its connection was closed", now);
    };
    Actions actions;
    if (accused_first) CHECK_TRUE(accuse().empty());
    actions = s.Suspect(kServer0, now);
    s.Heard(kServer0, now + 1);  // on its way when it died
    if (!accused_first) actions = accuse();
    const Action* fail = Find(actions, Action::kFail);
    REQUIRE_TRUE(fail != nullptr);
    CHECK_TRUE(Says(fail, "lost server 0 ("));
    CHECK_TRUE(Says(fail, "its connection was closed"));
  }
}

TEST(a_node_that_falls_silent_is_not_mistaken_for_a_link) {
  SchedulerMembership s = Running();
  int64_t now = 0;
  Watch(&s, {kServer0, kWorker0, kWorker1}, &now, 20300);
  s.Accuse(kWorker0, kServer0, "nothing arrives", now);
  s.Heard(kServer0, now + 100);  // on its way when it stopped
  const int64_t accused_at = now;
  const std::string text = Watch(&s, {kWorker0, kWorker1}, &now, now + 10000);
  CHECK_TRUE(text.find("lost server 0 (") == 0);
  CHECK_TRUE(now - accused_at <= Times().suspicion_ms() + 500);
}

TEST(what_is_heard_as_the_scheduler_s_own_pause_ends_is_heard_then) {
  SchedulerMembership s = Running();
  int64_t now = 0;
  Watch(&s, {kServer0, kWorker0, kWorker1}, &now, 20300);
  now += 9000;  // it stood still, and reads first what had come meanwhile
  for (const int node : {kServer0, kWorker0, kWorker1}) s.Heard(node, now);
  const int64_t heard_at = now;
  const std::string text = Watch(&s, {kWorker0, kWorker1}, &now, now + 30000);
  CHECK_TRUE(text.find("lost server 0 (") == 0);
  CHECK_TRUE(now - heard_at <= 11000);
}

TEST(who_dies_after_it_has_accused_another_is_the_one_that_is_lost) {
  SchedulerMembership s = Running();
  int64_t now = 0;
  Watch(&s, {kServer0, kWorker0, kWorker1}, &now, 20300);
  s.Accuse(kWorker1, kServer0, "nothing arrives", now);
  CHECK_TRUE(s.Suspect(kWorker1, now).empty());
  const std::string text = Watch(&s, {kServer0, kWorker0}, &now, now + 10000);
  CHECK_TRUE(text.find("lost worker 1 (") == 0);
}

TEST(who_has_left_is_not_accused) {
  SchedulerMembership s = Running();
  int64_t now = 0;
  Watch(&s, {kServer0, kWorker0, kWorker1}, &now, 20300);
  s.Leave(kWorker1, Status::Ok(), now);
  CHECK_TRUE(s.Accuse(kServer0, kWorker1, "its connection was closed", now).empty());
  CHECK_EQ(Watch(&s, {kServer0, kWorker0}, &now, now + 30000), "");
}

TEST(a_node_that_gives_itself_up_is_lost) {
  SchedulerMembership s = Running();
  CHECK_TRUE(
      Says(Find(s.Accuse(kWorker0, kWorker0, "no memory", 100), Action::kFail), "lost worker 0 ("));
}

TEST(a_broken_connection_is_soon_a_loss_unless_heard) {
  SchedulerMembership s = Running();
  const int worker = NodeId(Role::kWorker, 1);
  for (int64_t t = 500; t <= 20000; t += 500) {
    for (int node : {8, 9, 11}) s.Heard(node, t);
    if (t % 5000 == 0) s.Suspect(worker, t);
    CHECK_TRUE(Find(s.Tick(t), Action::kFail) == nullptr);
  }
  s.Suspect(worker, 20000);
  for (int64_t t = 20500; t < 23000; t += 500) {
    for (int node : {8, 9}) s.Heard(node, t);
    CHECK_TRUE(Find(s.Tick(t), Action::kFail) == nullptr);
  }
  CHECK_TRUE(Says(Find(s.Tick(23000), Action::kFail), "lost worker 1"));
}
