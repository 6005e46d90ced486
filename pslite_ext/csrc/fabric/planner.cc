#include "fabric/planner.h"

#include <utility>

#include "base/check.h"
#include "fabric/aggregation.h"
#include "fabric/chains.h"
#include "fabric/course.h"
#include "fabric/local_search.h"
#include "fabric/replication.h"

namespace mercury::fabric {
namespace {

// The plan that follows from a schedule.
Plan Lay(const Batch& batch, const std::vector<Shipment>& shipments, const Target& target,
         const Schedule& schedule, std::vector<Drop> dropped) {
  Plan plan;
  for (const Stop& stop : schedule) plan.order.push_back(stop.shipment);
  plan.dropped = std::move(dropped);
  Network network = batch.network;
  std::vector<Commit> arrivals;
  Course course(&network, shipments, target, &plan.transfers, &arrivals);
  course.Walk(schedule);
  plan.commits = InOrder(arrivals, target);
  MERCURY_CHECK(plan.order.size() + plan.dropped.size() == shipments.size());
  plan.objective_s = Objective(plan.commits, target);
  if (batch.replica) Replicate(batch, *batch.replica, shipments, target, batch.network, &plan);
  return plan;
}

// The plan of an order whose updates are passed on packet by packet.
Plan Chained(const Batch& batch, const std::vector<Shipment>& shipments, Target target,
             const Ordering& ordering, const std::vector<int64_t>& deadlines) {
  Plan plan;
  if (batch.replica && batch.replica->relays) target.relay = batch.replica->node.host;
  Network network = batch.network;
  const std::vector<Chain> chains =
      CutIntoChains(&network, shipments, target, ordering.order, deadlines);
  for (const Chain& chain : chains) plan.order.insert(plan.order.end(), chain.begin(), chain.end());
  plan.dropped = ordering.dropped;
  LaidChains laid = LayChains(&network, shipments, target, chains);
  plan.transfers = std::move(laid.transfers);
  plan.commits = InOrder(laid.arrivals, target);
  MERCURY_CHECK(plan.order.size() + plan.dropped.size() == shipments.size());
  plan.objective_s = Objective(plan.commits, target);
  if (batch.replica) {
    const auto replicate = target.relay ? ReplicateOnTheWay : Replicate;
    replicate(batch, *batch.replica, shipments, target, batch.network, &plan);
  }
  return plan;
}

}  // namespace

std::vector<Shipment> ShipmentsOf(const Batch& batch) {
  std::vector<Shipment> shipments;
  shipments.reserve(batch.updates.size());
  for (const Update& update : batch.updates) {
    shipments.push_back({update.worker.host, update.available_s, update.bytes, update.alone});
  }
  return shipments;
}

Target TargetOf(const Batch& batch) {
  Target target;
  for (const Site& node : batch.servers) target.servers.push_back(node.host);
  for (const Site& node : batch.aggregators) target.aggregators.push_back(node.host);
  target.together = batch.synchronous;
  if (batch.coded) target.chain_most = kCodedChainMost;
  target.two_sums = !batch.synchronous && batch.momentum > 0;
  return target;
}

std::vector<int64_t> DeadlinesOf(const Batch& batch) {
  std::vector<int64_t> deadlines;
  if (batch.synchronous) return deadlines;
  for (const Update& update : batch.updates) {
    deadlines.push_back(update.version + batch.delay_bound - batch.version);
  }
  return deadlines;
}

Plan PlanBatch(const Batch& batch, const PlanOptions& options) {
  const std::vector<Shipment> shipments = ShipmentsOf(batch);
  const Target target = TargetOf(batch);
  const std::vector<int64_t> deadlines = DeadlinesOf(batch);
  Network network = batch.network;
  Ordering ordering = batch.synchronous ? ShortestFirst(&network, shipments, target)
                      : options.as_they_come
                          ? AsTheyCome(&network, shipments, target, deadlines)
                          : WithDeadlines(&network, shipments, target, deadlines);
  const bool relays = batch.replica && batch.replica->relays;
  const bool chained =
      batch.by_packets && batch.servers.size() == 1 && (relays || !batch.aggregators.empty());
  Plan in_chains;
  if (chained) in_chains = Chained(batch, shipments, target, ordering, deadlines);
  if (chained && !batch.replica) return in_chains;
  const Schedule schedule = Aggregate(&network, shipments, target, ordering.order);
  Plan plan = Lay(batch, shipments, target, schedule, ordering.dropped);
  // A chain is one commit, and waits for the replica as a whole, or goes through it.
  if (chained) return plan.objective_s < in_chains.objective_s ? plan : in_chains;
  if (!options.search) return plan;
  const Found found =
      SearchNearby(&network, shipments, target, deadlines, {schedule, ordering.dropped});
  Plan other = Lay(batch, shipments, target, found.schedule, found.dropped);
  // A replica may have to hold the one and not the other.
  return other.objective_s < plan.objective_s ? other : plan;
}

}  // namespace mercury::fabric
