// Workers that come once the job has begun, as its scheduler sees them.
#include <algorithm>
#include <set>
#include <string>

#include "control/membership.h"
#include "harness.h"
#include "members.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

int W(int rank) { return NodeId(Role::kWorker, rank); }
int S(int rank) { return NodeId(Role::kServer, rank); }

// Of two workers and two servers, running since t = 0, with places for four workers.
SchedulerMembership Begun(int least = 1, int places = 4) {
  SchedulerMembership s(2, 2, Times(), 0);
  for (int r = 0; r < 2; ++r) {
    Join(&s, M(Role::kServer, 1 + r, r), 0);
    Join(&s, M(Role::kWorker, 11 + r, r), 0);
  }
  s.GoOnWith(least, true, places);
  return s;
}

int Admitted(const Actions& actions) {
  const Action* action = Find(actions, Action::kAdmit);
  return action != nullptr ? action->node : -1;
}

std::set<int> Lost(const Actions& actions) {
  std::set<int> lost;
  for (const Action& a : actions) {
    if (a.kind == Action::kLost) lost.insert(a.node);
  }
  return lost;
}

bool Reports(SchedulerMembership* s, int sayer, int node, Admission admission) {
  const Actions actions = s->Admits(sayer, node, admission);
  const Action* said = Find(actions, Action::kAdmission);
  if (said == nullptr) return false;
  CHECK_EQ(said->node, node);
  CHECK_TRUE(said->admission == admission);
  return true;
}

// Whether it comes as far as that, let in by worker 0.
bool Comes(SchedulerMembership* s, int node, Admission admission) {
  bool all = true;
  for (int at = 1; at <= static_cast<int>(admission); ++at) {
    const auto next = static_cast<Admission>(at);
    const bool own = next == Admission::kReady || next == Admission::kHas;
    all = Reports(s, own ? node : W(0), node, next) && all;
  }
  return all;
}

}  // namespace

TEST(a_newcomer_is_let_in_step_by_step) {
  SchedulerMembership s = Begun();
  CHECK_EQ(Admitted(s.Register(M(Role::kWorker, 21), 5)), W(2));
  CHECK_EQ(s.members().back().entry, 0);
  CHECK_EQ(s.roster().workers(), 2);
  CHECK_TRUE(!Reports(&s, W(0), W(2), Admission::kReady));  // only it says so
  CHECK_TRUE(!Reports(&s, W(0), W(2), Admission::kTakes));  // it is not ready
  CHECK_TRUE(Reports(&s, W(2), W(2), Admission::kReady));
  CHECK_TRUE(!Reports(&s, W(2), W(2), Admission::kTakes));  // only who is in
  CHECK_TRUE(!Reports(&s, W(3), W(2), Admission::kTakes));
  CHECK_TRUE(Reports(&s, W(1), W(2), Admission::kTakes));
  CHECK_TRUE(!Reports(&s, W(0), W(2), Admission::kTakes));  // another does already
  CHECK_TRUE(Reports(&s, W(2), W(2), Admission::kHas));
  CHECK_TRUE(!Reports(&s, W(0), W(2), Admission::kIn));
  CHECK_EQ(s.roster().workers(), 2);
  CHECK_TRUE(Reports(&s, W(1), W(2), Admission::kIn));
  CHECK_EQ(s.roster().workers(), 3);
  CHECK_TRUE(!Reports(&s, W(1), W(2), Admission::kIn));
}

TEST(barriers_do_not_wait_for_newcomers) {
  SchedulerMembership s = Begun();
  s.Register(M(Role::kWorker, 21), 5);
  CHECK_TRUE(s.Barrier(W(2), s.releases()).empty());
  CHECK_TRUE(s.Barrier(W(0), s.releases()).empty());
  CHECK_TRUE(Find(s.Barrier(W(1), s.releases()), Action::kRelease) != nullptr);
  CHECK_TRUE(Comes(&s, W(2), Admission::kIn));
  s.Barrier(W(0), s.releases());
  CHECK_TRUE(s.Barrier(W(1), s.releases()).empty());
  CHECK_TRUE(Find(s.Barrier(W(2), s.releases()), Action::kRelease) != nullptr);
}

TEST(the_lost_are_followed_in_their_places) {
  SchedulerMembership s = Begun(1, 2);
  CHECK_TRUE(Says(Find(s.Register(M(Role::kWorker, 21), 5), Action::kReject),
                  "none of its 2 places for workers is free"));
  CHECK_TRUE(Says(Find(s.Register(M(Role::kWorker, 22, 1), 5), Action::kReject),
                  "worker 1 is still in the job"));
  CHECK_TRUE(Says(Find(s.Register(M(Role::kServer, 23), 5), Action::kReject),
                  "has lost none of its 2 servers"));
  CHECK_TRUE(Lost(s.Ended({Role::kWorker, 1, "was killed by signal 9", true})) ==
             std::set<int>({W(1)}));
  s.Accuse(S(0), W(1), "its connection broke", 5);
  CHECK_EQ(Admitted(s.Register(M(Role::kWorker, 24, 1), 6)), W(1));
  CHECK_EQ(s.members().back().entry, 1);
  CHECK_EQ(s.members().size(), 4U);
  // What was said of the one before is not said of this one.
  for (int64_t t = 500; t <= 9000; t += 500) {
    for (const int id : {S(0), S(1), W(0), W(1)}) s.Heard(id, t);
    CHECK_TRUE(Lost(s.Tick(t)).empty());
  }
  CHECK_TRUE(Comes(&s, W(1), Admission::kIn));
  CHECK_EQ(s.roster().workers(), 2);
}

TEST(what_is_said_late_is_of_who_was_there_before) {
  SchedulerMembership s = Begun(1, 2);
  const Member before = s.members().back();
  CHECK_TRUE(s.HasPlace(before));
  s.Ended({Role::kWorker, 1, "was killed by signal 9", true});
  CHECK_EQ(Admitted(s.Register(M(Role::kWorker, 24, 1), 6)), W(1));
  CHECK_TRUE(s.HasPlace(s.members().back()));
  CHECK_EQ(before.id, s.members().back().id);
  CHECK_TRUE(!s.HasPlace(before));
}

TEST(who_comes_back_before_it_is_missed_waits) {
  for (const bool missed : {true, false}) {
    SchedulerMembership s = Begun(1, 2);
    s.Suspect(W(1), 100);
    CHECK_TRUE(s.Register(M(Role::kWorker, 21, 1), 110).empty());
    CHECK_TRUE(s.Register(M(Role::kWorker, 21, 1), 115).empty());        // said twice
    const Actions of_server = s.Register(M(Role::kServer, 23, 1), 117);  // another node's number
    CHECK_TRUE(Says(Find(of_server, Action::kReject), "server 1 is still in the job"));
    const Actions still = s.Tick(120);
    CHECK_TRUE(Find(still, Action::kReject) == nullptr && Admitted(still) == -1);
    if (missed) {
      s.Accuse(S(0), W(1), "its connection broke", 130);
    } else {
      s.Heard(W(1), 2000);
    }
    const Actions actions = s.Tick(2010);
    CHECK_EQ(Admitted(actions), missed ? W(1) : -1);
    CHECK_EQ(Says(Find(actions, Action::kReject), "worker 1 is still in the job"), !missed);
    const Actions later = s.Tick(2020);
    CHECK_TRUE(Find(later, Action::kReject) == nullptr && Admitted(later) == -1);
  }
}

TEST(who_waits_for_its_place_hears_of_the_end) {
  SchedulerMembership s = Begun(1, 2);
  s.Suspect(W(1), 100);
  CHECK_TRUE(s.Register(M(Role::kWorker, 21, 1), 110).empty());
  s.Leave(W(1), Status::Ok(), 120);
  const Actions actions = s.Leave(W(0), Status::Ok(), 120);
  CHECK_TRUE(Says(Find(actions, Action::kReject), "the job has ended"));
  CHECK_TRUE(Find(actions, Action::kEnd) != nullptr);
}

// It says again that it comes, and has its place then.
TEST(who_has_its_place_does_not_wait_for_it_any_more) {
  SchedulerMembership s = Begun(1, 2);
  s.Suspect(W(1), 100);
  const Member again = M(Role::kWorker, 21, 1);
  CHECK_TRUE(s.Register(again, 110).empty());
  s.Ended({Role::kWorker, 1, "was killed by signal 9", true});
  CHECK_EQ(Admitted(s.Register(again, 112)), W(1));
  s.Leave(W(1), Status::PeerLost("it has another model"), 115);
  const Actions actions = s.Leave(W(0), Status::Ok(), 120);
  CHECK_TRUE(Find(actions, Action::kEnd) != nullptr);
  CHECK_TRUE(Find(actions, Action::kReject) == nullptr);
}

TEST(who_withdraws_while_it_waits_is_not_taken_in) {
  SchedulerMembership s = Begun(1, 2);
  s.Suspect(W(1), 100);
  const Member again = M(Role::kWorker, 21, 1);
  CHECK_TRUE(s.Register(again, 110).empty());
  CHECK_TRUE(s.Withdraw(again.life, "it was interrupted", 111).empty());
  s.Ended({Role::kWorker, 1, "was killed by signal 9", true});
  CHECK_EQ(Admitted(s.Tick(200)), -1);
}

TEST(newcomers_are_lost_alone) {
  SchedulerMembership s = Begun(2);  // which needs both that it has
  s.Register(M(Role::kWorker, 21), 0);
  std::set<int> lost;
  for (int64_t t = 500; t <= 12000; t += 500) {
    for (const int id : {S(0), S(1), W(0), W(1)}) s.Heard(id, t);
    for (const int node : Lost(s.Tick(t))) lost.insert(node);
  }
  CHECK_TRUE(lost == std::set<int>({W(2)}) && s.running());
  CHECK_EQ(Admitted(s.Register(M(Role::kWorker, 22), 12000)), W(2));
  // One that ends with an error of ours ends nobody else's job.
  const Status refused = Status::PeerLost("it has another model").Of(Code::kInvalidArgument);
  CHECK_TRUE(Lost(s.Leave(W(2), refused, 12000)) == std::set<int>({W(2)}) && s.running());
  CHECK_EQ(Admitted(s.Register(M(Role::kWorker, 23), 12000)), W(2));
  CHECK_TRUE(Lost(s.Leave(W(2), Status::Ok(), 12000)) == std::set<int>({W(2)}) && s.running());
  CHECK_EQ(s.members().back().entry, 2);
  // Not even once it is in, while the others may do without it.
  SchedulerMembership other = Begun();
  other.Register(M(Role::kWorker, 21), 0);
  CHECK_TRUE(Comes(&other, W(2), Admission::kIn));
  CHECK_TRUE(Lost(other.Leave(W(2), refused, 1)) == std::set<int>({W(2)}) && other.running());
  CHECK_TRUE(Find(other.Leave(W(1), refused, 1), Action::kFail) != nullptr);
}

TEST(who_is_being_let_in_does_not_outlive_who_lets_it_in_nor_a_server) {
  for (const Admission admission :
       {Admission::kReady, Admission::kTakes, Admission::kHas, Admission::kIn}) {
    for (const bool server : {false, true}) {
      SchedulerMembership s = Begun();
      s.Register(M(Role::kWorker, 21), 0);
      CHECK_TRUE(Comes(&s, W(2), admission));
      const Role role = server ? Role::kServer : Role::kWorker;
      const std::set<int> lost = Lost(s.Ended({role, 0, "was killed by signal 9", true}));
      const bool with = admission == Admission::kTakes || admission == Admission::kHas;
      CHECK_EQ(lost.count(W(2)) != 0, with);
      CHECK_EQ(lost.size(), with ? 2U : 1U);
      CHECK_EQ(s.roster().IsLost(W(2)), with);
    }
  }
}

TEST(who_leaves_while_it_lets_somebody_in_leaves_nobody_half_in) {
  for (const Admission admission : {Admission::kReady, Admission::kTakes, Admission::kHas}) {
    SchedulerMembership s = Begun();
    s.Ended({Role::kServer, 1, "was killed by signal 9", true});
    s.Register(M(Role::kServer, 23, 1), 0);
    s.Register(M(Role::kWorker, 21), 0);
    CHECK_TRUE(Comes(&s, W(2), admission));
    s.Admits(S(0), S(1), Admission::kTakes);
    const bool waits = admission != Admission::kReady;
    const Actions ready = s.Admits(S(1), S(1), Admission::kReady);
    CHECK_EQ(Find(ready, Action::kAdmission) == nullptr, waits);
    const Actions actions = s.Leave(W(0), Status::Ok(), 1);
    CHECK_TRUE(Lost(actions) == (waits ? std::set<int>({W(2)}) : std::set<int>()));
    // The server was waited with.
    CHECK_EQ(Find(actions, Action::kAdmission) != nullptr, waits);
    CHECK_TRUE(s.running());
  }
}

TEST(what_a_newcomer_says_costs_nobody_else) {
  SchedulerMembership s = Begun();
  const auto how = [](Code code) { return Status(code, "it gives up"); };
  int port = 21;
  for (const Code code : {Code::kTimeout, Code::kClosed, Code::kExhausted, Code::kInternal}) {
    for (const int of : {W(0), S(0), W(2)}) {
      CHECK_EQ(Admitted(s.Register(M(Role::kWorker, port++), 0)), W(2));
      CHECK_TRUE(Lost(s.Reported(W(2), of, how(code), 1)) == std::set<int>({W(2)}));
    }
  }
  CHECK_TRUE(s.running());
  // A member that cannot go on is lost alone, too; of another it is believed.
  SchedulerMembership more = Begun();
  CHECK_TRUE(Lost(more.Reported(W(1), W(1), how(Code::kExhausted), 1)) == std::set<int>({W(1)}));
  SchedulerMembership most = Begun();
  CHECK_TRUE(Lost(most.Reported(W(1), W(0), how(Code::kTimeout), 1)) == std::set<int>({W(0)}));
  CHECK_TRUE(Find(most.Reported(W(1), S(0), how(Code::kCorrupt), 1), Action::kFail) != nullptr);
  // A job that needs all ends of it.
  SchedulerMembership all(1, 1, Times(), 0);
  Join(&all, M(Role::kServer, 1), 0);
  Join(&all, M(Role::kWorker, 11), 0);
  CHECK_TRUE(Find(all.Reported(W(0), W(0), how(Code::kExhausted), 1), Action::kFail) != nullptr);
}

TEST(whom_newcomers_cannot_reach_others_do) {
  SchedulerMembership s = Begun(1, 6);
  for (int i = 0; i < 3; ++i) CHECK_EQ(Admitted(s.Register(M(Role::kWorker, 21 + i), 0)), W(2 + i));
  for (int i = 0; i < 3; ++i) {
    for (const int server : {S(0), S(1)}) s.Accuse(W(2 + i), server, "No route to host", 10);
  }
  std::set<int> lost;
  for (int64_t t = 500; t <= 5000; t += 500) {
    for (const int id : {S(0), S(1), W(0), W(1), W(2), W(3), W(4)}) s.Heard(id, t);
    for (const int node : Lost(s.Tick(t))) lost.insert(node);
  }
  CHECK_TRUE(lost == std::set<int>({W(2), W(3), W(4)}) && s.running());
}

// It is in once it is ready, and who has done its work has agreed.
TEST(a_server_comes_in_the_place_of_a_lost_one) {
  SchedulerMembership s = Begun();
  CHECK_TRUE(Lost(s.Ended({Role::kServer, 1, "was killed by signal 9", true})) ==
             std::set<int>({S(1)}));
  CHECK_EQ(Admitted(s.Register(M(Role::kServer, 23), 6)), S(1));
  CHECK_EQ(s.members().back().entry, 1);
  CHECK_TRUE(!Reports(&s, S(0), S(1), Admission::kReady));  // only it says so
  CHECK_TRUE(!Reports(&s, S(1), S(1), Admission::kReady));
  const Actions in = s.Admits(S(0), S(1), Admission::kTakes);
  CHECK_TRUE(Find(in, Action::kAdmission) != nullptr &&
             Find(in, Action::kAdmission)->admission == Admission::kIn);
  // So the other one may be lost.
  CHECK_TRUE(Lost(s.Ended({Role::kServer, 0, "was killed by signal 9", true})) ==
             std::set<int>({S(0)}));
  CHECK_EQ(Admitted(s.Register(M(Role::kServer, 24, 0), 7)), S(0));
  s.Admits(S(0), S(0), Admission::kReady);
  CHECK_TRUE(Find(s.Admits(S(1), S(0), Admission::kTakes), Action::kAdmission) != nullptr);
}

TEST(no_server_comes_while_a_worker_is_let_in) {
  for (const bool lost : {false, true}) {
    SchedulerMembership s = Begun();
    s.Ended({Role::kServer, 1, "was killed by signal 9", true});
    s.Register(M(Role::kServer, 23, 1), 6);
    s.Register(M(Role::kWorker, 24), 6);
    CHECK_TRUE(Comes(&s, W(2), Admission::kTakes));
    CHECK_TRUE(!Reports(&s, S(1), S(1), Admission::kReady));
    CHECK_TRUE(!Reports(&s, S(0), S(1), Admission::kTakes));
    const Actions last = lost ? s.Leave(W(2), Status::PeerLost("it has enough"), 7)
                              : (CHECK_TRUE(Reports(&s, W(2), W(2), Admission::kHas)),
                                 s.Admits(W(0), W(2), Admission::kIn));
    int servers = 0;
    for (const Action& a : last) {
      servers += a.kind == Action::kAdmission && a.node == S(1) ? 1 : 0;
    }
    CHECK_EQ(servers, 1);
  }
}

// Nor does it count, whoever asks, before it is in.
TEST(a_server_that_is_lost_before_it_is_in_was_never_there) {
  SchedulerMembership s = Begun();
  s.Ended({Role::kServer, 1, "was killed by signal 9", true});
  s.Register(M(Role::kServer, 23, 1), 6);
  CHECK_TRUE(Lost(s.Leave(S(1), Status::PeerLost("it has enough"), 7)) == std::set<int>({S(1)}));
  for (const PlaceRecord& placed : s.Record().placed) {
    if (placed.member.id == S(1)) CHECK_TRUE(!placed.late);
  }
  CHECK_EQ(Admitted(s.Register(M(Role::kServer, 24, 1), 8)), S(1));
  CHECK_EQ(s.members().back().entry, 2);
  CHECK_TRUE(Find(s.Ended({Role::kServer, 0, "was killed by signal 9", true}), Action::kFail) !=
             nullptr);
}

TEST(a_job_ends_without_its_newcomers) {
  SchedulerMembership s = Begun();
  s.Register(M(Role::kWorker, 21), 0);
  s.Leave(W(0), Status::Ok(), 1);
  CHECK_TRUE(Find(s.Leave(W(1), Status::Ok(), 1), Action::kEnd) != nullptr);
  CHECK_TRUE(!Reports(&s, W(2), W(2), Admission::kReady));
}

TEST(who_joins_waits_until_the_job_has_begun) {
  SchedulerMembership s(1, 1, Times(), 0);
  s.GoOnWith(1, false, 2);
  CHECK_TRUE(Join(&s, M(Role::kWorker, 21, kJoins), 0).empty());
  Join(&s, M(Role::kServer, 1), 1);
  CHECK_TRUE(Find(Join(&s, M(Role::kWorker, 11), 2), Action::kAssign) != nullptr);
  CHECK_EQ(s.roster().workers(), 1);
  CHECK_EQ(Admitted(s.Tick(500)), W(1));
  CHECK_EQ(Admitted(s.Tick(1000)), -1);
  SchedulerMembership never(1, 1, Times(), 0);
  Join(&never, M(Role::kWorker, 21, kJoins), 0);
  CHECK_TRUE(Says(Find(never.Tick(60000), Action::kReject), "not everybody registered"));
}

// Before the second is told of, the first can be told.
TEST(those_who_came_too_soon_are_admitted_one_after_another) {
  SchedulerMembership s(1, 1, Times(), 0);
  s.GoOnWith(1, false, 4);
  for (int i = 0; i < 3; ++i) Join(&s, M(Role::kWorker, 21 + i, kJoins), 0);
  Join(&s, M(Role::kServer, 1), 1);
  CHECK_TRUE(Find(Join(&s, M(Role::kWorker, 11), 2), Action::kAssign) != nullptr);
  for (int i = 0; i < 3; ++i) {
    const Actions actions = s.Tick(3 + i);
    CHECK_EQ(std::count_if(actions.begin(), actions.end(),
                           [](const Action& a) { return a.kind == Action::kAdmit; }),
             1);
    CHECK_EQ(Admitted(actions), W(1 + i));
  }
}

TEST(who_joins_hears_that_workers_disagree) {
  SchedulerMembership s(2, 1, Times(), 0, {{"POLICY", "priority", false}});
  s.GoOnWith(1, false, 3);
  Join(&s, M(Role::kWorker, 21, kJoins), 0);
  Member first = M(Role::kWorker, 11, 0), second = M(Role::kWorker, 12, 1);
  first.told = {{"POLICY", "p3", true}};
  second.told = {{"POLICY", "fifo", true}};
  Join(&s, first, 1);
  Join(&s, second, 1);
  const Actions actions = Join(&s, M(Role::kServer, 1), 1);
  CHECK_TRUE(Find(actions, Action::kDisagree) != nullptr);
  CHECK_TRUE(Says(Find(actions, Action::kReject), "worker 1 has POLICY=fifo"));
}

TEST(nobody_comes_to_a_job_that_needs_all_or_writes_a_trace) {
  SchedulerMembership traced = Begun(1, 0);
  CHECK_TRUE(Says(Find(traced.Register(M(Role::kWorker, 21), 5), Action::kReject),
                  "nobody joins one that writes a trace (MERCURY_TRACE_DIR)"));
  SchedulerMembership s = Begun(0);
  CHECK_TRUE(Says(Find(s.Register(M(Role::kWorker, 21), 5), Action::kReject), "cannot join"));
  SchedulerMembership elastic = Begun();
  Member asynchronous = M(Role::kWorker, 22);
  asynchronous.asynchronous = true;
  CHECK_TRUE(Says(Find(elastic.Register(asynchronous, 5), Action::kReject), "asynchronously"));
}
