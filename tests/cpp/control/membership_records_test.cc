// A scheduler that goes on where another was lost, as a state machine; and a node that hears it.
#include <set>
#include <string>

#include "control/membership.h"
#include "control/node_membership.h"
#include "harness.h"
#include "members.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

int W(int rank) { return NodeId(Role::kWorker, rank); }
int S(int rank) { return NodeId(Role::kServer, rank); }

// Of three workers and two servers, running since t = 0, with places for four workers.
SchedulerMembership Begun() {
  SchedulerMembership s(3, 2, Times(), 0);
  for (int r = 0; r < 2; ++r) Join(&s, M(Role::kServer, 1 + r, r), 0);
  for (int r = 0; r < 3; ++r) Join(&s, M(Role::kWorker, 11 + r, r), 0);
  s.GoOnWith(1, true, 4);
  return s;
}

// Another process, by what that one has written down.
SchedulerMembership After(const SchedulerMembership& lost, int64_t now_ms) {
  JobRecord written = lost.Record(), record;
  written.address = {"10.0.0.1", 9091};
  CHECK_OK(FromText(ToText(written), &record));
  SchedulerMembership s(3, 2, Times(), now_ms);
  s.GoOnFrom(record, now_ms);
  s.GoOnWith(1, true, 4);
  return s;
}

// Nobody is lost until then, nor has this process stood still.
void Passes(SchedulerMembership* s, int64_t from_ms, int64_t until_ms) {
  for (int64_t now_ms = from_ms; now_ms < until_ms; now_ms += 500) {
    const Actions actions = s->Tick(now_ms);
    CHECK_TRUE(Find(actions, Action::kLost) == nullptr && Find(actions, Action::kFail) == nullptr);
  }
}

}  // namespace

TEST(who_is_in_stays_in) {
  SchedulerMembership first = Begun();
  first.Leave(W(2), Status::Ok(), 10);
  first.DoWithout(W(1), Status::PeerLost("it is gone"));
  const SchedulerMembership s = After(first, 1000);
  CHECK_TRUE(s.running());
  CHECK_EQ(s.roster().generation(), first.roster().generation());
  CHECK_EQ(s.roster().workers(), 1);
  CHECK_TRUE(s.roster().HasLeft(W(2)) && s.roster().IsLost(W(1)) && !s.roster().IsOut(S(1)));
  CHECK_EQ(s.members().size(), first.members().size());
}

TEST(what_comes_after_goes_on_as_it_would_have) {
  SchedulerMembership s = After(Begun(), 1000);
  CHECK_TRUE(Find(s.Register(M(Role::kWorker, 40, -1), 1000), Action::kAdmit) != nullptr);
  for (const int node : {W(0), W(2), W(3), S(0), S(1)}) s.Heard(node, 10900);
  Passes(&s, 1000, 11000);
  const Actions lost = s.Tick(11000);  // worker 1 was not heard at all
  REQUIRE_TRUE(Find(lost, Action::kLost) != nullptr);
  CHECK_EQ(Find(lost, Action::kLost)->node, W(1));
  const Actions comes = s.Register(M(Role::kWorker, 41, 1), 11000);
  REQUIRE_TRUE(Find(comes, Action::kAdmit) != nullptr);
  CHECK_EQ(int{Find(comes, Action::kAdmit)->member.entry}, 1);
}

TEST(who_comes_in_the_place_of_one_not_heard_yet_waits) {
  SchedulerMembership s = After(Begun(), 1000);
  CHECK_TRUE(s.Register(M(Role::kWorker, 41, 1), 1100).empty());
  for (const int node : {W(0), W(2), S(0), S(1)}) s.Heard(node, 10900);
  for (int64_t now_ms = 1000; now_ms < 11000; now_ms += 500) s.Tick(now_ms);
  const Actions actions = s.Tick(11000);
  REQUIRE_TRUE(Find(actions, Action::kAdmit) != nullptr);
  CHECK_EQ(Find(actions, Action::kAdmit)->node, W(1));
  s.Heard(W(1), 11500);
  SchedulerMembership heard = After(Begun(), 1000);
  heard.Heard(W(1), 1050);
  CHECK_TRUE(Find(heard.Register(M(Role::kWorker, 41, 1), 1100), Action::kReject) != nullptr);
}

TEST(a_newcomer_on_its_way_is_lost) {
  SchedulerMembership first = Begun();
  first.Register(M(Role::kWorker, 40, -1), 10);
  first.Admits(W(3), W(3), Admission::kReady);
  first.Admits(W(0), W(3), Admission::kTakes);
  SchedulerMembership s = After(first, 1000);
  CHECK_TRUE(s.roster().IsNew(W(3)));
  const Actions actions = s.LoseNewcomers();
  REQUIRE_EQ(actions.size(), size_t{1});
  CHECK_TRUE(actions[0].kind == Action::kLost && actions[0].node == W(3));
  CHECK_TRUE(Says(&actions[0], "the scheduler was lost while it was let in"));
  CHECK_EQ(s.roster().generation(), first.roster().generation());
}

TEST(a_barrier_that_others_have_passed_is_passed) {
  SchedulerMembership first = Begun();
  for (const int rank : {0, 1, 2}) first.Barrier(W(rank), 0);
  CHECK_EQ(first.releases(), uint64_t{1});
  SchedulerMembership s = After(first, 1000);
  const Actions late = s.Barrier(W(1), 0);  // it has not heard so
  REQUIRE_TRUE(Find(late, Action::kRelease) != nullptr);
  CHECK_EQ(Find(late, Action::kRelease)->node, W(1));
  CHECK_TRUE(s.Barrier(W(0), 1).empty());  // at the next one
  CHECK_TRUE(s.Barrier(W(2), 1).empty());
  const Actions all = s.Barrier(W(1), 1);
  REQUIRE_TRUE(Find(all, Action::kRelease) != nullptr);
  CHECK_EQ(Find(all, Action::kRelease)->node, -1);
}

TEST(a_job_of_which_nobody_is_there_has_failed) {
  SchedulerMembership s = After(Begun(), 1000);
  Passes(&s, 1000, 11000);
  const Actions ends = s.Tick(11000);  // and nobody is told: they may be there, and be alone
  CHECK_TRUE(Says(Find(ends, Action::kNobody), "nobody is there any more"));
  CHECK_TRUE(Find(ends, Action::kFail) == nullptr);
}

TEST(a_node_takes_its_time_to_be_alone) {
  NodeMembership n("h:1", Times(), 0);
  n.GoOnAlone();
  n.Assigned(0);
  n.Suspect(1000);
  CHECK_TRUE(n.MayBeAloneSoon(1000));
  for (int64_t t = 1000; t < 10000; t += 500) n.Tick(t);
  CHECK_TRUE(!n.alone());
  n.Heard(9900);
  CHECK_TRUE(!n.MayBeAloneSoon(9900) && n.MayBeAloneSoon(12900));
  for (int64_t t = 10000; t <= 19900; t += 100) n.Tick(t);
  CHECK_TRUE(n.alone() && !n.MayBeAloneSoon(19900));
}

TEST(what_is_told_again_is_no_news) {
  NodeMembership n("h:1", Times(), 0);
  Member m = M(Role::kWorker, 40, 1);
  m.id = W(1);
  CHECK_TRUE(n.IsNews(m, Admission::kComes));
  CHECK_TRUE(n.IsNews(m, Admission::kIn));
  CHECK_TRUE(!n.IsNews(m, Admission::kIn) && !n.IsNews(m, Admission::kComes));
  m.entry = 1;  // another in its place
  CHECK_TRUE(n.IsNews(m, Admission::kComes));
}
