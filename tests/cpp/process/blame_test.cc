#include "process/blame.h"

#include <string>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

const int kWorker0 = NodeId(Role::kWorker, 0), kWorker10 = NodeId(Role::kWorker, 10),
          kServer0 = NodeId(Role::kServer, 0);

}  // namespace

TEST(who_is_lost_is_to_blame) {
  const Status lost = Status::PeerLost("lost worker 0 (127.0.0.1:4): it fell silent");
  CHECK_FALSE(BlamesAnother(lost, kWorker0));
  for (int node : {kWorker10, kServer0, kSchedulerId, 0}) CHECK_TRUE(BlamesAnother(lost, node));
  const Status ended = Status::PeerLost("worker 0 ended: ValueError: no");
  CHECK_FALSE(BlamesAnother(ended, kWorker0));
  CHECK_TRUE(BlamesAnother(ended, kWorker10));
}

TEST(who_sent_what_arrived_damaged_is_to_blame) {
  for (const char* text : {"worker 0: a push (8 bytes, key 7) for server 0 was damaged on the way",
                           "worker 0: a packet whose checksum is wrong"}) {
    const Status damaged = Status::Corrupt(text);
    CHECK_FALSE(BlamesAnother(damaged, kWorker0));
    for (int node : {kWorker10, kServer0, kSchedulerId}) CHECK_TRUE(BlamesAnother(damaged, node));
  }
}

TEST(who_was_told_other_settings_is_to_blame) {
  const Status differs =
      Status::InvalidArgument("worker 10 has MERCURY_POLICY=fifo, worker 0 priority");
  CHECK_FALSE(BlamesAnother(differs, kWorker10));
  CHECK_TRUE(BlamesAnother(differs, kWorker0));
}

TEST(what_befalls_a_node_alone_is_nobody_else_s) {
  for (const std::string text :
       {"the scheduler at 127.0.0.1:9 refuses this node: it is one too many",
        "worker at 127.0.0.1:9 is no more", "server ", ""}) {
    CHECK_FALSE(BlamesAnother(Status::InvalidArgument(text), kWorker0));
  }
  CHECK_FALSE(BlamesAnother(Status::Ok(), kWorker0));
}

TEST(a_node_without_a_rank_has_no_name_to_be_blamed_by) {
  const Status stopped = Status::PeerLost("the scheduler ended: it was stopped");
  CHECK_TRUE(BlamesAnother(stopped, 0));
  CHECK_FALSE(BlamesAnother(stopped, kSchedulerId));
}

TEST(under_mlfabric_nodes_are_called_by_their_role) {
  for (const Status& status : {
           Status::PeerLost("the server is lost, and there is no replica to take over"),
           Status::InvalidArgument("the server has a model of 3 elements, worker 0 one of 4"),
       }) {
    CHECK_FALSE(BlamesAnother(status, "the server"));
    for (const char* other : {"worker 0", "the replica", "the scheduler"}) {
      CHECK_TRUE(BlamesAnother(status, other));
    }
  }
  const Status cut_off = Status::PeerLost("another node cannot reach worker 1");
  CHECK_FALSE(BlamesAnother(cut_off, "worker 1"));
  CHECK_TRUE(BlamesAnother(cut_off, "worker 10"));
}

TEST(whom_a_node_could_not_reach_when_it_came_is_not_to_blame) {
  for (const char* who : {"the scheduler", "the server", "worker 0"}) {
    const Status status = Status::PeerLost(std::string(who) + " at 127.0.0.1:9: it hung up");
    CHECK_FALSE(BlamesAnother(status, "worker 1"));
  }
}
