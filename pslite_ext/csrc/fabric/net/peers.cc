#include "fabric/net/peers.h"

namespace mercury::fabric {

std::string NodeText(int node) {
  if (node == kServerNode) return "the server";
  if (node == kReplicaNode) return "the replica";
  if (node == kSchedulerNode) return "the scheduler";
  return "worker " + std::to_string(node);
}

std::string LogNameOf(int node) {
  if (node == kServerNode) return "server 0";
  if (node == kReplicaNode) return "replica 0";
  if (node == kSchedulerNode) return "scheduler";
  return NodeText(node);
}

}  // namespace mercury::fabric
