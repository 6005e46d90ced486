#include "control/node_membership.h"

#include "harness.h"
#include "members.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

TEST(node_gives_up_on_a_silent_scheduler) {
  NodeMembership n("h:1", Times(), 0);
  CHECK_TRUE(n.Tick(1000).empty());
  CHECK_TRUE(Says(Find(n.Tick(10000), Action::kWarn), "h:1"));
  n.Assigned(10500);
  CHECK_TRUE(Find(n.Tick(10600), Action::kHeartbeat) != nullptr);
  CHECK_TRUE(n.Tick(10700).empty());
  for (int64_t t = 11000; t < 20500; t += 500)
    CHECK_TRUE(Find(n.Tick(t), Action::kFail) == nullptr);
  CHECK_TRUE(Says(Find(n.Tick(20500), Action::kFail), "lost the scheduler (h:1)"));
  CHECK_TRUE(n.Tick(21000).empty());
}

TEST(node_start_timeout) {
  NodeMembership n("h:1", Times(), 0);
  for (int64_t t = 0; t < 65000; t += 100) CHECK_TRUE(Find(n.Tick(t), Action::kFail) == nullptr);
  const Actions gives_up = n.Tick(65000);  // after the scheduler, which knows who is missing
  CHECK_TRUE(Says(Find(gives_up, Action::kFail), "did not start the job within 60 s"));
  CHECK_STATUS(Code::kTimeout, gives_up[0].status);
}

TEST(what_the_scheduler_said_first_is_lost) {
  NodeMembership n("h:1", Times(), 0);
  n.HeardLate(1000);
  n.HeardLate(2000);
  CHECK_TRUE(n.Tick(3900).empty());
  const Actions fails = n.Tick(4000);
  CHECK_TRUE(Says(Find(fails, Action::kFail), "messages were lost on the way"));
  CHECK_STATUS(Code::kPeerLost, fails[0].status);
  CHECK_TRUE(n.Tick(5000).empty());
}

TEST(what_comes_before_a_table_is_no_loss) {
  NodeMembership n("h:1", Times(), 0);
  n.HeardLate(1000);
  n.Assigned(2000);
  CHECK_TRUE(Find(n.Tick(4500), Action::kFail) == nullptr);
}

TEST(what_a_node_hears_as_its_own_pause_ends_is_heard_then) {
  NodeMembership n("h:1", Times(), 0);
  n.Assigned(500);
  for (int64_t t = 1000; t < 2000; t += 500) n.Tick(t);
  n.Heard(12000);  // what had come meanwhile is read first
  for (int64_t t = 12000; t < 22000; t += 500) {
    CHECK_TRUE(Find(n.Tick(t), Action::kFail) == nullptr);
  }
  CHECK_TRUE(Says(Find(n.Tick(22000), Action::kFail), "lost the scheduler (h:1)"));
}

TEST(who_is_alone_does_without_those_who_were_not_in_yet) {
  NodeMembership n("h:1", Times(), 0);
  n.GoOnAlone();
  n.Assigned(500);
  Member member;
  member.id = NodeId(Role::kWorker, 2);
  CHECK_TRUE(n.IsNews(member, Admission::kComes));
  CHECK_TRUE(!n.DoesWithout(member.id));  // the scheduler says who is lost
  for (int64_t t = 500; t <= 10500; t += 500) n.Tick(t);
  CHECK_TRUE(n.alone() && n.DoesWithout(member.id));
  CHECK_TRUE(!n.DoesWithout(NodeId(Role::kWorker, 0)));
  n.IsLetIn(member.id, member.entry);
  CHECK_TRUE(!n.DoesWithout(member.id));  // others may train with it
  ++member.entry;
  CHECK_TRUE(n.IsNews(member, Admission::kComes));
  CHECK_TRUE(n.DoesWithout(member.id));
  CHECK_TRUE(n.IsNews(member, Admission::kIn));
  CHECK_TRUE(!n.DoesWithout(member.id));
}
