#include "fabric/explanation.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "fabric/chains.h"
#include "fabric/course.h"
#include "fabric/distribution.h"
#include "fabric/planner.h"

namespace mercury::fabric {
namespace {

// For people: names are one line, times have six digits.
std::string Plain(const std::string& name) {
  std::string plain = name;
  std::replace_if(
      plain.begin(), plain.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return plain;
}

std::string Seconds(double time_s) {
  char text[48];
  std::snprintf(text, sizeof text, "%.6g s", time_s);
  return text;
}

std::string Counted(size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string NamesOf(const std::vector<size_t>& shipments, const std::vector<const Update*>& log) {
  std::string text;
  for (const size_t g : shipments) text += (text.empty() ? "" : ", ") + Plain(log[g]->id);
  return text.empty() ? "nothing" : text;
}

std::vector<const Update*> Pointers(const std::vector<Update>& updates) {
  std::vector<const Update*> pointers;
  pointers.reserve(updates.size());
  for (const Update& update : updates) pointers.push_back(&update);
  return pointers;
}

std::string WhyDropped(const Batch& batch, const Drop& drop) {
  const Update& update = batch.updates[drop.shipment];
  if (drop.exchanged) return "others commit sooner without it (found by the search).";
  if (drop.reason == DropReason::kOvertaken) {
    return "it would arrive at " + Seconds(drop.end_s) + ", after " +
           Plain(batch.updates[drop.rival].id) + ", which is next and arrives at " +
           Seconds(drop.rival_end_s) + ": the server would wait for it.";
  }
  if (drop.contested == 0) {
    return "it was computed from version " + std::to_string(update.version) +
           ", and the next one is " + std::to_string(batch.version + 1) + ": more than " +
           std::to_string(batch.delay_bound) + " versions later.";
  }
  return "more than " + Counted(static_cast<size_t>(drop.contested), "update") +
         " would have to be among the first " + std::to_string(drop.contested) +
         ", and it would arrive last of them, at " + Seconds(drop.end_s) + ".";
}

// Why an update is gathered at `aggregator`, where it is by `there_s`.
std::string WhyGathered(const Batch& batch, int aggregator, double there_s, double ahead_s) {
  if (there_s <= ahead_s + kSameTime_s) {
    return " (all ahead of it is at the server by " + Seconds(ahead_s) + ")";
  }
  const bool last = static_cast<size_t>(aggregator) + 1 == batch.aggregators.size();
  return last ? " (the last aggregator takes what is left)" : "";
}

// The hop of an update's own worker, if the update is in a chain.
const Transfer* HopInChain(const Plan& plan, size_t g) {
  for (const Transfer& transfer : plan.transfers) {
    if (transfer.chained && transfer.shipments.back() == g) return &transfer;
  }
  return nullptr;
}

std::string RelayOf(const Batch& batch) {
  return batch.replica ? Plain(batch.replica->node.name) : "";
}

std::string WayInChain(const Batch& batch, const Transfer& hop) {
  const std::vector<const Update*> log = Pointers(batch.updates);
  const Chain before(hop.shipments.begin(), hop.shipments.end() - 1);
  const std::string relay =
      hop.relaying == Relaying::kTo ? RelayOf(batch) + ", which passes it on to " : "";
  const std::string to = hop.next == kNoShipment
                             ? relay + Plain(batch.servers[0].name) + ", by " + Seconds(hop.end_s)
                             : Plain(batch.updates[hop.next].worker.name) + ", which adds " +
                                   Plain(batch.updates[hop.next].id);
  std::string text = before.empty()
                         ? "packet by packet to " + to
                         : "added to each packet of " + NamesOf(before, log) + ", and on to " + to;
  if (hop.not_before_s >= 0) {
    text += "; held until " + Seconds(hop.not_before_s) + " for the replica";
  }
  return text;
}

// What becomes of one update of the order: its own hop, and its group's.
std::string WayOf(const Batch& batch, const Plan& plan, size_t g) {
  const std::vector<const Update*> log = Pointers(batch.updates);
  if (const Transfer* hop = HopInChain(plan, g)) return WayInChain(batch, *hop);
  std::string text;
  double ahead_s = 0;  // when all that was sent before is at the server
  for (const Transfer& transfer : plan.transfers) {
    const bool own = std::find(transfer.shipments.begin(), transfer.shipments.end(), g) !=
                     transfer.shipments.end();
    if (transfer.to_aggregator == kDirect) ahead_s = std::max(ahead_s, transfer.end_s);
    if (!own || transfer.relaying == Relaying::kFrom) continue;
    const std::string by = ", by " + Seconds(transfer.end_s);
    if (transfer.to_aggregator != kDirect) {
      const Site& node = batch.aggregators[static_cast<size_t>(transfer.to_aggregator)];
      text += "to " + Plain(node.name) +
              (node.host == batch.updates[g].worker.host ? ", on its own host" : "") + by +
              WhyGathered(batch, transfer.to_aggregator, transfer.end_s, ahead_s);
    } else if (transfer.from_aggregator != kDirect) {
      text += ", and on with its group (" + NamesOf(transfer.shipments, log) + ")" + by;
    } else {
      text += (text.empty() ? "straight to " : ", to ") +
              Plain(batch.servers[transfer.server].name) +
              (transfer.relaying == Relaying::kTo ? ", through " + RelayOf(batch) : "") + by;
    }
    if (transfer.not_before_s >= 0) {
      text += "; held until " + Seconds(transfer.not_before_s) + " for the replica";
    }
  }
  return text;
}

// Its last transfer waits for the replica.
bool IsHeld(const Plan& plan) {
  return !plan.transfers.empty() && plan.transfers.back().not_before_s >= 0;
}

// Why some go straight and others do not.
std::string WhyWays(const Batch& batch, const Plan& plan) {
  const auto gathered = static_cast<size_t>(
      std::count_if(plan.transfers.begin(), plan.transfers.end(),
                    [](const Transfer& transfer) { return transfer.to_aggregator != kDirect; }));
  const std::vector<Shipment> shipments = ShipmentsOf(batch);
  const Target target = TargetOf(batch);
  Network network = batch.network;
  Course course(&network, shipments, target);
  for (const size_t g : plan.order) course.Direct(g);
  std::string otherwise = Seconds(course.outcome().last_s);
  if (!batch.synchronous) {
    otherwise += ", or " + Seconds(Objective(course.outcome(), target)) + " in the mean";
  }
  if (IsHeld(plan)) otherwise += ", if the replica were not waited for";
  if (batch.aggregators.empty()) return "There is no aggregator: all go straight.\n";
  const auto in_chains = static_cast<size_t>(
      std::count_if(plan.transfers.begin(), plan.transfers.end(), [](const Transfer& transfer) {
        return transfer.chained && transfer.relaying != Relaying::kFrom;
      }));
  if (in_chains > 0) {
    const auto chains = static_cast<size_t>(
        std::count_if(plan.transfers.begin(), plan.transfers.end(), [](const Transfer& transfer) {
          return transfer.chained && transfer.next == kNoShipment &&
                 transfer.relaying != Relaying::kFrom;
        }));
    return Counted(in_chains, "update") + " in " + Counted(chains, "chain") + ", " +
           std::to_string(plan.order.size() - in_chains) +
           " straight. With all straight it would take " + otherwise + ".\n";
  }
  if (gathered == 0) {
    return "All go straight, in " + otherwise + ": no way by an aggregator ends sooner" +
           (batch.synchronous ? "" : " without a later mean") + ".\n";
  }
  const size_t straight = plan.order.size() - gathered;
  return Counted(straight, "update") + (straight == 1 ? " goes" : " go") + " straight and " +
         std::to_string(gathered) + " by way of aggregators. With all straight it would take " +
         otherwise + ".\n";
}

std::string ReplicaInWords(const Batch& batch, const Plan& plan) {
  if (!batch.replica || !plan.replica) return "";
  const ReplicaBatch& replica = *batch.replica;
  const ReplicaPlan& planned = *plan.replica;
  std::vector<const Update*> log = Pointers(replica.pending);
  for (const size_t g : plan.order) log.push_back(&batch.updates[g]);
  std::vector<size_t> frozen;
  std::vector<size_t> punted;
  for (size_t i = 0; i < log.size(); ++i) {
    (i < planned.frozen ? frozen : punted).push_back(i);
  }
  std::string text = "The replica gets " + NamesOf(frozen, log) + " with this batch; " +
                     NamesOf(punted, log) + " can wait for the next.";
  if (plan.commits.empty()) return text + "\n";
  char bounds[96];
  std::snprintf(bounds, sizeof bounds, " At the last commit it is within %.6g; %.6g are allowed.\n",
                planned.divergence_at_commits.back(), replica.divergence_bound);
  text += bounds;
  if (IsHeld(plan)) {
    text += "The last transfer to the server is held until " +
            Seconds(plan.transfers.back().not_before_s) +
            ": before, the replica would be too far behind.\n";
  }
  return text;
}

double LastOf(const std::vector<Delivery>& deliveries) {
  double last_s = 0;
  for (const Delivery& delivery : deliveries) last_s = std::max(last_s, delivery.end_s);
  return last_s;
}

double MeanOf(const std::vector<Delivery>& deliveries) {
  double total_s = 0;
  for (const Delivery& delivery : deliveries) total_s += delivery.end_s;
  return total_s / static_cast<double>(deliveries.size());
}

std::string ExplainChainDown(const Batch& batch, const std::vector<Shipment>& gets,
                             const std::vector<PassedDown>& chain, double alone_s) {
  double last_s = 0;
  for (const PassedDown& its : chain) last_s = std::max(last_s, its.end_s);
  std::string text = Counted(gets.size(), "get") + " answered by " + Seconds(last_s) +
                     "; by the server alone it would be " + Seconds(alone_s) + ".\n";
  const Site* from = batch.servers.data();
  for (const PassedDown& its : chain) {
    const Site& to = batch.updates[its.get].worker;
    text += Plain(to.name) + ": from " + Plain(from->name) +
            (from->host == to.host ? ", on its own host" : "") + ", by " + Seconds(its.end_s) +
            ".\n";
    from = &to;
  }
  return text;
}

}  // namespace

std::string Explain(const Batch& batch, const Plan& plan) {
  std::string text =
      Counted(plan.order.size(), "update") + " applied, " + std::to_string(plan.dropped.size()) +
      " dropped; " +
      (batch.synchronous ? "the commit is made after " : "commits are made, in the mean, after ") +
      Seconds(plan.objective_s) + ".\n";
  if (!plan.order.empty()) text += WhyWays(batch, plan);
  const std::vector<int64_t> deadlines = DeadlinesOf(batch);
  size_t place = 0;
  for (const Commit& commit : plan.commits) {
    for (const size_t g : commit.shipments) {
      ++place;
      text += std::to_string(place) + ". " + Plain(batch.updates[g].id) + ": " +
              WayOf(batch, plan, g) + "; applied at " + Seconds(commit.time_s) + ".";
      if (!deadlines.empty() && deadlines[g] <= static_cast<int64_t>(plan.order.size())) {
        text += deadlines[g] == 1
                    ? " It has to be the first."
                    : " It has to be among the first " + std::to_string(deadlines[g]) + ".";
      }
      text += "\n";
    }
  }
  for (const Drop& drop : plan.dropped) {
    text += "Dropped: " + Plain(batch.updates[drop.shipment].id) + ": " + WhyDropped(batch, drop) +
            "\n";
  }
  return text + ReplicaInWords(batch, plan);
}

std::string ExplainTree(const Batch& batch) {
  const std::vector<Shipment> gets = ShipmentsOf(batch);
  const Target target = TargetOf(batch);
  Target alone = target;
  alone.aggregators.clear();
  Network network = batch.network;
  const std::vector<Delivery> straight = Distribute(&network, gets, alone);
  const double alone_s = LastOf(straight);
  if (batch.by_packets && !batch.aggregators.empty() && !gets.empty()) {
    const std::vector<PassedDown> chain = PassDown(batch.network, gets, target);
    if (!IsSoonerStraight(MeanOf(straight), chain)) {
      return ExplainChainDown(batch, gets, chain, alone_s);
    }
  }
  // By packets, nothing goes down a tree of whole models.
  const std::vector<Delivery> tree =
      batch.by_packets ? straight : Distribute(&network, gets, target);
  std::string text = Counted(gets.size(), "get") + " answered by " + Seconds(LastOf(tree)) +
                     "; by the server alone it would be " + Seconds(alone_s) + ".\n";
  const auto source = [&batch](const Delivery& delivery) -> const Site& {
    return delivery.from == kDirect ? batch.servers[0]
                                    : batch.aggregators[static_cast<size_t>(delivery.from)];
  };
  for (const Delivery& delivery : tree) {
    const bool passed_on = delivery.to != kDirect;
    const Site& to = passed_on ? batch.aggregators[static_cast<size_t>(delivery.to)]
                               : batch.updates[delivery.get].worker;
    text += Plain(to.name) + ": from " + Plain(source(delivery).name) +
            (source(delivery).host == to.host ? ", on its own host" : "") + ", by " +
            Seconds(delivery.end_s);
    if (passed_on) {
      std::string others;
      for (const Delivery& other : tree) {
        if (other.from != delivery.to || other.to != kDirect) continue;
        others += (others.empty() ? "" : ", ") + Plain(batch.updates[other.get].worker.name);
      }
      text += "; it passes it on to " + others;
    }
    text += ".\n";
  }
  return text;
}

}  // namespace mercury::fabric
