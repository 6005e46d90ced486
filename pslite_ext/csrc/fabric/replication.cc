#include "fabric/replication.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fabric/aggregation.h"
#include "fabric/course.h"

namespace mercury::fabric {
namespace {

size_t From(const Transfer& transfer, const std::vector<Shipment>& shipments,
            const Target& target) {
  if (transfer.relaying == Relaying::kFrom) return target.end();
  if (transfer.chained) return shipments[transfer.shipments.back()].host;
  if (transfer.from_aggregator == kDirect) return shipments[transfer.shipments[0]].host;
  return target.aggregators[static_cast<size_t>(transfer.from_aggregator)];
}

size_t To(const Transfer& transfer, const std::vector<Shipment>& shipments, const Target& target) {
  if (transfer.relaying == Relaying::kTo) return target.end();
  if (transfer.next != kNoShipment) return shipments[transfer.next].host;
  if (transfer.to_aggregator == kDirect) return target.servers[transfer.server];
  return target.aggregators[static_cast<size_t>(transfer.to_aggregator)];
}

void Occupy(const std::vector<Transfer>& transfers, const std::vector<Shipment>& shipments,
            const Target& target, Network* network) {
  for (const Transfer& transfer : transfers) {
    network->Occupy(From(transfer, shipments, target), To(transfer, shipments, target),
                    transfer.pieces);
  }
}

// The log on its way to the replica.
struct Log {
  std::vector<Shipment> shipments;
  std::vector<double> norms;
  Target target;
  std::vector<Transfer> transfers;
  std::vector<Commit> commits;

  // How many updates the replica has at `at_s`, if all goes there.
  size_t AppliedBy(double at_s, size_t most) const {
    size_t applied = 0;
    for (const Commit& commit : commits) {
      if (commit.time_s > at_s + kSameTime_s || applied == most) break;
      applied += commit.shipments.size();
    }
    return applied;
  }
};

Log MakeLog(const Batch& batch, const ReplicaBatch& replica, const Plan& plan,
            const std::vector<Shipment>& shipments) {
  Log log;
  for (const Update& update : replica.pending) {
    log.shipments.push_back({update.worker.host, 0, update.bytes});
    log.norms.push_back(update.norm);
  }
  for (const size_t g : plan.order) {
    log.shipments.push_back(shipments[g]);
    log.norms.push_back(batch.updates[g].norm);
  }
  log.target.servers = {replica.node.host};
  for (const Site& node : replica.aggregators) log.target.aggregators.push_back(node.host);
  log.target.together = batch.synchronous;
  log.target.two_sums = !batch.synchronous && replica.momentum > 0;
  return log;
}

// What is planned of the log's first updates by the paper's rules, over what `network` has left.
void Gather(size_t updates, Network* network, Log* log) {
  std::vector<size_t> order(updates);
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<Commit> arrivals;
  Course course(network, log->shipments, log->target, &log->transfers, &arrivals);
  course.Walk(Aggregate(network, log->shipments, log->target, order));
  log->commits = InOrder(arrivals, log->target);
}

void SayDivergence(const ReplicaBatch& replica, const Log& log, const Plan& plan,
                   ReplicaPlan* planned) {
  size_t server = replica.pending.size();
  for (const Commit& commit : plan.commits) {
    server += commit.shipments.size();
    const size_t applied = log.AppliedBy(commit.time_s, planned->frozen);
    planned->divergence_at_commits.push_back(
        DivergenceBound(replica.momentum, replica.history_norm, log.norms, server, applied));
  }
}

}  // namespace

double DivergenceBound(double momentum, double history, const std::vector<double>& norms,
                       size_t server, size_t replica) {
  const size_t most = std::max(server, replica);
  // weight[k] = 1 + γ + ... + γ^(k - 1): that of the update that is the k-th from the end.
  std::vector<double> weight(most + 1, 0);
  for (size_t k = 1; k <= most; ++k) weight[k] = 1 + momentum * weight[k - 1];
  double bound = momentum * std::abs(weight[server] - weight[replica]) * history;
  for (size_t i = 0; i < norms.size() && i < most; ++i) {
    const double at_server = weight[server > i ? server - i : 0];
    const double at_replica = weight[replica > i ? replica - i : 0];
    bound += std::abs(at_server - at_replica) * norms[i];
  }
  return bound;
}

void Replicate(const Batch& batch, const ReplicaBatch& replica,
               const std::vector<Shipment>& shipments, const Target& target, Network network,
               Plan* plan) {
  ReplicaPlan& planned = plan->replica.emplace();
  if (plan->commits.empty()) return;
  Log log = MakeLog(batch, replica, *plan, shipments);
  const size_t empty = network.Mark();
  Occupy(plan->transfers, shipments, target, &network);
  const size_t all = log.shipments.size();
  Gather(all, &network, &log);
  const auto bound = [&](size_t server, size_t at_replica) {
    return DivergenceBound(replica.momentum, replica.history_norm, log.norms, server, at_replica);
  };
  size_t frozen = log.AppliedBy(plan->commits.back().time_s, all);
  double held_s = -1;
  // A synchronous batch is one step: the replica can do nothing with a part of it.
  const bool whole = batch.synchronous;
  if (whole || bound(all, frozen) > replica.divergence_bound) {
    size_t applied = 0;
    for (const Commit& commit : log.commits) {
      applied += commit.shipments.size();
      if (applied <= frozen) continue;
      frozen = applied;
      held_s = commit.time_s;
      if (!whole && bound(all, frozen) <= replica.divergence_bound) break;
    }
  }
  const auto punted = [&](const Transfer& transfer) { return transfer.shipments[0] >= frozen; };
  log.transfers.erase(std::remove_if(log.transfers.begin(), log.transfers.end(), punted),
                      log.transfers.end());
  if (held_s >= 0) {
    Transfer held = std::move(plan->transfers.back());
    plan->transfers.pop_back();
    network.Rollback(empty);
    Occupy(plan->transfers, shipments, target, &network);
    Occupy(log.transfers, log.shipments, log.target, &network);
    held.pieces.clear();
    held.not_before_s = held_s;
    held.end_s = network.Reserve(From(held, shipments, target), To(held, shipments, target), held_s,
                                 Bits(held.bytes), &held.pieces);
    double before_s = plan->commits.size() > 1 ? plan->commits[plan->commits.size() - 2].time_s : 0;
    for (const Transfer& other : plan->transfers) {
      if (whole && other.to_aggregator == kDirect && other.next == kNoShipment) {
        before_s = std::max(before_s, other.end_s);
      }
    }
    plan->commits.back().time_s = std::max(before_s, held.end_s);
    plan->transfers.push_back(std::move(held));
    plan->objective_s = Objective(plan->commits, target);
  }
  planned.frozen = frozen;
  SayDivergence(replica, log, *plan, &planned);
  planned.transfers = std::move(log.transfers);
}

void ReplicateOnTheWay(const Batch& batch, const ReplicaBatch& replica,
                       const std::vector<Shipment>& shipments, const Target& target,
                       Network network, Plan* plan) {
  ReplicaPlan& planned = plan->replica.emplace();
  if (plan->commits.empty()) return;
  Log log = MakeLog(batch, replica, *plan, shipments);
  Occupy(plan->transfers, shipments, target, &network);
  Gather(replica.pending.size(), &network, &log);
  double before_s = log.commits.empty() ? 0 : log.commits.back().time_s;
  Commit& last = plan->commits.back();
  last.time_s = std::max(last.time_s, before_s);
  plan->objective_s = Objective(plan->commits, target);
  size_t next = replica.pending.size();
  for (const Commit& commit : plan->commits) {
    before_s = std::max(before_s, commit.time_s);
    log.commits.push_back({before_s, {}});
    for (size_t i = 0; i < commit.shipments.size(); ++i)
      log.commits.back().shipments.push_back(next++);
  }
  planned.frozen = log.shipments.size();
  SayDivergence(replica, log, *plan, &planned);
  planned.transfers = std::move(log.transfers);
}

}  // namespace mercury::fabric
