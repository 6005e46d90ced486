#include "fabric/live/draft.h"

#include <algorithm>
#include <utility>

#include "fabric/planner.h"

namespace mercury::fabric {
namespace {

Batch BatchOf(const Matter& matter) {
  Batch batch;
  batch.network = Network(matter.links);
  batch.servers = {{"", matter.hosts.server}};
  batch.synchronous = matter.round;
  batch.coded = matter.coded;
  batch.by_packets = matter.by_packets;
  batch.delay_bound = matter.delay_bound;
  batch.version = matter.version;
  batch.momentum = matter.momentum;
  const auto node = [&matter](int worker) {
    return Site{"", matter.hosts.workers[static_cast<size_t>(worker)]};
  };
  const auto update = [&node](const Request& request) {
    return Update{"",   node(request.id.worker), 0, {request.bytes}, request.version, request.norm,
                  false};
  };
  for (const Request& request : matter.updates) {
    batch.updates.push_back(update(request));
    batch.updates.back().alone = matter.alone.count(request.id) != 0;
  }
  for (const int worker : matter.aggregators) batch.aggregators.push_back(node(worker));
  if (!matter.hosts.replica) return batch;
  ReplicaBatch& replica = batch.replica.emplace();
  replica.node = {"", *matter.hosts.replica};
  for (const int worker : matter.replica_aggregators) replica.aggregators.push_back(node(worker));
  replica.relays = matter.by_packets && matter.hosts.servers == 1;
  replica.divergence_bound = matter.divergence_bound;
  replica.momentum = matter.momentum;
  replica.history_norm = matter.history_norm;
  for (const auto& pending : matter.pending) replica.pending.push_back(update(pending.request));
  return batch;
}

}  // namespace

Draft MakeDraft(const Matter& matter) {
  const Plan plan = PlanBatch(BatchOf(matter), {matter.search, matter.as_they_come});
  Draft draft;
  for (const Drop& drop : plan.dropped) {
    draft.dropped.emplace_back(matter.updates[drop.shipment].id, FateOf(drop.reason));
  }
  if (plan.order.empty()) return draft;

  const bool two_sums = !matter.round && matter.momentum > 0;
  const int replica = matter.hosts.replica_node;
  Route to_server{Goal::kServer, kServerNode, matter.aggregators, {}, matter.now_s,
                  two_sums,      replica};
  Route to_replica{Goal::kReplica, replica, matter.replica_aggregators, {}, matter.now_s, two_sums};
  to_server.updates.resize(matter.updates.size());
  for (const auto& pending : matter.pending) {
    to_replica.updates.push_back({pending.place, pending.request.id});
  }
  int64_t place = matter.first_place;
  for (const size_t g : plan.order) {
    const Request& request = matter.updates[g];
    const int64_t round = matter.round ? matter.first_place : 0;
    draft.order.push_back({place++, request.id, request.version, round, matter.reduce});
    to_server.updates[g] = draft.order.back();
    to_replica.updates.push_back(draft.order.back());
  }
  draft.last_commit =
      matter.round ? matter.first_place : to_server.updates[plan.commits.back().shipments[0]].place;
  draft.hops = HopsOf(plan.transfers, to_server);
  draft.end_s = plan.commits.back().time_s + matter.now_s;
  if (plan.replica) {
    draft.frozen = plan.replica->frozen;
    for (Hop& hop : HopsOf(plan.replica->transfers, to_replica)) {
      draft.hops.push_back(std::move(hop));
    }
  }
  for (const Hop& hop : draft.hops) draft.end_s = std::max(draft.end_s, hop.end_s);
  return draft;
}

}  // namespace mercury::fabric
