// The scheduler's view of a job under MLfabric: requests become batches, batches plans, plans
// orders. Whatever dies or is late on the way, each update is applied once, or its worker is told
// why not.
//
// Only one batch is under way at a time. The next is planned when all of it is applied or void, and
// the replica has what it was promised. So a plan starts with a free network, and with the server's
// exact version and the exact norm of the replica's last step.
//
//   update:  waiting --plan--> planned --server--> committed --replica--> forgotten
//              ^  \--drop-----> reported            \--the server dies--> lost
//              \--void: will not come (a dead node, a transfer that takes too long)
//
// batching.h decides what is planned together. A round (in a job that bounds staleness, or of an
// all-reduce) gets as much time as it needs; none of it is dropped; what a dead server had and its
// replica has not is planned again. If a round needs everybody, the loss of a worker ends the job.
// Parts of an all-reduce are kept until all workers have its sum.
//
// The replica. The last commit of a batch is held until it is known exactly what is in it, and the
// two models are close enough with what the replica has by then. If they would not be, and nothing
// more is on its way, what is held is void and planned again. If the replica lacks an update whose
// worker is dead, the server sends it the whole model before the next batch. A round goes to the
// replica as a whole, or not at all. If one did not, and the next would break the bound, the server
// sends its model first.
//
// More replicas are in reserve. When there is none that follows the server, because it is lost or
// has become the server, the next one is sent the whole model, between two batches, and follows
// from then on. Before it has the model, it cannot take over.
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
#include <string>
#include <vector>

#include "base/never.h"
#include "base/status.h"
#include "fabric/live/batching.h"
#include "fabric/live/draft.h"
#include "fabric/live/orders.h"
#include "fabric/live/replica_ledger.h"
#include "fabric/network.h"

namespace mercury::fabric {

struct CollectorOptions {
  Staleness staleness;
  int64_t delay_bound = 0;
  double momentum = 0;
  double divergence_bound = 0;
  double batch_s = 0.1;
  bool at_once = true;  // plan when no batch is under way, without waiting for `batch_s` to pass
  bool search = false;
  bool as_they_come = false;  // instead of MLfabric's order
  bool coded = false;         // updates travel as 16-bit floats
  bool by_packets = false;    // chains (chains.h) instead of groups that are summed whole
  size_t aggregators = 4;     // for the server, and as many for the replica, if there are workers
  uint64_t seed = 1;          // of who aggregates
};

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
  // From a worker: it has the sum of the all-reduce of which this is its part, of that reign's
  // server (request.h).
  Orders Got(UpdateId part, int64_t reign = 0);

  // A node is dead: nothing more comes from it, and nothing that it said is still on its way.
  Orders Lost(int node);

  int64_t version() const { return version_; }
  const FleetHosts& hosts() const { return hosts_; }
  // Whether it is the replica that follows the server; and whether that has the model by now.
  bool Follows(int node) const { return hosts_.replica && node == hosts_.replica_node; }
  bool replica_has_model() const { return hosts_.replica && replica_has_model_; }
  size_t under_way() const { return planned_.size(); }
  size_t waiting() const { return batching_.size(); }

 private:
  enum class State { kReady, kCatchingUp, kTakingOver, kFailed };
  struct Task {
    Request request;
    int attempts = 0;              // so often it was planned
    int aggregator = kServerNode;  // on its way to the server; kServerNode: straight
    int64_t turn = 0;              // as Batching counts
    int64_t round = 0;             // in which it was planned last
    bool told = false;             // its worker has heard of its commit
    bool got = false;              // its worker has the sum of the all-reduce
  };
  bool Idle() const;  // no batch is under way, and the replica has applied all that it can
  bool Alive(int worker) const { return dead_.count(worker) == 0; }
  void PlanNow(const std::vector<HostLink>& links, double now_s, Orders* orders);
  void Begin(const Draft& draft, double now_s, Orders* orders);
  void Wait(UpdateId id);
  std::vector<UpdateId> WithoutOrphans(const std::vector<UpdateId>& ids, Orders* orders);
  // Whether this batch goes to the replica, too; nothing: the replica gets the model before.
  std::optional<bool> Replicates(const Chosen& chosen) const;
  void SendModel(Orders* orders);
  int64_t LastVersionOf(int64_t reign) const;
  void Again(UpdateId id, Orders* orders);
  void ForgetReduced(Orders* orders);
  void Fail(const Status& status, Orders* orders);
  void FailWithout(int worker, Orders* orders);
  void GiveUp(double now_s, Orders* orders);
  void CatchUp(Orders* orders);
  void Commit(int64_t place, Orders* orders);
  void Return(int64_t place, UpdateId id, Orders* orders);
  void EndHold(Orders* orders);
  std::vector<int> DrawAggregators(size_t goals);
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
  int server_node_ = kServerNode;  // who has become the server
  int lost_server_ = kServerNode;  // whose loss began the last taking over
  int64_t version_ = 0;
  std::vector<int64_t> lasts_;  // of each server that is lost: later versions of it died with it
  int64_t next_place_ = 1;
  std::map<int, int64_t> numbers_;            // the last that each worker has asked for
  std::map<UpdateId, Task> tasks_;            // all that are not settled, or not forgotten
  Batching batching_;                         // all that wait
  std::set<UpdateId> reduced_;                // their sum is at the server, and not at all workers
  std::map<int64_t, UpdateId> planned_;       // by place
  std::vector<std::vector<int64_t>> chains_;  // places of those of the batch under way
  std::vector<int64_t> relayed_;              // of that batch, those that go through the replica
  std::vector<int64_t> held_;                 // at the server, ready but for the replica
  int64_t hold_ = 0;                          // the place that is held; 0: none
  ReplicaLedger ledger_;
  bool replica_has_model_ = true;  // what it follows from
  bool gave_up_ = false;           // on something since nothing was under way
  double planned_s_ = -1;          // when the last batch was
  double overdue_s_ = 0;           // when that under way is given up
};

}  // namespace mercury::fabric
