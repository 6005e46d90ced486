// How letters and orders number the nodes of an MLfabric job: workers by rank, all others below 0.
//
// Whoever is the server is told so as kServerNode, also a replica that has taken over. If there are
// several servers, the first one leads, and the others do as it says. Of several replicas, the
// first one follows the server, and the others are in reserve.
//
// Thread-safety: pure functions. Invariant: each number is that of one node.
#pragma once

namespace mercury::fabric {

constexpr int kServerNode = -1;
constexpr int kReplicaNode = -2;
constexpr int kSchedulerNode = -3;
constexpr int kWorkersMost = 2000;
constexpr int kServersMost = 16;
constexpr int kReplicasMost = 8;

constexpr int ServerNode(int index) { return index == 0 ? kServerNode : kSchedulerNode - index; }
constexpr int kLeastServerNode = ServerNode(kServersMost - 1);
constexpr bool IsServerNode(int node) {
  return node == kServerNode || (node < kSchedulerNode && node >= kLeastServerNode);
}
constexpr int ServerIndex(int node) { return node == kServerNode ? 0 : kSchedulerNode - node; }

constexpr int ReplicaNode(int index) {
  return index == 0 ? kReplicaNode : kLeastServerNode - index;
}
constexpr int kLeastNode = ReplicaNode(kReplicasMost - 1);
constexpr bool IsReplicaNode(int node) {
  return node == kReplicaNode || (node < kLeastServerNode && node >= kLeastNode);
}
constexpr int ReplicaIndex(int node) { return node == kReplicaNode ? 0 : kLeastServerNode - node; }

}  // namespace mercury::fabric
