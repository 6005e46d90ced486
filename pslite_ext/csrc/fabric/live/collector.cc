#include "fabric/live/collector.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

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
    : options_(options), random_(options.seed), hosts_(hosts) {}

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
  if (!hosts_.replica || (!gap && log.size() <= kPendingMost * hosts_.workers.size())) return;
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
  const size_t goals = hosts_.replica ? 2 : 1;
  alive.resize(std::min(alive.size() / goals * goals, options_.aggregators * goals));
  return alive;
}

void Collector::PlanNow(const std::vector<HostLink>& links, double now_s, Orders* orders) {
  DropOrphans(orders);
  if (waiting_.empty()) return;
  const std::vector<UpdateId> ids = std::move(waiting_);
  waiting_.clear();
  planned_s_ = now_s;
  Matter matter;
  matter.hosts = hosts_;
  matter.links = links;
  matter.now_s = now_s;
  matter.delay_bound = options_.delay_bound;
  matter.momentum = options_.momentum;
  matter.search = options_.search;
  matter.as_they_come = options_.as_they_come;
  matter.version = version_;
  matter.first_place = next_place_;
  for (const UpdateId& id : ids) matter.updates.push_back(tasks_[id].request);
  matter.aggregators = DrawAggregators();
  if (hosts_.replica) {
    const auto half =
        matter.aggregators.begin() + static_cast<std::ptrdiff_t>(matter.aggregators.size() / 2);
    matter.replica_aggregators.assign(half, matter.aggregators.end());
    matter.aggregators.erase(half, matter.aggregators.end());
    matter.divergence_bound = options_.divergence_bound;
    matter.history_norm = ledger_.history_norm();
    for (const auto& [place, entry] : ledger_.log()) {
      matter.pending.push_back({place, tasks_[entry.id].request});
    }
  }
  Begin(MakeDraft(matter), now_s, orders);
}

void Collector::Begin(const Draft& draft, double now_s, Orders* orders) {
  for (const auto& [id, fate] : draft.dropped) Settle(id, fate, orders);
  if (draft.order.empty()) return;
  Order expect = MakeOrder(Order::kExpect, kServerNode);
  expect.updates = draft.order;
  for (const Placed& placed : draft.order) {
    Task& task = tasks_[placed.id];
    ++task.attempts;
    task.aggregator = kServerNode;
    planned_.emplace(placed.place, placed.id);
  }
  next_place_ = draft.order.back().place + 1;
  if (draft.frozen > 0) {
    hold_ = draft.last_commit;
    expect.place = hold_;
  }
  orders->push_back(std::move(expect));
  for (const Hop& hop : draft.hops) {
    if (hop.goal == Goal::kServer && hop.to_aggregator) tasks_[hop.update].aggregator = hop.to;
    if (hop.goal == Goal::kReplica && !hop.to_aggregator) {
      ledger_.Sent({hop.places, hop.gathered ? hop.from : kReplicaNode});
    }
  }
  overdue_s_ = now_s + kPatience * (draft.end_s - now_s) + kGrace_s;
  Tell(draft.hops, orders);
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
  if (hosts_.replica && bound > options_.divergence_bound + kRounding) {
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
  if (hosts_.replica) {
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
  hosts_.server = hosts_.replica.value_or(hosts_.server);
  hosts_.replica.reset();
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
    if (hosts_.replica) LoseReplica(&orders);
  } else if (node == kServerNode && hosts_.replica && state_ != State::kTakingOver) {
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
  hosts_.replica.reset();
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
