#include "fabric/net/peers.h"

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

TEST(each_node_is_one_peer) {
  for (int node = kSchedulerNode; node < 10; ++node) CHECK_EQ(NodeOf(PeerOf(node)), node);
  CHECK_EQ(PeerOf(kServerNode), 0);
  CHECK_EQ(PeerOf(0), 3);
  CHECK_EQ(PeerOf(kWorkersMost - 1), kPeersMost - 1);
}

TEST(nodes_are_called_by_what_they_do) {
  CHECK_EQ(NodeText(kServerNode), "the server");
  CHECK_EQ(NodeText(kReplicaNode), "the replica");
  CHECK_EQ(NodeText(kSchedulerNode), "the scheduler");
  CHECK_EQ(NodeText(7), "worker 7");
  CHECK_EQ(LogNameOf(kServerNode), "server 0");
  CHECK_EQ(LogNameOf(kReplicaNode), "replica 0");
  CHECK_EQ(LogNameOf(kSchedulerNode), "scheduler");
  CHECK_EQ(LogNameOf(7), "worker 7");
}
