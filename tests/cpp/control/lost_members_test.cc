// A job that goes on without workers that it loses, as its scheduler sees it.
#include <set>
#include <string>
#include <vector>

#include "control/membership.h"
#include "harness.h"
#include "members.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

int W(int rank) { return NodeId(Role::kWorker, rank); }
const int kServer0 = NodeId(Role::kServer, 0);

// Of `workers` and one server, running since t = 0; it needs `least` of them.
SchedulerMembership Elastic(int workers, int least) {
  SchedulerMembership s(workers, 1, Times(), 0);
  Join(&s, M(Role::kServer, 1), 0);
  for (int w = 0; w < workers; ++w) Join(&s, M(Role::kWorker, 2 + w, w), 0);
  s.GoOnWith(least, false);
  return s;
}

int Lost(const Actions& actions) {
  const Action* action = Find(actions, Action::kLost);
  return action != nullptr ? action->node : -1;
}

}  // namespace

TEST(whoever_a_launcher_saw_end_is_lost_at_once) {
  SchedulerMembership s = Elastic(3, 2);
  const Actions first = s.Ended({Role::kWorker, 1, "was killed by signal 9", true});
  CHECK_EQ(Lost(first), W(1));
  CHECK_TRUE(Says(Find(first, Action::kLost), "worker 1 was killed by signal 9"));
  CHECK_TRUE(Find(first, Action::kFail) == nullptr && s.running());
  CHECK_TRUE(s.Ended({Role::kWorker, 1, "was killed by signal 9", true}).empty());
  const Actions second = s.Ended({Role::kWorker, 0, "ended with exit code 1", true});
  CHECK_TRUE(Says(Find(second, Action::kFail),
                  "worker 0 ended with exit code 1; 1 worker is left, fewer than "
                  "MERCURY_MIN_WORKERS=2"));
}

TEST(whoever_ends_late_whose_place_another_has_is_nobody_s_loss) {
  SchedulerMembership s = Elastic(3, 1);
  s.Ended({Role::kWorker, 1, "was killed by signal 9", true});
  CHECK_TRUE(s.Ended({Role::kWorker, 7, "ended with exit code 255", true}).empty());
  CHECK_TRUE(s.running());
}

TEST(the_silent_are_lost_together) {
  SchedulerMembership s = Elastic(4, 2);
  std::set<int> lost;
  for (int64_t t = 500; t <= 12000; t += 500) {
    for (const int id : {kServer0, W(0), W(2)}) s.Heard(id, t);
    for (const Action& a : s.Tick(t)) {
      CHECK_TRUE(a.kind != Action::kFail);
      if (a.kind == Action::kLost) lost.insert(a.node);
    }
  }
  CHECK_TRUE(lost == std::set<int>({W(1), W(3)}));
}

TEST(a_server_is_not_done_without) {
  SchedulerMembership s = Elastic(3, 1);
  CHECK_TRUE(Says(Find(s.Ended({Role::kServer, -1, "was killed by signal 9", true}), Action::kFail),
                  "was killed by signal 9"));
  SchedulerMembership silent = Elastic(3, 1);
  for (int64_t t = 500; t < 10000; t += 500) {
    for (int w = 0; w < 3; ++w) silent.Heard(W(w), t);
    silent.Tick(t);
  }
  for (int w = 0; w < 3; ++w) silent.Heard(W(w), 10000);
  CHECK_TRUE(Says(Find(silent.Tick(10000), Action::kFail), "lost server 0"));
}

TEST(of_a_link_that_is_cut_the_worker_is_done_without) {
  SchedulerMembership s = Elastic(3, 1);
  s.Accuse(kServer0, W(1), "its connection broke", 0);
  int lost = -1;
  for (int64_t t = 500; t <= 3500 && lost < 0; t += 500) {
    for (const int id : {kServer0, W(0), W(1), W(2)}) s.Heard(id, t);
    lost = Lost(s.Tick(t));
  }
  CHECK_EQ(lost, W(1));
  CHECK_TRUE(s.running());
}

TEST(a_server_that_several_cannot_reach_is_done_without) {
  for (const bool may_go : {true, false}) {
    SchedulerMembership s(3, 2, Times(), 0);
    for (int port = 10; port < 12; ++port) Join(&s, M(Role::kServer, port, port - 10), 0);
    for (int w = 0; w < 3; ++w) Join(&s, M(Role::kWorker, 2 + w, w), 0);
    s.GoOnWith(1, may_go);
    s.Accuse(W(0), kServer0, "nothing arrives", 0);
    s.Accuse(W(1), kServer0, "nothing arrives", 0);
    std::set<int> lost;
    for (int64_t t = 500; t <= 3500; t += 500) {
      for (const int id : {kServer0, NodeId(Role::kServer, 1), W(0), W(1), W(2)}) s.Heard(id, t);
      for (const Action& a : s.Tick(t)) {
        if (a.kind == Action::kLost) lost.insert(a.node);
      }
    }
    CHECK_TRUE(lost == (may_go ? std::set<int>({kServer0}) : std::set<int>({W(0), W(1)})));
  }
}

// Others find out later that they cannot reach it either.
TEST(a_server_that_nobody_reaches_costs_one_worker_at_most) {
  SchedulerMembership s(4, 2, Times(), 0);
  for (int port = 10; port < 12; ++port) Join(&s, M(Role::kServer, port, port - 10), 0);
  for (int w = 0; w < 4; ++w) Join(&s, M(Role::kWorker, 2 + w, w), 0);
  s.GoOnWith(1, true);
  std::set<int> lost;
  const auto pass = [&](int64_t from_ms, int64_t to_ms) {
    for (int64_t t = from_ms; t <= to_ms; t += 500) {
      for (const Member& m : s.members()) s.Heard(m.id, t);
      for (const Action& a : s.Tick(t)) {
        if (a.kind == Action::kLost) lost.insert(a.node);
      }
    }
  };
  s.Accuse(W(2), kServer0, "nothing arrives", 0);
  pass(500, 5000);
  CHECK_TRUE(lost == std::set<int>({W(2)}));
  s.Accuse(W(0), kServer0, "nothing arrives", 5000);
  pass(5500, 9000);
  CHECK_TRUE(lost == std::set<int>({W(2), kServer0}));
  // It is another link's failure, long after.
  s.Accuse(W(1), NodeId(Role::kServer, 1), "nothing arrives", 90000);
  pass(90500, 95000);
  CHECK_TRUE(lost.count(W(1)) != 0 && s.running());
}

TEST(a_worker_that_stalls_is_done_without) {
  SchedulerMembership s = Elastic(3, 2);
  const Status how = Status::Timeout("tensor 'w' has waited for 600 s");
  CHECK_EQ(Lost(s.DoWithout(W(2), how)), W(2));
  CHECK_TRUE(s.DoWithout(W(2), how).empty());
  CHECK_TRUE(Says(Find(s.DoWithout(W(0), how), Action::kFail), "has waited"));
}

TEST(barriers_are_those_of_the_others) {
  SchedulerMembership s = Elastic(3, 1);
  CHECK_TRUE(s.Barrier(W(0), s.releases()).empty());
  CHECK_TRUE(s.Barrier(W(1), s.releases()).empty());
  const Actions lost = s.Ended({Role::kWorker, 2, "was killed by signal 9", true});
  CHECK_EQ(Lost(lost), W(2));
  CHECK_TRUE(Find(lost, Action::kRelease) != nullptr);
  // Neither does one that has left hold the others up, nor one that dies at a barrier count.
  CHECK_TRUE(s.Barrier(W(0), s.releases()).empty());
  const Actions left = s.Leave(W(1), Status::Ok(), 100);
  CHECK_TRUE(Find(left, Action::kDeparted) != nullptr);
  CHECK_TRUE(Find(left, Action::kRelease) != nullptr);
}

TEST(the_job_is_over_when_all_are_out) {
  SchedulerMembership s = Elastic(3, 1);
  s.Leave(W(0), Status::Ok(), 0);
  CHECK_EQ(Lost(s.Leave(W(1), Status::Internal("a bug"), 10)), W(1));
  CHECK_TRUE(Find(s.Leave(W(2), Status::Ok(), 20), Action::kEnd) != nullptr);
  // The last one that trains is done without, too, if enough have finished.
  for (const int least : {1, 2}) {
    SchedulerMembership last = Elastic(2, least);
    last.Leave(W(0), Status::Ok(), 0);
    const Actions actions = last.Leave(W(1), Status::Internal("a bug"), 10);
    CHECK_TRUE((Find(actions, Action::kEnd) != nullptr) == (least == 1));
    CHECK_TRUE((Find(actions, Action::kFail) != nullptr) == (least == 2));
  }
}

TEST(what_is_refused_of_one_ends_the_job) {
  SchedulerMembership s = Elastic(3, 1);
  const Status refused = Status::PeerLost("InvalidArgumentError: no").Of(Code::kInvalidArgument);
  CHECK_TRUE(Says(Find(s.Leave(W(1), refused, 0), Action::kFail), "no"));
}

// Against a plain count, whatever happens, in any order.
TEST(never_too_few_and_never_divided) {
  Random random;
  for (int trial = 0; trial < Trials(20000); ++trial) {
    const int workers = static_cast<int>(random.Between(1, 6));
    const int least = static_cast<int>(random.Between(1, workers));
    SchedulerMembership s = Elastic(workers, least);
    std::set<int> out, finished;
    bool over = false;
    int64_t now = 0;
    for (int step = 0; step < 40 && !over; ++step) {
      now += random.Between(0, 1000);
      const int w = static_cast<int>(random.Below(static_cast<uint64_t>(workers)));
      for (const int id : {kServer0, W(0), W(1), W(2), W(3), W(4), W(5)}) s.Heard(id, now);
      Actions actions;
      switch (random.Below(7)) {
        case 0:
          actions = s.Ended({Role::kWorker, w, "was killed by signal 9", true});
          break;
        case 1:
          actions = s.Leave(W(w), random.OneIn(2) ? Status::Ok() : Status::Internal("a bug"), now);
          break;
        case 2:
          actions = s.Accuse(kServer0, W(w), "its connection broke", now);
          break;
        case 3:
          actions = s.Suspect(W(w), now);
          break;
        case 4:
          actions = s.Barrier(W(w), s.releases());
          break;
        case 5:
          actions = s.DoWithout(W(w), Status::Timeout("it stalls"));
          break;
        default:
          actions = s.Tick(now);
      }
      for (const Action& a : actions) {
        CHECK_TRUE(!over);
        if (a.kind == Action::kLost) CHECK_TRUE(out.insert(a.node).second);
        if (a.kind == Action::kDeparted) CHECK_TRUE(out.insert(a.node).second);
        if (a.kind == Action::kDeparted) finished.insert(a.node);
        if (a.kind == Action::kRelease) CHECK_TRUE(static_cast<int>(out.size()) < workers);
        if (a.kind == Action::kEnd) CHECK_EQ(static_cast<int>(out.size()), workers);
        over = over || a.kind == Action::kEnd || a.kind == Action::kFail;
      }
      if (over) continue;
      CHECK_EQ(s.roster().workers(), workers - static_cast<int>(out.size()));
      CHECK_EQ(s.roster().generation(), 1 + out.size());
      CHECK_TRUE(workers - static_cast<int>(out.size() - finished.size()) >= least);
    }
  }
}
