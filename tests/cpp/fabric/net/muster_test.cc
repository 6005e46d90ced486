#include "fabric/net/muster.h"

#include "fabric/net/peers.h"
#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;
using mercury::Code;

namespace {

Joining Says(int64_t elements = 10, int64_t checksum = 1) {
  return {"10.0.0.1", 99, 2, 1, 1, elements, checksum, false, {}, 1e9, ""};
}

}  // namespace

TEST(a_job_begins_when_all_are_there_and_linked) {
  Muster muster(2, 1, 1, {});
  CHECK_EQ(muster.Missing(), "the server, the replica, worker 0, worker 1");
  for (const int node : {1, kReplicaNode, kServerNode}) CHECK_OK(muster.Join(node, Says()));
  CHECK_FALSE(muster.all_joined());
  CHECK_EQ(muster.Missing(), "worker 0");
  CHECK_OK(muster.Join(0, Says()));
  CHECK_TRUE(muster.all_joined());
  const Attendance roster = muster.Called();
  CHECK_EQ(roster.seats.size(), 4);
  CHECK_EQ(roster.seats[3].link_bit_per_s, 1e9);
  CHECK_EQ(roster.elements, 10);
  CHECK_FALSE(roster.first_from_worker);
  CHECK_EQ(roster.rule.momentum, 0);
  for (const int node : {1, kReplicaNode, kServerNode}) muster.Ready(node);
  CHECK_FALSE(muster.all_ready());
  CHECK_EQ(muster.Missing(), "worker 0");
  muster.Ready(0);
  CHECK_TRUE(muster.all_ready());
}

TEST(replicas_in_reserve_have_seats_too) {
  Muster muster(2, 1, 2, {});
  CHECK_EQ(muster.Missing(), "the server, the replica, replica 1, worker 0, worker 1");
  Joining joining = Says();
  joining.replicas = 2;
  CHECK_FALSE(muster.Awaits(ReplicaNode(2)));
  CHECK_OK(muster.Join(ReplicaNode(1), joining));
  CHECK_FALSE(muster.Awaits(ReplicaNode(1)));
}

TEST(who_is_not_awaited_is_refused) {
  Muster muster(2, 1, 0, {});
  for (const int node : {kReplicaNode, kSchedulerNode, 2}) CHECK_FALSE(muster.Awaits(node));
  CHECK_STATUS(Code::kInvalidArgument, muster.Join(2, Says()));
  Joining joining = Says();
  joining.replicas = 0;
  CHECK_OK(muster.Join(1, joining));
  CHECK_FALSE(muster.Awaits(1));
  CHECK_STATUS(Code::kInvalidArgument, muster.Join(1, joining));
}

TEST(those_who_disagree_are_named) {
  Muster muster(2, 1, 1, {});
  Joining other = Says();
  other.workers = 1;
  other.replicas = 0;
  CHECK_EQ(muster.Join(0, other).text(),
           "worker 0 was told of 1 worker, 1 server and no replica; the scheduler of 2 workers, 1 "
           "server and 1 replica");
  CHECK_OK(muster.Join(0, Says()));
  CHECK_EQ(muster.Join(1, Says(11)).text(),
           "worker 1 has a model of 11 elements, worker 0 one of 10");
  CHECK_STATUS(Code::kInvalidArgument, muster.Join(1, Says(0)));
  other = Says();
  other.link_bit_per_s = -1;
  CHECK_STATUS(Code::kInvalidArgument, muster.Join(1, other));
  CHECK_OK(muster.Join(kServerNode, Says(10, 1)));
  CHECK_EQ(muster.Join(kReplicaNode, Says(10, 2)).text(),
           "the server and the replica begin with different models: give both the same values");
  CHECK_OK(muster.Join(kReplicaNode, Says(10, 1)));
}

TEST(who_has_the_model_may_await_the_first_values) {
  Muster muster(1, 1, 1, {});
  const auto says = [](int64_t elements) {
    Joining joining = Says(elements, elements);
    joining.workers = 1;
    return joining;
  };
  CHECK_OK(muster.Join(kServerNode, says(0)));
  CHECK_EQ(muster.Join(kReplicaNode, says(10)).text(),
           "of the server and the replica one has first values, and the other awaits worker 0's: "
           "give both the same, or neither any");
  CHECK_OK(muster.Join(kReplicaNode, says(0)));
  CHECK_STATUS(Code::kInvalidArgument, muster.Join(0, says(0)));
  CHECK_OK(muster.Join(0, says(12)));
  CHECK_TRUE(muster.Called().first_from_worker);
  CHECK_EQ(muster.Called().elements, 12);
}

TEST(workers_whose_optimizers_ask_for_the_same_are_obeyed) {
  Muster muster(2, 1, 0, {}, {0.5, false});
  Joining one = Says();
  one.replicas = 0;
  CHECK_OK(muster.Join(kServerNode, one));
  one.has_rule = true;
  one.rule = {0.9, true};
  CHECK_OK(muster.Join(1, one));
  CHECK_TRUE(muster.Called().rule.nesterov);
  CHECK_EQ(muster.Called().rule.momentum, 0.9);
  Joining other = one;
  other.rule = {0.9, false};
  CHECK_EQ(muster.Join(0, other).text(),
           "worker 0 asks the server for momentum 0.9, worker 1 for Nesterov's momentum 0.9: give "
           "all workers the same optimizer");
  other.has_rule = false;
  CHECK_STATUS(Code::kInvalidArgument, muster.Join(0, other));
  CHECK_OK(muster.Join(0, one));
}

TEST(the_scheduler_s_rule_holds_where_no_worker_says_another) {
  Muster muster(2, 1, 1, {}, {0.5, false});
  for (const int node : {kServerNode, kReplicaNode, 0, 1}) CHECK_OK(muster.Join(node, Says()));
  CHECK_EQ(muster.Called().rule.momentum, 0.5);
}

TEST(who_was_told_other_settings_is_told_both_values) {
  Muster muster(2, 1, 1, {{"BOUND", "30", false}, {"RULE", "sum", true}});
  Joining joining = Says();
  joining.told = "RULE=sum\n";
  CHECK_OK(muster.Join(1, joining));
  joining.told = "RULE=sum\nBOUND=5\n";
  CHECK_EQ(muster.Join(0, joining).text(),
           "worker 0 was told BOUND=5, and the scheduler uses 30: set it for the scheduler alone, "
           "or for all alike");
  joining.told = "COLOUR=red\n";
  CHECK_EQ(muster.Join(0, joining).text(),
           "worker 0 was told COLOUR=red, which the scheduler does not know");
  joining.told = "no setting";
  CHECK_STATUS(Code::kCorrupt, muster.Join(0, joining));
}

TEST(all_of_several_servers_are_awaited_and_each_has_something_of_the_model) {
  Muster muster(1, 3, false, {});
  Joining joining = Says(2, 7);
  joining.workers = 1;
  joining.servers = 3;
  joining.replicas = 0;
  CHECK_FALSE(muster.Awaits(ServerNode(3)));
  CHECK_STATUS(Code::kInvalidArgument, muster.Join(ServerNode(2), joining));  // two elements
  joining.elements = 3;
  CHECK_OK(muster.Join(ServerNode(2), joining));
  CHECK_EQ(muster.Missing(), "the server, server 1, worker 0");
  joining.checksum = 8;
  CHECK_EQ(muster.Join(ServerNode(1), joining).text(),
           "server 2 and server 1 begin with different models: give both the same values");
}
