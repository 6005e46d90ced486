#include "process/blame.h"

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

const int kWorker0 = NodeId(Role::kWorker, 0), kWorker10 = NodeId(Role::kWorker, 10),
          kServer0 = NodeId(Role::kServer, 0);

}  // namespace

TEST(who_is_named_is_to_blame_for_all_others) {
  for (const Blame::Fault fault : {Blame::kNamed, Blame::kDid, Blame::kLost, Blame::kEnded}) {
    const Status status = Status::Corrupt("x").By({fault, kWorker0});
    CHECK_FALSE(BlamesAnother(status, kWorker0));
    for (int node : {kWorker10, kServer0, kSchedulerId, 0}) {
      CHECK_TRUE(BlamesAnother(status, node));
    }
  }
}

TEST(of_several_that_are_lost_none_blames_another) {
  const Status status =
      Status::PeerLost("x").By({Blame::kLost, {{Role::kWorker, 0, ""}, {Role::kWorker, 10, ""}}});
  CHECK_FALSE(BlamesAnother(status, kWorker10));
  CHECK_TRUE(BlamesAnother(status, kServer0));
}

TEST(of_two_that_cannot_reach_each_other_the_first_one_is_named) {
  const Status status =
      Status::PeerLost("x").By({Blame::kApart, {{Role::kWorker, 0, ""}, {Role::kServer, 0, ""}}});
  CHECK_FALSE(BlamesAnother(status, kWorker0));
  CHECK_TRUE(BlamesAnother(status, kServer0));
}

TEST(what_befalls_a_node_alone_is_nobody_else_s) {
  CHECK_FALSE(BlamesAnother(Status::InvalidArgument("worker 0 is one too many"), kWorker0));
  CHECK_FALSE(BlamesAnother(Status::Ok(), kWorker0));
  // Whom it could not reach when it came.
  const Party server{Role::kServer, 0, "127.0.0.1:9"};
  CHECK_FALSE(
      BlamesAnother(Status::PeerLost("it hung up").By({Blame::kUnreached, server}), kWorker0));
}

TEST(who_is_lost_need_not_have_a_rank) {
  CHECK_TRUE(BlamesAnother(Status::PeerLost("lost worker at 127.0.0.1:9"), kWorker0));
}

TEST(the_scheduler_is_one_whatever_its_rank) {
  const Status stopped =
      Status::PeerLost("it was stopped").By({Blame::kEnded, Party{Role::kScheduler}});
  CHECK_TRUE(BlamesAnother(stopped, 0));
  CHECK_FALSE(BlamesAnother(stopped, kSchedulerId));
}

TEST(under_mlfabric_nodes_have_no_rank) {
  const Status lost = Status::PeerLost("x").By({Blame::kNamed, Party{Role::kServer}});
  CHECK_FALSE(BlamesAnother(lost, Party{Role::kServer}));
  for (const Party& other : {Party{Role::kWorker, 0}, Party{Role::kReplica}}) {
    CHECK_TRUE(BlamesAnother(lost, other));
  }
}
