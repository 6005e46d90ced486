// What nodes are called: by role and rank in what people read, by ps-lite's number on the wire.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

namespace mercury {

enum class Role { kServer, kWorker, kScheduler, kReplica };
constexpr int kRoles = 4;
constexpr int kOnlyOne = -1;  // the rank of who has none: there is no other of its role
const char* Name(Role role);
// "worker 1", "server 0", "the scheduler"; "the server" of the only one.
std::string NodeName(Role role, int rank);
std::string NodeName(int node_id);  // by ps-lite's number

// ps-lite's numbering: the scheduler is 1, servers are 8, 10, 12, ... and workers 9, 11, 13, ...
constexpr int kSchedulerId = 1;
int NodeId(Role role, int rank);
Role RoleOf(int node_id);
int RankOf(int node_id);

}  // namespace mercury
