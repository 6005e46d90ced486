#include "fabric/net/scheduler_part.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include "base/variants.h"
#include "fabric/live/model_tree.h"

namespace mercury::fabric {
namespace {

constexpr double kReportsHold_s = 60;

}  // namespace

SchedulerPart::Fleet SchedulerPart::FleetOf(const std::vector<Seat>& seats) {
  Fleet fleet;
  for (const Seat& seat : seats) {
    const auto known = std::find(fleet.names.begin(), fleet.names.end(), seat.host);
    const auto host = static_cast<size_t>(known - fleet.names.begin());
    if (known == fleet.names.end()) {
      const double rate = seat.link_bit_per_s > 0 ? seat.link_bit_per_s : kNominalRate;
      fleet.names.push_back(seat.host);
      fleet.nominal.push_back({rate, rate});
    }
    fleet.of[seat.node] = host;
    if (IsServerNode(seat.node)) fleet.servers.push_back(host);
    if (seat.node == kServerNode) fleet.hosts.server = host;
    if (seat.node == kReplicaNode) {
      fleet.hosts.replica = host;
    } else if (IsReplicaNode(seat.node)) {
      fleet.hosts.reserve.push_front({seat.node, host});  // those of greater numbers come first
    }
  }
  for (const auto& [node, host] : fleet.of) {
    if (node >= 0) fleet.hosts.workers.push_back(host);
  }
  if (fleet.servers.size() == 1) fleet.servers.clear();
  if (!fleet.servers.empty()) {
    fleet.hosts.server = fleet.names.size();
    fleet.hosts.servers = fleet.servers.size();
  }
  return fleet;
}

std::vector<HostLink> SchedulerPart::Links(double now_s) const {
  std::vector<HostLink> links = monitor_.Links(now_s);
  if (fleet_.servers.empty()) return links;
  double in = std::numeric_limits<double>::infinity();
  double out = in;
  for (const size_t host : fleet_.servers) {
    const auto beside = std::count(fleet_.servers.begin(), fleet_.servers.end(), host);
    in = std::min(in, links[host].in.Rate(0) / static_cast<double>(beside));
    out = std::min(out, links[host].out.Rate(0) / static_cast<double>(beside));
  }
  const auto servers = static_cast<double>(fleet_.servers.size());
  links.push_back({RateProfile({{0, servers * in}}), RateProfile({{0, servers * out}})});
  return links;
}

SchedulerPart::SchedulerPart(const std::vector<Seat>& seats, const SchedulerOptions& options,
                             Outbox* outbox)
    : fleet_(FleetOf(seats)),
      outbox_(outbox),
      collector_(fleet_.hosts, options.collector),
      fed_(fleet_.names),
      measured_(fleet_.nominal, options.lag_s),
      monitor_(fleet_.nominal, {&fed_, &measured_}),
      momentum_(options.collector.momentum),
      by_packets_(options.collector.by_packets),
      distributors_(options.collector.aggregators == 0 ? 0 : kDistributorsMost),
      workers_(static_cast<int>(fleet_.hosts.workers.size())) {
  if (options.record) chronicle_.emplace(kRecordBytesMost);
}

Status SchedulerPart::Hear(int peer, const Letter& letter, const Haul& /*haul*/, double now_s) {
  const int node = NodeOf(peer);
  now_s_ = now_s;
  return Match(
      letter,
      [&](const Request& request) {
        if (node < 0 || request.id.worker != node) {
          return Status::Corrupt("a request for another node's update");
        }
        Status status = collector_.Push(request);
        if (chronicle_ && status.ok()) chronicle_->Asked(request, now_s);
        return status;
      },
      [&](const GotLetter& its) {
        if (node < 0) return Status::Corrupt("only workers get sums");
        Obey(collector_.Got({node, its.wish.reduce}, its.reign));
        return Status::Ok();
      },
      [&](const News& news) { return Learn(peer, news); },
      [&](const AskingLetter& its) { return PlanTree(peer, its.tree, now_s); },
      [&](const UnreachableLetter& its) { return Complain(peer, its.node, now_s); },
      [&](const Carriage& run) { return Measure(node, run, now_s); },
      [&](const Hearing& hearing) {
        if (node < 0 || hearing.update.worker != node) {
          return Status::Corrupt("a worker has heard of another's update");
        }
        if (chronicle_) chronicle_->Heard(hearing, now_s);
        return Status::Ok();
      },
      [&](const auto& its) {
        static_assert(!kForScheduler<std::decay_t<decltype(its)>>);
        return Status::Corrupt("a letter that the scheduler does not get");
      });
}

Status SchedulerPart::Measure(int node, const Carriage& run, double now_s) {
  const auto from = fleet_.of.find(run.from);
  if (from == fleet_.of.end() || run.to != node || run.bits < 0 || run.end_s <= run.start_s) {
    return Status::Corrupt("a report of a transfer that cannot be");
  }
  const size_t to = fleet_.of.at(node);
  // Clocks are not known exactly, and what is long over says nothing.
  const bool recent = run.start_s > now_s - kReportsHold_s && run.end_s < now_s + 1;
  if (from->second != to && recent) {
    measured_.Carried(from->second, to, run.bits, run.start_s, run.end_s, run.passed_on);
  }
  if (chronicle_) chronicle_->Carried(run, now_s);
  return Status::Ok();
}

Status SchedulerPart::PlanTree(int peer, const Tree& wanted, double now_s) {
  if (servers_lost_ && IsServerNode(NodeOf(peer))) return Status::Ok();  // too late
  if (peer != server_peer_) return Status::Corrupt("a model to give, from one who is no server");
  const FleetHosts& hosts = collector_.hosts();
  std::vector<int> askers;
  for (const Edge& edge : wanted.edges) {
    if (edge.to >= static_cast<int>(hosts.workers.size())) {
      return Status::Corrupt("a model for a worker that there is not");
    }
    askers.push_back(edge.to);
  }
  const std::vector<HostLink> links = Links(now_s);
  const bool chain = by_packets_ && distributors_ > 0;
  Tree tree{wanted.bytes,
            chain ? ModelChain(hosts, links, askers, wanted.bytes)
                  : ModelTree(hosts, links, askers, wanted.bytes, distributors_),
            chain};
  const Leaving leaving = LeavingOf(hosts, links, tree.edges, wanted.bytes);
  tree.share = leaving.share;
  tree.takes_s = leaving.takes_s;
  if (chronicle_) chronicle_->Grew(tree, now_s);
  outbox_->Post(peer, tree);
  return Status::Ok();
}

Status SchedulerPart::Learn(int peer, const News& news) {
  const bool of_replica = news.kind == News::kReplicaHas || news.kind == News::kReplicaApplied ||
                          news.kind == News::kCaughtUp || news.kind == News::kTookOver;
  const bool replica = collector_.Follows(NodeOf(peer));
  if (!of_replica && servers_lost_ && IsServerNode(NodeOf(peer))) return Status::Ok();  // too late
  if (of_replica ? !replica : peer != server_peer_) {
    return Status::Corrupt("news that are not for it to tell");
  }
  if (chronicle_) chronicle_->Told(news, NodeOf(peer), now_s_);
  switch (news.kind) {
    case News::kCommitted:
      Obey(collector_.Committed(news.places, news.version));
      break;
    case News::kVoided:
      Obey(collector_.Voided(news.places));
      break;
    case News::kHeld:
      Obey(collector_.Held(news.places));
      break;
    case News::kReplicaHas:
      Obey(collector_.ReplicaHas(news.places));
      break;
    case News::kReplicaApplied:
      Obey(collector_.ReplicaApplied(news.places, news.history_norm));
      break;
    case News::kCaughtUp:
      Obey(collector_.ReplicaCaughtUp(news.place, news.history_norm));
      break;
    case News::kTookOver:
      server_peer_ = peer;
      for (const auto& [node, host] : fleet_.of) {
        const bool told = node >= 0 || IsServerNode(node);
        if (told) outbox_->Post(PeerOf(node), ServerIsLetter{NodeOf(peer)});
      }
      Obey(collector_.TookOver(news.version));
      break;
  }
  return Status::Ok();
}

Status SchedulerPart::Complain(int peer, int about, double now_s) {
  const int other = PeerOf(about);
  if (fleet_.of.count(about) == 0 || other == peer) {
    return Status::Corrupt("a complaint about a node that there is not");
  }
  const int spare = InReserve(other) ? other : InReserve(peer) ? peer : -1;
  const Complaint complaint{other, now_s + kComplaintHolds_s, spare};
  if (Alive(other)) complaints_.emplace(std::minmax(peer, other), complaint);
  return Status::Ok();
}

// Servers that follow say nothing to each other, and nothing is awaited of those that were servers.
bool SchedulerPart::Needed(std::pair<int, int> link) const {
  const auto [a, b] = link;
  const bool server[] = {IsServerNode(NodeOf(a)), IsServerNode(NodeOf(b))};
  if (servers_lost_) return !server[0] && !server[1];
  return !server[0] || !server[1] || a == kServerPeer || b == kServerPeer;
}

bool SchedulerPart::IsReplica(int peer) const {
  return IsReplicaNode(NodeOf(peer)) && peer != server_peer_;
}

// A replica that does not follow the server, or has not got the model yet.
bool SchedulerPart::InReserve(int peer) const {
  const bool follows = collector_.Follows(NodeOf(peer)) && collector_.replica_has_model();
  return IsReplica(peer) && !follows;
}

int SchedulerPart::LessNeeded(std::pair<int, int> link, const Complaint& complaint) const {
  const auto [a, b] = link;
  if (complaint.spare >= 0) return complaint.spare;
  const auto unreached = [this](int peer) {
    return std::count_if(complaints_.begin(), complaints_.end(), [peer](const auto& its) {
      return its.first.first == peer || its.first.second == peer;
    });
  };
  const bool work[] = {NodeOf(a) >= 0, NodeOf(b) >= 0};
  if (work[0] != work[1]) {
    const int worker = work[0] ? a : b, other = work[0] ? b : a;
    return IsReplica(other) && unreached(other) > unreached(worker) ? other : worker;
  }
  if (!work[0] && IsReplica(a) != IsReplica(b)) return IsReplica(a) ? a : b;
  if (!work[0]) return a == server_peer_ ? b : a;
  const auto of_a = unreached(a), of_b = unreached(b);
  if (of_a != of_b) return of_a > of_b ? a : b;
  return complaint.named;
}

// One after the other: whoever has been cut off is no reason to cut off another.
void SchedulerPart::CutOff(double now_s) {
  const auto drop = [this](const auto& is_over) {
    for (auto it = complaints_.begin(); it != complaints_.end();) {
      it = is_over(it->first) ? complaints_.erase(it) : std::next(it);
    }
  };
  drop([this](std::pair<int, int> link) {
    return !Alive(link.first) || !Alive(link.second) || !Needed(link);
  });
  for (;;) {
    const auto due = std::find_if(complaints_.begin(), complaints_.end(),
                                  [now_s](const auto& its) { return now_s >= its.second.due_s; });
    if (due == complaints_.end()) return;
    const int peer = LessNeeded(due->first, due->second);
    cut_off_.push_back(peer);
    drop([peer](std::pair<int, int> link) { return link.first == peer || link.second == peer; });
  }
}

void SchedulerPart::Gone(int peer, double now_s) {
  const int node = NodeOf(peer);
  now_s_ = now_s;
  if (chronicle_) chronicle_->Gone(peer == server_peer_ ? kServerNode : node, now_s);
  if (node >= 0) --workers_;
  if (IsServerNode(node) && std::exchange(servers_lost_, true)) return;  // it is none any more
  Obey(collector_.Lost(peer == server_peer_ ? kServerNode : node));
}

void SchedulerPart::Turn(double now_s) {
  now_s_ = now_s;
  CutOff(now_s);
  measured_.Advance(now_s);
  Obey(collector_.Tick(Links(now_s), now_s));
}

void SchedulerPart::SentOut(double now_s) {
  if (std::exchange(planned_, false) && chronicle_) chronicle_->SentOut(now_s);
}

double SchedulerPart::WakeAt(int /*peer*/, double /*now_s*/) const {
  double at_s = collector_.WakeAt();
  for (const auto& [link, complaint] : complaints_) at_s = std::min(at_s, complaint.due_s);
  return at_s;
}

std::string SchedulerPart::Figures() const {
  char momentum[32];
  std::snprintf(momentum, sizeof momentum, "%.17g", momentum_);
  return "\"momentum\": " + std::string(momentum) + ", \"batches\": " + std::to_string(batches_) +
         ", \"groups\": " + std::to_string(gathered_);
}

void SchedulerPart::Obey(const Orders& orders) {
  for (const Order& order : orders) {
    if (order.kind == Order::kFail) {
      Decode(order.text, &failure_);
      continue;
    }
    if (chronicle_) chronicle_->Ordered(order, now_s_);
    if (order.kind == Order::kExpect) {
      ++batches_;
      planned_ = true;
    }
    const bool of_chain = order.kind == Order::kPassOn && !order.hop.to_aggregator;
    if (order.kind == Order::kGather || of_chain) ++gathered_;
    outbox_->Post(order.node == kServerNode ? server_peer_ : PeerOf(order.node), order);
  }
}

}  // namespace mercury::fabric
