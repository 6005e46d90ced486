#include "base/node_name.h"

namespace mercury {

const char* Name(Role role) {
  switch (role) {
    case Role::kServer:
      return "server";
    case Role::kWorker:
      return "worker";
    case Role::kScheduler:
      return "scheduler";
    case Role::kReplica:
      return "replica";
  }
  return "node";
}

int NodeId(Role role, int rank) {
  if (role == Role::kScheduler) return kSchedulerId;
  return 8 + 2 * rank + (role == Role::kWorker ? 1 : 0);
}
Role RoleOf(int node_id) {
  if (node_id < 8) return Role::kScheduler;
  return node_id % 2 != 0 ? Role::kWorker : Role::kServer;
}
int RankOf(int node_id) { return node_id < 8 ? 0 : (node_id - 8) / 2; }

std::string NodeName(Role role, int rank) {
  if (role == Role::kScheduler || rank == kOnlyOne) return std::string("the ") + Name(role);
  return std::string(Name(role)) + " " + std::to_string(rank);
}
std::string NodeName(int node_id) { return NodeName(RoleOf(node_id), RankOf(node_id)); }

}  // namespace mercury
