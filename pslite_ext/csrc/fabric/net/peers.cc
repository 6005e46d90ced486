#include "fabric/net/peers.h"

namespace mercury::fabric {

std::string NodeText(int node) {
  if (node == kServerNode) return "the server";
  if (node == kReplicaNode) return "the replica";
  if (node == kSchedulerNode) return "the scheduler";
  return "worker " + std::to_string(node);
}

}  // namespace mercury::fabric
