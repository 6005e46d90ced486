// How links number the nodes of an MLfabric job.
//
// Letters name nodes: workers by rank, -1 the server, -2 the replica, -3 the scheduler. Links need
// a number from 0 on for each other end, the same on all nodes: the peer.
//
// Thread-safety: pure functions. Invariant: NodeOf(PeerOf(node)) == node.
#pragma once

#include <string>

#include "base/status.h"
#include "fabric/live/orders.h"

namespace mercury::fabric {

constexpr int kSchedulerNode = -3;
constexpr int kPeersMost = kWorkersMost + 3;

constexpr int PeerOf(int node) { return node < 0 ? -1 - node : node + 3; }
constexpr int NodeOf(int peer) { return peer < 3 ? -1 - peer : peer - 3; }
constexpr int kServerPeer = PeerOf(kServerNode);
constexpr int kReplicaPeer = PeerOf(kReplicaNode);
constexpr int kSchedulerPeer = PeerOf(kSchedulerNode);

Party PartyOf(int node);
// "worker 1", "the server".
std::string NodeText(int node);
// "worker 1", "server 0": as logs name processes.
std::string LogNameOf(int node);

}  // namespace mercury::fabric
