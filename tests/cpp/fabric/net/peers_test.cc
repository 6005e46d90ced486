#include "fabric/net/peers.h"

#include <set>

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

TEST(each_node_is_one_peer) {
  std::set<int> peers;
  for (int node = kLeastNode; node < kWorkersMost; ++node) {
    CHECK_EQ(NodeOf(PeerOf(node)), node);
    peers.insert(PeerOf(node));
  }
  CHECK_EQ(peers.size(), kPeersMost);
  CHECK_EQ(PeerOf(kServerNode), 0);
  CHECK_EQ(PeerOf(0), 3);
  CHECK_EQ(PeerOf(kLeastNode), kPeersMost - 1);
  for (int server = 0; server < kServersMost; ++server) {
    CHECK_EQ(ServerIndex(ServerNode(server)), server);
    CHECK_TRUE(IsServerNode(ServerNode(server)));
  }
  for (int replica = 0; replica < kReplicasMost; ++replica) {
    CHECK_EQ(ReplicaIndex(ReplicaNode(replica)), replica);
    CHECK_TRUE(IsReplicaNode(ReplicaNode(replica)));
    CHECK_FALSE(IsServerNode(ReplicaNode(replica)));
  }
  for (const int node : {kSchedulerNode, 0}) CHECK_FALSE(IsServerNode(node) || IsReplicaNode(node));
  CHECK_FALSE(IsReplicaNode(ServerNode(kServersMost - 1)) || IsReplicaNode(kLeastNode - 1));
}

TEST(nodes_are_called_by_what_they_do) {
  CHECK_EQ(NodeText(kServerNode), "the server");
  CHECK_EQ(NodeText(kReplicaNode), "the replica");
  CHECK_EQ(NodeText(kSchedulerNode), "the scheduler");
  CHECK_EQ(NodeText(7), "worker 7");
  CHECK_EQ(NodeText(ServerNode(2)), "server 2");
  CHECK_EQ(LogNameOf(ServerNode(2)), "server 2");
  CHECK_EQ(NodeText(ReplicaNode(2)), "replica 2");
  CHECK_EQ(LogNameOf(kServerNode), "server 0");
  CHECK_EQ(LogNameOf(kReplicaNode), "replica 0");
  CHECK_EQ(LogNameOf(kSchedulerNode), "scheduler");
  CHECK_EQ(LogNameOf(7), "worker 7");
}
