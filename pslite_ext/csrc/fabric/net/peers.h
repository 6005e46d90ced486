// How links number the nodes of an MLfabric job.
//
// Letters name nodes as live/node_numbers.h does. Links need a number from 0 on for each other end,
// the same on all nodes: the peer.
//
// Thread-safety: pure functions. Invariant: NodeOf(PeerOf(node)) == node.
#pragma once

#include <string>

#include "base/status.h"
#include "fabric/live/orders.h"

namespace mercury::fabric {

constexpr int kServersFrom = kWorkersMost + 3;  // the peers of all servers but the first
constexpr int kReplicasFrom = kServersFrom + kServersMost - 1;  // of all replicas but the first
constexpr int kPeersMost = kReplicasFrom + kReplicasMost - 1;

constexpr int PeerOf(int node) {
  if (node >= 0) return node + 3;
  if (node >= kSchedulerNode) return -1 - node;
  return IsServerNode(node) ? kServersFrom + ServerIndex(node) - 1
                            : kReplicasFrom + ReplicaIndex(node) - 1;
}
constexpr int NodeOf(int peer) {
  if (peer >= kReplicasFrom) return ReplicaNode(peer - kReplicasFrom + 1);
  if (peer >= kServersFrom) return ServerNode(peer - kServersFrom + 1);
  return peer < 3 ? -1 - peer : peer - 3;
}
// Which of several servers it is.
constexpr size_t ServerOf(int peer) { return static_cast<size_t>(ServerIndex(NodeOf(peer))); }
constexpr int kServerPeer = PeerOf(kServerNode);
constexpr int kReplicaPeer = PeerOf(kReplicaNode);
constexpr int kSchedulerPeer = PeerOf(kSchedulerNode);

Party PartyOf(int node);
// "worker 1", "the server", "server 1", "the replica", "replica 1".
std::string NodeText(int node);
// "worker 1", "server 0": as logs name processes.
std::string LogNameOf(int node);

}  // namespace mercury::fabric
