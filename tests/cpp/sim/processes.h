// The processes of a simulated job: what each knows, which may be late, or wrong by now.
//
// Thread-safety: none. Ownership: a process outlives its own end, for whatever still calls on it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "control/node_membership.h"
#include "packets/packet_network.h"
#include "packets/shard_homes.h"
#include "process/workers_present.h"

namespace mercury::testing {

struct Process {
  Process(Role its_role, int its_rank, int servers, const MembershipTimes& times, int64_t now_ms)
      : role(its_role),
        rank(its_rank),
        hint(its_rank),
        membership("the scheduler", times, now_ms),
        homes(servers) {
    membership.GoOnAlone();
  }
  int id() const { return NodeId(role, rank); }
  bool runs() const { return alive && !over; }

  const Role role;
  int rank;  // -1: it has not been told yet
  int hint;  // which one it was started as; -1: any
  uint64_t life = 0;
  bool alive = true;      // it has not died
  bool isolated = false;  // from the scheduler, at least
  bool over = false;      // the job is, for it, for `how`
  Status how;
  NodeMembership membership;
  ShardHomes homes;
  std::set<int> lost, departed;  // nodes
  struct Reported {
    Status why;
    int64_t verdict_by_ms = 0;
  };
  std::map<int, Reported> reported;  // nodes
  uint64_t returns = 0;              // of schedulers that go on, which it has heard of
  bool told = true;                  // who it is; what it hears before that is refused
  std::map<int, uint8_t> entries;    // of workers: how many have had their places before
};

struct ServerProcess : Process {
  using Process::Process;
  std::map<int, Aggregator*> shards;  // its own, and those whose place it has taken
  // Workers, as MercuryServer has them.
  std::set<int> dropped, out, new_ones, let_in, failed, finished;
};

struct WorkerProcess : Process {
  using Process::Process;
  // Its link to the slots of a server, wherever those are.
  struct Home {
    std::shared_ptr<ServerProcess> at;  // null: it is not connected
    Aggregator* slots = nullptr;
    int moves = 0;
  };
  // Whom it lets in, and how far it is.
  struct LettingIn {
    int rank = -1;
    uint8_t entry = 0;
    Admission waits_for = Admission::kTakes;
    std::set<int> shards_left;
  };

  WorkerStreams* streams = nullptr;
  std::vector<std::shared_ptr<Tensor>> tensors;
  std::map<int, Home> links;  // by shard
  WorkersPresent present;
  uint8_t entry = 0;
  bool in = false;  // it trains
  bool at_barrier = false;
  uint64_t passed = 0;      // barriers, as the scheduler counts them
  int step = 0, since = 0;  // rounds done; the last one that it had no part in
  size_t under_way = 0;
  int heard_of = -1;  // a newcomer, at the last step's end
  LettingIn lets_in;
  std::string standing;  // a newcomer: what it was given
  int stands_at = 0;
  bool has = false;
};

inline std::shared_ptr<WorkerProcess> AsWorker(const std::shared_ptr<Process>& process) {
  const bool worker = process->role == Role::kWorker;
  return worker ? std::static_pointer_cast<WorkerProcess>(process) : nullptr;
}

}  // namespace mercury::testing
