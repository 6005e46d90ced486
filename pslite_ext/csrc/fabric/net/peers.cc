#include "fabric/net/peers.h"

namespace mercury::fabric {

Party PartyOf(int node) {
  if (node == kServerNode) return {Role::kServer};
  if (node == kReplicaNode) return {Role::kReplica};
  if (node == kSchedulerNode) return {Role::kScheduler};
  if (IsServerNode(node)) return {Role::kServer, ServerIndex(node), ""};
  if (IsReplicaNode(node)) return {Role::kReplica, ReplicaIndex(node), ""};
  return {Role::kWorker, node, ""};
}

std::string NodeText(int node) {
  const Party party = PartyOf(node);
  return NodeName(party.role, party.rank);
}

std::string LogNameOf(int node) {
  if (node == kServerNode) return "server 0";
  if (node == kReplicaNode) return "replica 0";
  if (node == kSchedulerNode) return "scheduler";
  return NodeText(node);
}

}  // namespace mercury::fabric
