#include "fabric/live/collector.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "fabric/planner.h"

namespace mercury::fabric {
namespace {

constexpr double kPatience = 3;  // what takes so many times as long as planned
constexpr double kGrace_s = 1;   // and this, is given up
constexpr int kAttemptsMost = 3;
constexpr size_t kPendingMost = 32;  // for each worker: so many updates it keeps for the replica
constexpr double kRounding = 1e-9;

bool Contains(const std::vector<int64_t>& places, int64_t place) {
  return std::find(places.begin(), places.end(), place) != places.end();
}

}  // namespace

Collector::Collector(const FleetHosts& hosts, const CollectorOptions& options)
    : hosts_(hosts),
      options_(options),
      random_(options.seed),
      server_host_(hosts.server),
      replica_host_(hosts.replica.value_or(0)),
      replica_(hosts.replica.has_value()) {}

Status Collector::Push(const Request& request) {
  const auto [worker, number] = request.id;
  const std::string who =
      "update " + std::to_string(number) + " of worker " + std::to_string(worker);
  if (worker < 0 || static_cast<size_t>(worker) >= hosts_.workers.size()) {
    return Status::InvalidArgument(who + ": there is no such worker");
  }
  if (number < 1 || request.version < 0) {
    return Status::InvalidArgument(who + ": updates are numbered from 1, versions from 0");
  }
  if (request.bytes < 1 || request.bytes > kUpdateBytesMax) {
    return Status::InvalidArgument(who + " has " + std::to_string(request.bytes) + " bytes");
  }
  if (!std::isfinite(request.norm) || request.norm < 0) {
    return Status::InvalidArgument(who + ": its norm is no number, or below 0");
  }
  int64_t& last = numbers_[worker];
  if (!Alive(worker) || number <= last) return Status::Ok();
  last = number;
  tasks_[request.id].request = request;
  waiting_.push_back(request.id);
  return Status::Ok();
}

bool Collector::Idle() const {
  return state_ == State::kReady && planned_.empty() && ledger_.Quiet();
}

Orders Collector::Tick(const std::vector<HostLink>& links, double now_s) {
  Orders orders;
  if (state_ == State::kReady && !Idle() && now_s >= overdue_s_) GiveUp(now_s, &orders);
  if (!Idle()) return orders;
  CatchUp(&orders);
  const bool due = options_.at_once || planned_s_ < 0 || now_s >= planned_s_ + options_.batch_s;
  if (state_ == State::kReady && due && !waiting_.empty()) PlanNow(links, now_s, &orders);
  return orders;
}

double Collector::WakeAt() const {
  if (state_ != State::kReady) return kNever;
  if (!Idle()) return overdue_s_;
  if (waiting_.empty()) return kNever;
  return options_.at_once || planned_s_ < 0 ? 0 : planned_s_ + options_.batch_s;
}

void Collector::CatchUp(Orders* orders) {
  const ReplicaLedger::Log& log = ledger_.log();
  const bool gap = std::any_of(log.begin(), log.end(), [this](const auto& committed) {
    return !Alive(committed.second.id.worker);
  });
  if (!replica_ || (!gap && log.size() <= kPendingMost * hosts_.workers.size())) return;
  orders->push_back(MakeOrder(Order::kSnapshot, kServerNode));
  state_ = State::kCatchingUp;
}

void Collector::DropOrphans(Orders* orders) {
  std::vector<UpdateId> kept;
  for (const UpdateId& id : waiting_) {
    if (tasks_[id].request.version > version_) {
      Settle(id, Fate::kOrphaned, orders);
    } else {
      kept.push_back(id);
    }
  }
  waiting_ = std::move(kept);
}

std::vector<int> Collector::DrawAggregators() {
  std::vector<int> alive;
  for (size_t worker = 0; worker < hosts_.workers.size(); ++worker) {
    if (Alive(static_cast<int>(worker))) alive.push_back(static_cast<int>(worker));
  }
  std::shuffle(alive.begin(), alive.end(), random_);
  const size_t goals = replica_ ? 2 : 1;
  alive.resize(std::min(alive.size() / goals * goals, options_.aggregators * goals));
  return alive;
}

void Collector::PlanNow(const std::vector<HostLink>& links, double now_s, Orders* orders) {
  DropOrphans(orders);
  if (waiting_.empty()) return;
  const std::vector<UpdateId> ids = std::move(waiting_);
  waiting_.clear();
  planned_s_ = now_s;
  Batch batch;
  batch.network = Network(links);
  batch.servers = {{"", server_host_}};
  batch.delay_bound = options_.delay_bound;
  batch.version = version_;
  batch.momentum = options_.momentum;
  const auto host = [this](int worker) { return hosts_.workers[static_cast<size_t>(worker)]; };
  const auto update = [&](const UpdateId& id) {
    const Request& request = tasks_[id].request;
    return Update{"", {"", host(id.worker)}, 0, {request.bytes}, request.version, request.norm};
  };
  for (const UpdateId& id : ids) batch.updates.push_back(update(id));
  Route to_server;
  Route to_replica;
  const std::vector<int> aggregators = DrawAggregators();
  const size_t of_server = replica_ ? aggregators.size() / 2 : aggregators.size();
  for (size_t i = 0; i < aggregators.size(); ++i) {
    (i < of_server ? to_server : to_replica).aggregators.push_back(aggregators[i]);
  }
  for (const int worker : to_server.aggregators) batch.aggregators.push_back({"", host(worker)});
  if (replica_) {
    ReplicaBatch& replica = batch.replica.emplace();
    replica.node = {"", replica_host_};
    for (const int worker : to_replica.aggregators) {
      replica.aggregators.push_back({"", host(worker)});
    }
    replica.divergence_bound = options_.divergence_bound;
    replica.momentum = options_.momentum;
    replica.history_norm = ledger_.history_norm();
    for (const auto& [place, entry] : ledger_.log()) {
      replica.pending.push_back(update(entry.id));
      to_replica.updates.push_back({place, entry.id, 0});
    }
  }
  const Plan plan = PlanBatch(batch, {options_.search});
  for (const Drop& drop : plan.dropped) Settle(ids[drop.shipment], FateOf(drop.reason), orders);
  if (plan.order.empty()) return;

  to_server.updates.resize(ids.size());
  Order expect = MakeOrder(Order::kExpect, kServerNode);
  for (const size_t g : plan.order) {
    Task& task = tasks_[ids[g]];
    ++task.attempts;
    task.aggregator = kServerNode;
    const Placed placed{next_place_++, ids[g], task.request.version};
    planned_.emplace(placed.place, placed.id);
    to_server.updates[g] = placed;
    to_replica.updates.push_back(placed);
    expect.updates.push_back(placed);
  }
  if (plan.replica && plan.replica->frozen > 0) {
    hold_ = to_server.updates[plan.commits.back().shipments[0]].place;
    expect.place = hold_;
  }
  orders->push_back(std::move(expect));
  to_server.now_s = now_s;
  std::vector<Hop> hops = HopsOf(plan.transfers, to_server);
  for (const Hop& hop : hops) {
    if (hop.to_aggregator) tasks_[hop.update].aggregator = hop.to;
  }
  if (plan.replica) {
    to_replica.goal = Goal::kReplica;
    to_replica.node = kReplicaNode;
    to_replica.now_s = now_s;
    for (Hop& hop : HopsOf(plan.replica->transfers, to_replica)) {
      if (!hop.to_aggregator) {
        ledger_.Sent({hop.places, hop.gathered ? hop.from : kReplicaNode});
      }
      hops.push_back(std::move(hop));
    }
  }
  double end_s = plan.commits.back().time_s + now_s;
  for (const Hop& hop : hops) end_s = std::max(end_s, hop.end_s);
  overdue_s_ = now_s + kPatience * (end_s - now_s) + kGrace_s;
  Tell(hops, orders);
}

void Collector::GiveUp(double now_s, Orders* orders) {
  overdue_s_ = now_s + kGrace_s;
  ledger_.GiveUp();
  std::vector<int64_t> missing;
  for (const auto& [place, id] : planned_) {
    if (!Contains(held_, place)) missing.push_back(place);
  }
  VoidAtServer(missing, false, orders);
  Judge(orders);
}

void Collector::VoidAtServer(const std::vector<int64_t>& places, bool even_arrived,
                             Orders* orders) {
  if (places.empty() || state_ == State::kTakingOver) return;
  Order order = MakeOrder(Order::kVoid, kServerNode);
  order.places = places;
  order.even_arrived = even_arrived;
  orders->push_back(std::move(order));
}

// Whether what is held can be applied now, or never.
void Collector::Judge(Orders* orders) {
  if (held_.empty()) return;
  ReplicaLedger::Log held;
  for (const int64_t place : held_) {
    const UpdateId id = planned_.at(place);
    held[place] = {id, tasks_.at(id).request.norm};
  }
  const double bound = ledger_.BoundAfter(held, options_.momentum);
  if (replica_ && bound > options_.divergence_bound + kRounding) {
    if (!ledger_.coming().empty()) return;
    VoidAtServer(held_, true, orders);
  } else {
    EndHold(orders);
  }
  held_.clear();
}

void Collector::EndHold(Orders* orders) {
  if (hold_ == 0) return;
  Order order = MakeOrder(Order::kRelease, kServerNode);
  order.place = hold_;
  orders->push_back(std::move(order));
  hold_ = 0;
}

Orders Collector::Held(const std::vector<int64_t>& places) {
  Orders orders;
  const bool known = std::all_of(places.begin(), places.end(),
                                 [this](int64_t place) { return planned_.count(place) != 0; });
  if (state_ == State::kTakingOver || !known || hold_ == 0) return orders;
  held_ = places;
  Judge(&orders);
  return orders;
}

Orders Collector::Committed(const std::vector<int64_t>& places, int64_t version) {
  Orders orders;
  if (state_ == State::kTakingOver) return orders;
  for (const int64_t place : places) Commit(place, &orders);
  version_ = std::max(version_, version);
  if (planned_.empty()) EndHold(&orders);
  return orders;
}

// The server has applied it; the replica may be faster to say so.
void Collector::Commit(int64_t place, Orders* orders) {
  const auto planned = planned_.find(place);
  if (planned == planned_.end()) return;
  const UpdateId id = planned->second;
  planned_.erase(planned);
  if (Contains(held_, place)) held_.clear();  // nobody was to apply it yet
  ++version_;
  Order report = MakeOrder(Order::kReport, id.worker);
  report.update = id;
  orders->push_back(std::move(report));
  if (replica_) {
    ledger_.Committed(place, {id, tasks_.at(id).request.norm});
  } else {
    Forget(id, orders);
  }
}

// What will not be applied at its place: it is planned again, if that makes sense.
void Collector::Return(int64_t place, UpdateId id, Orders* orders) {
  ledger_.Voided(place);
  if (!Alive(id.worker)) {
    tasks_.erase(id);
  } else if (tasks_[id].attempts >= kAttemptsMost) {
    Settle(id, Fate::kLate, orders);
  } else {
    waiting_.push_back(id);
  }
}

Orders Collector::Voided(const std::vector<int64_t>& places) {
  Orders orders;
  if (state_ == State::kTakingOver) return orders;
  for (const int64_t place : places) {
    const auto planned = planned_.find(place);
    if (planned == planned_.end()) continue;
    const UpdateId id = planned->second;
    planned_.erase(planned);
    if (Contains(held_, place)) held_.clear();
    Return(place, id, &orders);
  }
  if (planned_.empty()) EndHold(&orders);
  Judge(&orders);
  return orders;
}

Orders Collector::ReplicaHas(const std::vector<int64_t>& places) {
  Orders orders;
  ledger_.Arrived(places);
  Judge(&orders);
  return orders;
}

Orders Collector::ReplicaApplied(const std::vector<int64_t>& places, double history_norm) {
  Orders orders;
  for (const int64_t place : places) {
    Commit(place, &orders);
    for (const UpdateId& id : ledger_.Applied(place, history_norm)) Forget(id, &orders);
  }
  if (planned_.empty()) EndHold(&orders);
  Judge(&orders);
  return orders;
}

Orders Collector::ReplicaCaughtUp(int64_t place, double history_norm) {
  Orders orders;
  for (const UpdateId& id : ledger_.Applied(place, history_norm)) Forget(id, &orders);
  if (state_ == State::kCatchingUp) state_ = State::kReady;
  return orders;
}

Orders Collector::TookOver(int64_t version) {
  Orders orders;
  server_host_ = replica_host_;
  replica_ = false;
  state_ = State::kReady;
  version_ = version;
  for (const UpdateId& id : ledger_.Clear()) Settle(id, Fate::kLost, &orders);
  const std::map<int64_t, UpdateId> planned = std::move(planned_);
  planned_.clear();
  for (const auto& [place, id] : planned) Return(place, id, &orders);
  return orders;
}

Orders Collector::Lost(int node) {
  Orders orders;
  if (state_ == State::kFailed) return orders;
  if (node >= 0) {
    if (Alive(node)) LoseWorker(node, &orders);
  } else if (node == kReplicaNode && state_ != State::kTakingOver) {
    if (replica_) LoseReplica(&orders);
  } else if (node == kServerNode && replica_ && state_ != State::kTakingOver) {
    state_ = State::kTakingOver;
    Order order = MakeOrder(Order::kTakeOver, kReplicaNode);
    std::map<int64_t, UpdateId> all = planned_;
    for (const auto& [place, entry] : ledger_.log()) all.emplace(place, entry.id);
    for (const auto& [place, id] : all) {
      order.updates.push_back({place, id, tasks_[id].request.version});
    }
    orders.push_back(std::move(order));
    held_.clear();
    ledger_.GiveUp();
    hold_ = 0;
  } else {
    state_ = State::kFailed;
    Order order = MakeOrder(Order::kFail, kServerNode);
    order.text = "the server is lost, and there is no replica to take over";
    orders.push_back(std::move(order));
  }
  return orders;
}

void Collector::LoseWorker(int worker, Orders* orders) {
  dead_.insert(worker);
  const auto is_theirs = [worker](const UpdateId& id) { return id.worker == worker; };
  for (const UpdateId& id : waiting_) {
    if (is_theirs(id)) tasks_.erase(id);
  }
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), is_theirs), waiting_.end());
  if (state_ == State::kTakingOver) return;
  const auto skip = [&](int aggregator, Goal goal, std::vector<int64_t> places) {
    Order order = MakeOrder(Order::kSkip, aggregator);
    order.hop.goal = goal;
    order.places = std::move(places);
    orders->push_back(std::move(order));
  };
  std::vector<int64_t> gone;
  for (const auto& [place, id] : planned_) {
    const int aggregator = tasks_[id].aggregator;
    if (aggregator == worker || (is_theirs(id) && aggregator == kServerNode)) {
      gone.push_back(place);
    } else if (is_theirs(id)) {
      skip(aggregator, Goal::kServer, {place});
    }
  }
  VoidAtServer(gone, false, orders);
  std::vector<ReplicaLedger::Group> still;
  for (const ReplicaLedger::Group& group : ledger_.coming()) {
    std::vector<int64_t> theirs;
    bool others = false;
    for (const int64_t place : group.places) {
      const auto planned = planned_.find(place);
      const auto committed = ledger_.log().find(place);
      if (planned == planned_.end() && committed == ledger_.log().end()) continue;
      const UpdateId id = planned != planned_.end() ? planned->second : committed->second.id;
      if (is_theirs(id)) theirs.push_back(place);
      others = others || Alive(id.worker);
    }
    if (group.aggregator == worker) continue;
    if (!theirs.empty() && group.aggregator != kReplicaNode) {
      skip(group.aggregator, Goal::kReplica, theirs);
    }
    if (others) still.push_back(group);
  }
  ledger_.Replace(std::move(still));
  Judge(orders);
}

void Collector::LoseReplica(Orders* orders) {
  replica_ = false;
  for (const UpdateId& id : ledger_.Clear()) Forget(id, orders);
  held_.clear();
  EndHold(orders);
  if (state_ == State::kCatchingUp) state_ = State::kReady;
}

void Collector::Settle(UpdateId id, Fate fate, Orders* orders) {
  Order report = MakeOrder(Order::kReport, id.worker);
  report.update = id;
  report.fate = fate;
  orders->push_back(std::move(report));
  Forget(id, orders);
}

void Collector::Forget(UpdateId id, Orders* orders) {
  tasks_.erase(id);
  if (!Alive(id.worker)) return;
  Order order = MakeOrder(Order::kForget, id.worker);
  order.update = id;
  orders->push_back(std::move(order));
}

}  // namespace mercury::fabric
