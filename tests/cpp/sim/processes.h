// The processes of a simulated job: what each knows, which may be late, or wrong by now.
//
// Thread-safety: none. Ownership: a process outlives its own end, for whatever still calls on it.
#pragma once

#include <algorithm>
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
  Process(Role its_role, int its_rank, int shards, const MembershipTimes& times, int64_t now_ms)
      : role(its_role),
        rank(its_rank),
        hint(its_rank),
        membership("the scheduler", times, now_ms),
        homes(shards) {
    membership.GoOnAlone();
  }
  int id() const { return NodeId(role, rank); }
  bool runs() const { return alive && !over; }
  // Of a newcomer: which servers are there. Whose slots have been summed elsewhere, or are.
  std::vector<bool> Knows(const std::map<int, Member>& there, int shards) {
    servers = there;
    std::vector<bool> moved;
    for (int s = 0; s < shards; ++s) {
      if (there.count(s) == 0) homes.Lose(s);
    }
    for (int s = 0; s < shards; ++s) {
      moved.push_back(homes.Of(s) != s || there.at(s).entry != 0);
    }
    return moved;
  }

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
  std::map<int, Member> servers;  // by rank: who is there, or was last, as far as it knows
  std::set<int> lost, departed;   // nodes
  uint64_t began_with = 1;
  std::map<int, uint64_t> changed;  // by node: when it was last lost, or came in
  // Whether a server had been in since it was lost before.
  bool WasIn(int node, uint64_t at) {
    uint64_t& last = changed[node];
    const bool was_in = RoleOf(node) == Role::kServer && at > std::max(last, began_with);
    last = std::max(last, at);
    return was_in;
  }
  uint64_t generation = 1, change = 1;  // the last that it has heard of; that of what it hears now
  void Begins(uint64_t number) {
    change = number;
    generation = std::max(generation, number);
  }
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
  std::map<int, uint64_t> since;      // of these
  std::vector<Aggregator*> given;     // that other servers have by now
  std::set<int> coming;               // servers
  bool in = true, late = false;
  int64_t waits_since_ms = 0;  // for workers, without a scheduler
  // Workers, as MercuryServer has them.
  std::set<int> dropped, out, new_ones, let_in, failed, finished;

  void IsOut(int worker) {
    out.insert(worker);
    new_ones.erase(worker);
    let_in.erase(worker);
  }
  void Drop(int worker) {
    IsOut(worker);
    dropped.insert(worker);
    failed.erase(worker);
    for (auto& [shard, slots] : shards) slots->Drop(worker, 0);
    for (Aggregator* slots : given) slots->Drop(worker, 0);
  }
  void Expect(int worker) {
    IsOut(worker);
    dropped.erase(worker);
    failed.erase(worker);
    finished.erase(worker);
    new_ones.insert(worker);
    for (auto& [shard, slots] : shards) slots->Expect(worker);
    for (Aggregator* slots : given) slots->Expect(worker);
  }
  void LetIn(int worker) {
    if (new_ones.erase(worker) == 0) return;
    let_in.erase(worker);
    out.erase(worker);
    if (in) return;
    for (auto& [shard, slots] : shards) CHECK_OK(slots->LetIn(worker, 0));
  }
};

struct WorkerProcess : Process {
  using Process::Process;
  // Its link to the slots of a server, wherever those are.
  struct Home {
    std::shared_ptr<ServerProcess> at;  // null: it is not connected
    Aggregator* slots = nullptr;
    int moves = 0;
    std::set<Aggregator*> been = {};  // where it has been connected to
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

// As others know it.
inline Member MemberOf(const Process& process) {
  Member member;
  member.role = process.role;
  member.id = process.id();
  member.life = process.life;
  return member;
}

inline std::shared_ptr<WorkerProcess> AsWorker(const std::shared_ptr<Process>& process) {
  const bool worker = process->role == Role::kWorker;
  return worker ? std::static_pointer_cast<WorkerProcess>(process) : nullptr;
}
inline std::shared_ptr<ServerProcess> AsServer(const std::shared_ptr<Process>& process) {
  const bool server = process->role == Role::kServer;
  return server ? std::static_pointer_cast<ServerProcess>(process) : nullptr;
}

}  // namespace mercury::testing
