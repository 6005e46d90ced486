#include "fabric/plan_text.h"

#include <vector>

#include "fabric/json.h"

namespace mercury::fabric {
namespace {

// Who the indices of some transfers mean.
struct Names {
  std::vector<const Update*> updates;
  const std::vector<Site>* aggregators = nullptr;
  std::string relay;
  std::vector<Site> servers;
};

template <typename List, typename Item>
std::string Array(const List& list, const Item& item, const char* between = ", ") {
  std::string text = "[";
  for (const auto& entry : list) {
    if (text.size() > 1) text += between;
    text += item(entry);
  }
  return text + "]";
}

std::string Ids(const std::vector<size_t>& shipments, const Names& names) {
  return Array(shipments, [&](size_t g) { return QuotedJson(names.updates[g]->id); });
}

std::string Text(const Transfer& transfer, const Names& names) {
  const auto aggregator = [&names](int a) {
    return (*names.aggregators)[static_cast<size_t>(a)].name;
  };
  const auto worker = [&names](size_t g) { return names.updates[g]->worker.name; };
  const std::string from = transfer.relaying == Relaying::kFrom ? names.relay
                           : transfer.chained                   ? worker(transfer.shipments.back())
                           : transfer.from_aggregator == kDirect
                               ? worker(transfer.shipments[0])
                               : aggregator(transfer.from_aggregator);
  const std::string to = transfer.relaying == Relaying::kTo  ? names.relay
                         : transfer.next != kNoShipment      ? worker(transfer.next)
                         : transfer.to_aggregator == kDirect ? names.servers[transfer.server].name
                                                             : aggregator(transfer.to_aggregator);
  std::string text = "{\"from\": " + QuotedJson(from) + ", \"to\": " + QuotedJson(to) +
                     ", \"updates\": " + Ids(transfer.shipments, names) +
                     ", \"bytes\": " + std::to_string(transfer.bytes) + ", \"pieces\": ";
  text += Array(transfer.pieces, [](const RateSpan& piece) {
    return "[" + NumberJson(piece.start_s) + ", " + NumberJson(piece.end_s) + ", " +
           NumberJson(piece.bit_per_s) + "]";
  });
  if (transfer.not_before_s >= 0) {
    text += ", \"not_before_s\": " + NumberJson(transfer.not_before_s);
  }
  return text + "}";
}

std::string Text(const std::vector<Transfer>& transfers, const Names& names) {
  return Array(transfers, [&](const Transfer& transfer) { return Text(transfer, names); }, ",\n  ");
}

std::string CommitsText(const Batch& batch, const Plan& plan, const Names& names) {
  int64_t version = batch.version;
  return Array(
      plan.commits,
      [&](const Commit& commit) {
        version += batch.synchronous ? 1 : static_cast<int64_t>(commit.shipments.size());
        return "{\"time_s\": " + NumberJson(commit.time_s) +
               ", \"updates\": " + Ids(commit.shipments, names) +
               ", \"version\": " + std::to_string(version) + "}";
      },
      ",\n  ");
}

std::string ReplicaText(const Batch& batch, const Plan& plan) {
  if (!batch.replica || !plan.replica) return "null";
  const ReplicaBatch& replica = *batch.replica;
  const ReplicaPlan& planned = *plan.replica;
  Names names;
  names.aggregators = &replica.aggregators;
  names.servers = {replica.node};
  for (const Update& update : replica.pending) names.updates.push_back(&update);
  for (const size_t g : plan.order) names.updates.push_back(&batch.updates[g]);
  std::vector<size_t> frozen;
  std::vector<size_t> punted;
  for (size_t i = 0; i < names.updates.size(); ++i) {
    (i < planned.frozen ? frozen : punted).push_back(i);
  }
  return "{\"transfers\": " + Text(planned.transfers, names) +
         ",\n  \"frozen\": " + Ids(frozen, names) + ", \"punted\": " + Ids(punted, names) +
         ",\n  \"divergence_at_commits\": " + Array(planned.divergence_at_commits, NumberJson) +
         "}";
}

}  // namespace

std::string PlanText(const Batch& batch, const Plan& plan) {
  Names names;
  names.aggregators = &batch.aggregators;
  if (batch.replica) names.relay = batch.replica->node.name;
  names.servers = batch.servers;
  for (const Update& update : batch.updates) names.updates.push_back(&update);
  const std::string dropped = Array(plan.dropped, [&](const Drop& drop) {
    const char* reason = drop.reason == DropReason::kDeadline ? "deadline" : "overtaken";
    return "{\"id\": " + QuotedJson(names.updates[drop.shipment]->id) + ", \"reason\": \"" +
           reason + "\"}";
  });
  return "{\n \"order\": " + Ids(plan.order, names) + ",\n \"dropped\": " + dropped +
         ",\n \"transfers\": " + Text(plan.transfers, names) +
         ",\n \"commits\": " + CommitsText(batch, plan, names) +
         ",\n \"replica\": " + ReplicaText(batch, plan) +
         ",\n \"objective_s\": " + NumberJson(plan.objective_s) + "\n}\n";
}

}  // namespace mercury::fabric
