#include "fabric/live/orders.h"

#include <algorithm>

namespace mercury::fabric {

Order MakeOrder(Order::Kind kind, int node) {
  Order order;
  order.kind = kind;
  order.node = node;
  return order;
}

Fate FateOf(DropReason reason) {
  return reason == DropReason::kOvertaken ? Fate::kOvertaken : Fate::kTooOld;
}

const char* FateName(Fate fate) {
  switch (fate) {
    case Fate::kCommitted:
      return "committed";
    case Fate::kTooOld:
      return "too_old";
    case Fate::kOvertaken:
      return "overtaken";
    case Fate::kLate:
      return "late";
    case Fate::kOrphaned:
      return "orphaned";
    case Fate::kLost:
      return "lost";
  }
  return "";
}

std::vector<Hop> HopsOf(const std::vector<Transfer>& transfers, const Route& route) {
  std::vector<Hop> hops;
  hops.reserve(transfers.size());
  for (const Transfer& transfer : transfers) {
    if (transfer.relaying == Relaying::kFrom) continue;
    const auto node = [&](int aggregator, int otherwise) {
      return aggregator == kDirect ? otherwise : route.aggregators[static_cast<size_t>(aggregator)];
    };
    const bool more = transfer.next != kNoShipment;
    const Placed& own =
        route.updates[transfer.chained ? transfer.shipments.back() : transfer.shipments.front()];
    Hop hop;
    hop.goal = route.goal;
    hop.from = node(transfer.from_aggregator, own.id.worker);
    const int goal = transfer.relaying == Relaying::kTo ? route.relay : route.node;
    hop.to = more ? route.updates[transfer.next].id.worker : node(transfer.to_aggregator, goal);
    hop.gathered = transfer.from_aggregator != kDirect;
    hop.to_aggregator = more || transfer.to_aggregator != kDirect;
    hop.two_sums = route.two_sums;
    hop.chained = transfer.chained;
    for (const size_t g : transfer.shipments) hop.places.push_back(route.updates[g].place);
    hop.update = own.id;
    hop.bytes = transfer.bytes;
    hop.start_s = route.now_s + std::max(0.0, transfer.not_before_s);
    hop.end_s = route.now_s + transfer.end_s;
    for (const RateSpan& piece : transfer.pieces) {
      hop.pieces.push_back(
          {route.now_s + piece.start_s, route.now_s + piece.end_s, piece.bit_per_s});
    }
    if (!hop.pieces.empty()) hop.start_s = hop.pieces[0].start_s;
    hops.push_back(std::move(hop));
  }
  return hops;
}

bool IsRelayed(const Hop& hop) { return hop.goal == Goal::kServer && IsReplicaNode(hop.to); }

void Tell(const std::vector<Hop>& hops, Orders* orders) {
  for (const bool receives : {true, false}) {
    for (const Hop& hop : hops) {
      const bool passes_on = hop.chained && hop.places.size() > 1;
      if ((hop.gathered || passes_on) != receives) continue;
      Order order = MakeOrder(passes_on      ? Order::kPassOn
                              : hop.gathered ? Order::kGather
                                             : Order::kSend,
                              hop.from);
      order.hop = hop;
      orders->push_back(std::move(order));
    }
  }
}

}  // namespace mercury::fabric
