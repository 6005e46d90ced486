// The scheduler's view of a job under MLfabric: requests become batches, batches plans, plans
// orders; and whoever dies or is late on the way, each update is applied once or its worker hears
// why not.
//
// One batch is under way at a time. The next is planned when all of it is applied or void, and the
// replica has what it was promised: so a plan begins with a network that is free, with the server's
// version as it is, and with the norm of the replica's last step.
//
//   update:  waiting --plan--> planned --server--> committed --replica--> forgotten
//              ^  \--drop-----> reported            \--the server dies--> lost
//              \--void: will not come (a dead node, a transfer that takes too long)
//
// The replica. The last commit of a batch is held until this knows exactly who is in it, and that
// the two models are near enough with what the replica has by then. If they would not be, and
// nothing more is on its way, what is held is void and planned again; and if the replica lacks an
// update whose worker is dead, the server sends it the whole model before the next batch.
//
// Thread-safety: none, one owner; `now_s` is passed in. Invariants: each update is reported once (a
// commit that dies with its server, once more as lost); places rise; nothing is planned while a
// batch is under way; no commit that ends a batch is released with a divergence above the bound.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "base/status.h"
#include "fabric/live/draft.h"
#include "fabric/live/orders.h"
#include "fabric/live/replica_ledger.h"
#include "fabric/network.h"

namespace mercury::fabric {

struct CollectorOptions {
  int64_t delay_bound = 0;
  double momentum = 0;
  double divergence_bound = 0;
  double batch_s = 0.1;
  bool at_once = true;  // plan when no batch is under way, without waiting for `batch_s` to pass
  bool search = false;
  bool as_they_come = false;  // instead of MLfabric's order
  size_t aggregators = 4;     // for the server, and as many for the replica, if there are workers
  uint64_t seed = 1;          // of who aggregates
};

constexpr int64_t kUpdateBytesMax = int64_t{1} << 44;

class Collector {
 public:
  Collector(const FleetHosts& hosts, const CollectorOptions& options);

  // A request that makes no sense is refused with what is wrong; one that was heard before is
  // nothing new.
  Status Push(const Request& request);
  // Plans if it is time; gives up on what takes far longer than planned. `links`: the network now.
  Orders Tick(const std::vector<HostLink>& links, double now_s);
  // When Tick has something to do by time alone; infinity: never.
  double WakeAt() const;

  // From the server: it has applied these; these will never be applied (said for kVoid and for
  // members that an aggregator has skipped); these are next, have come, and are held.
  Orders Committed(const std::vector<int64_t>& places, int64_t version);
  Orders Voided(const std::vector<int64_t>& places);
  Orders Held(const std::vector<int64_t>& places);
  // From the replica: a group has come whole; it has applied all up to here (a place, and the norm
  // of the model's last step there); it is the server now.
  Orders ReplicaHas(const std::vector<int64_t>& places);
  Orders ReplicaApplied(const std::vector<int64_t>& places, double history_norm);
  Orders ReplicaCaughtUp(int64_t place, double history_norm);
  Orders TookOver(int64_t version);

  // A node is dead: nothing more comes from it, and nothing that it said is still on its way.
  Orders Lost(int node);

  int64_t version() const { return version_; }
  size_t under_way() const { return planned_.size(); }
  size_t waiting() const { return waiting_.size(); }

 private:
  enum class State { kReady, kCatchingUp, kTakingOver, kFailed };
  struct Task {
    Request request;
    int attempts = 0;              // so often it was planned
    int aggregator = kServerNode;  // on its way to the server; kServerNode: straight
  };
  bool Idle() const;  // no batch is under way, and the replica has applied all that it can
  bool Alive(int worker) const { return dead_.count(worker) == 0; }
  void PlanNow(const std::vector<HostLink>& links, double now_s, Orders* orders);
  void Begin(const Draft& draft, double now_s, Orders* orders);
  void DropOrphans(Orders* orders);
  void GiveUp(double now_s, Orders* orders);
  void CatchUp(Orders* orders);
  void Commit(int64_t place, Orders* orders);
  void Return(int64_t place, UpdateId id, Orders* orders);
  void EndHold(Orders* orders);
  std::vector<int> DrawAggregators();
  void Judge(Orders* orders);
  void Settle(UpdateId id, Fate fate, Orders* orders);
  void Forget(UpdateId id, Orders* orders);
  void VoidAtServer(const std::vector<int64_t>& places, bool even_arrived, Orders* orders);
  void LoseWorker(int worker, Orders* orders);
  void LoseReplica(Orders* orders);

  const CollectorOptions options_;
  std::mt19937_64 random_;
  State state_ = State::kReady;
  FleetHosts hosts_;  // the server's is that of whoever is the server
  std::set<int> dead_;
  int64_t version_ = 0;
  int64_t next_place_ = 1;
  std::map<int, int64_t> numbers_;       // the last that each worker has asked for
  std::map<UpdateId, Task> tasks_;       // all that are not settled, or not forgotten
  std::vector<UpdateId> waiting_;        // in the order of the requests
  std::map<int64_t, UpdateId> planned_;  // by place
  std::vector<int64_t> held_;            // at the server, ready but for the replica
  int64_t hold_ = 0;                     // the place that is held; 0: none
  ReplicaLedger ledger_;
  double planned_s_ = -1;  // when the last batch was
  double overdue_s_ = 0;   // when that under way is given up
};

}  // namespace mercury::fabric
