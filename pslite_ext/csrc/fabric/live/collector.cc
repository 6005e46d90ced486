#include "fabric/live/collector.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
#include "fabric/live/places.h"

namespace mercury::fabric {
namespace {

constexpr double kPatience = 3;  // what takes so many times as long as planned
constexpr double kGrace_s = 1;   // and this, is given up
constexpr int kAttemptsMost = 3;
constexpr double kMorePatient = 4;    // so many times, with each further attempt: links may be slow
constexpr size_t kPendingMost = 32;   // for each worker: so many updates it keeps for the replica
constexpr size_t kLogMost = 1 << 14;  // of all of them: what is told to the replica is one letter
constexpr double kRounding = 1e-9;

}  // namespace

Collector::Collector(const FleetHosts& hosts, const CollectorOptions& options)
    : options_(options),
      random_(options.seed),
      hosts_(hosts),
      batching_(options.staleness, hosts.workers.size()) {}

Status Collector::Push(const Request& request) {
  Status status = Check(request, hosts_.workers.size());
  if (!status.ok()) return status;
  const auto [worker, number] = request.id;
  int64_t& last = numbers_[worker];
  if (!Alive(worker) || number <= last) return Status::Ok();
  last = number;
  Task& task = tasks_[request.id];
  task.request = request;
  task.turn = batching_.NextTurn(worker, request.reduce);
  Wait(request.id);
  return Status::Ok();
}

void Collector::Wait(UpdateId id) {
  const Task& task = tasks_.at(id);
  batching_.Wait(id, task.turn, task.request.reduce);
}

bool Collector::Idle() const {
  return state_ == State::kReady && planned_.empty() && ledger_.Quiet();
}

Orders Collector::Tick(const std::vector<HostLink>& links, double now_s) {
  Orders orders;
  const std::optional<int> missing = batching_.Missing();
  if (state_ == State::kReady && missing) FailWithout(*missing, &orders);
  if (state_ == State::kReady && !Idle() && now_s >= overdue_s_) GiveUp(now_s, &orders);
  if (!Idle()) return orders;
  CatchUp(&orders);
  const bool due = options_.at_once || planned_s_ < 0 || now_s >= planned_s_ + options_.batch_s;
  if (state_ == State::kReady && due && batching_.Ready()) PlanNow(links, now_s, &orders);
  return orders;
}

double Collector::WakeAt() const {
  if (state_ != State::kReady) return kNever;
  if (!Idle()) return overdue_s_;
  if (!batching_.Ready()) return kNever;
  return options_.at_once || planned_s_ < 0 ? 0 : planned_s_ + options_.batch_s;
}

void Collector::CatchUp(Orders* orders) {
  if (!hosts_.replica) {
    if (hosts_.reserve.empty()) return;
    const Reserve next = hosts_.reserve.front();
    hosts_.reserve.pop_front();
    hosts_.replica = next.host;
    hosts_.replica_node = next.node;
    replica_has_model_ = false;
    return SendModel(orders);
  }
  const ReplicaLedger::Log& log = ledger_.log();
  const bool gap = std::any_of(log.begin(), log.end(), [this](const auto& committed) {
    return !Alive(committed.second.id.worker);
  });
  const size_t most = std::min(kPendingMost * hosts_.workers.size(), kLogMost);
  // It may have been on its way to the replica, too.
  const bool behind = std::exchange(gave_up_, false) && ledger_.BoundAfter({}, options_.momentum) >
                                                            options_.divergence_bound + kRounding;
  if (gap || behind || log.size() > most) SendModel(orders);
}

void Collector::SendModel(Orders* orders) {
  Order order = MakeOrder(Order::kSnapshot, kServerNode);
  order.hop.to = hosts_.replica_node;
  orders->push_back(std::move(order));
  state_ = State::kCatchingUp;
}

// The last one that has not died with its server, or with one of those after it.
int64_t Collector::LastVersionOf(int64_t reign) const {
  int64_t last = version_;
  for (auto lost = static_cast<size_t>(reign); lost < lasts_.size(); ++lost) {
    last = std::min(last, lasts_[lost]);
  }
  return last;
}

std::vector<UpdateId> Collector::WithoutOrphans(const std::vector<UpdateId>& ids, Orders* orders) {
  std::vector<UpdateId> kept;
  for (const UpdateId& id : ids) {
    const Request& request = tasks_[id].request;
    if (request.version > LastVersionOf(request.reign)) {
      Settle(id, Fate::kOrphaned, orders);
    } else {
      kept.push_back(id);
    }
  }
  return kept;
}

std::optional<bool> Collector::Replicates(const Chosen& chosen) const {
  if (!hosts_.replica || !chosen.round) return hosts_.replica.has_value();
  if (chosen.reduce) return false;
  ReplicaLedger::Log next;
  for (size_t i = 0; i < chosen.updates.size(); ++i) {
    const UpdateId id = chosen.updates[i];
    next[next_place_ + static_cast<int64_t>(i)] = {id, tasks_.at(id).request.norm, next_place_};
  }
  const double bound = ledger_.BoundAfter(next, options_.momentum);
  if (bound <= options_.divergence_bound + kRounding) return false;
  return ledger_.log().empty() ? std::optional(true) : std::nullopt;
}

std::vector<int> Collector::DrawAggregators(size_t goals) {
  std::vector<int> alive;
  for (size_t worker = 0; worker < hosts_.workers.size(); ++worker) {
    if (Alive(static_cast<int>(worker))) alive.push_back(static_cast<int>(worker));
  }
  std::shuffle(alive.begin(), alive.end(), random_);
  alive.resize(std::min(alive.size() / goals * goals, options_.aggregators * goals));
  return alive;
}

void Collector::PlanNow(const std::vector<HostLink>& links, double now_s, Orders* orders) {
  const Chosen chosen = batching_.Take();
  const std::optional<bool> replicates = Replicates(chosen);
  if (!replicates) {
    for (const UpdateId& id : chosen.updates) Wait(id);
    return SendModel(orders);
  }
  const std::vector<UpdateId> ids =
      chosen.round ? chosen.updates : WithoutOrphans(chosen.updates, orders);
  if (ids.empty()) return;
  planned_s_ = now_s;
  Matter matter;
  matter.hosts = hosts_;
  if (!*replicates) matter.hosts.replica.reset();
  matter.round = chosen.round;
  matter.reduce = chosen.reduce;
  matter.links = links;
  matter.now_s = now_s;
  matter.delay_bound = options_.delay_bound;
  matter.momentum = options_.momentum;
  matter.search = options_.search;
  matter.as_they_come = options_.as_they_come;
  matter.coded = options_.coded;
  matter.by_packets = options_.by_packets && options_.aggregators > 0;
  matter.version = version_;
  matter.first_place = next_place_;
  for (const UpdateId& id : ids) {
    matter.updates.push_back(tasks_[id].request);
    if (tasks_[id].attempts > 0) matter.alone.insert(id);  // another may have been to blame
  }
  matter.aggregators = DrawAggregators(*replicates ? 2 : 1);
  if (*replicates) {
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
  MERCURY_CHECK(planned_.empty() && draft.order.front().place >= next_place_);
  Order expect = MakeOrder(Order::kExpect, kServerNode);
  expect.updates = draft.order;
  for (const Placed& placed : draft.order) {
    Task& task = tasks_[placed.id];
    ++task.attempts;
    task.aggregator = kServerNode;
    task.round = placed.round;
    planned_.emplace(placed.place, placed.id);
  }
  next_place_ = draft.order.back().place + 1;
  if (draft.frozen > 0) {
    hold_ = draft.last_commit;
    expect.place = hold_;
  }
  orders->push_back(std::move(expect));
  chains_.clear();
  relayed_.clear();
  for (const Hop& hop : draft.hops) {
    if (IsRelayed(hop)) {
      relayed_.insert(relayed_.end(), hop.places.begin(), hop.places.end());
      ledger_.Sent({hop.places, kReplicaNode});
    }
    if (hop.chained) {
      if (!hop.to_aggregator) chains_.push_back(hop.places);
      continue;
    }
    if (hop.goal == Goal::kServer && hop.to_aggregator) tasks_[hop.update].aggregator = hop.to;
    if (hop.goal == Goal::kReplica && !hop.to_aggregator) {
      ledger_.Sent({hop.places, hop.gathered ? hop.from : kReplicaNode});
    }
  }
  int attempts = 0;
  for (const Placed& placed : draft.order)
    attempts = std::max(attempts, tasks_[placed.id].attempts);
  const double patience = std::pow(kMorePatient, attempts - 1);
  const bool round = draft.order.front().round != 0;
  const double planned_s = kPatience * (draft.end_s - now_s) + kGrace_s;
  overdue_s_ = round ? kNever : now_s + patience * planned_s;
  Tell(draft.hops, orders);
}

void Collector::GiveUp(double now_s, Orders* orders) {
  overdue_s_ = now_s + kGrace_s;
  gave_up_ = true;
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
  orders->push_back(order);
  const bool relayed = std::any_of(places.begin(), places.end(),
                                   [this](int64_t place) { return Contains(relayed_, place); });
  if (!hosts_.replica || !relayed) return;
  order.node = hosts_.replica_node;
  orders->push_back(std::move(order));
}

// Whether what is held can be applied now, or never.
void Collector::Judge(Orders* orders) {
  if (held_.empty()) return;
  ReplicaLedger::Log held;
  for (const int64_t place : held_) {
    const UpdateId id = planned_.at(place);
    const Task& task = tasks_.at(id);
    held[place] = {id, task.request.norm, task.round};
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
  ForgetReduced(&orders);
  return orders;
}

// The server has applied it; the replica may be faster to say so.
void Collector::Commit(int64_t place, Orders* orders) {
  const auto planned = planned_.find(place);
  if (planned == planned_.end()) return;
  const UpdateId id = planned->second;
  planned_.erase(planned);
  if (Contains(held_, place)) held_.clear();  // nobody was to apply it yet
  Task& task = tasks_.at(id);
  if (task.round == 0) ++version_;  // of a round, the server says it
  if (!std::exchange(task.told, true)) {
    Order report = MakeOrder(Order::kReport, id.worker);
    report.update = id;
    orders->push_back(std::move(report));
  }
  if (task.request.reduce) {
    reduced_.insert(id);
  } else if (hosts_.replica) {
    ledger_.Committed(place, {id, task.request.norm, task.round});
  } else {
    Forget(id, orders);
  }
}

// What will not be applied at its place: it is planned again, if that makes sense.
void Collector::Return(int64_t place, UpdateId id, Orders* orders) {
  ledger_.Voided(place);
  const Task& task = tasks_[id];
  if (Alive(id.worker) && task.round == 0 && task.attempts >= kAttemptsMost) {
    Settle(id, Fate::kLate, orders);
  } else {
    Again(id, orders);
  }
}

void Collector::Again(UpdateId id, Orders* orders) {
  if (Alive(id.worker)) return Wait(id);
  if (batching_.NeedsEverybody(tasks_[id].request.reduce)) FailWithout(id.worker, orders);
  tasks_.erase(id);
}

Orders Collector::Got(UpdateId part, int64_t reign) {
  Orders orders;
  // The sum of a server that is lost: another one is made.
  const bool of_now = reign == static_cast<int64_t>(lasts_.size());
  if (state_ == State::kTakingOver || !of_now) return orders;
  const auto task = tasks_.find(part);
  if (task != tasks_.end()) task->second.got = true;
  ForgetReduced(&orders);
  return orders;
}

// All at once: what is forgotten is not summed again, so it is each worker's last word on which sum
// it uses.
void Collector::ForgetReduced(Orders* orders) {
  const bool all = std::all_of(reduced_.begin(), reduced_.end(), [this](const UpdateId& id) {
    return !Alive(id.worker) || tasks_.at(id).got;
  });
  if (!all) return;
  for (const UpdateId& id : std::exchange(reduced_, {})) Forget(id, orders);
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
  replica_has_model_ = true;
  if (state_ == State::kCatchingUp) state_ = State::kReady;
  return orders;
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
