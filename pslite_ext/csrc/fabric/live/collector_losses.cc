// What the collector does when a node is lost.
#include <algorithm>
#include <utility>

#include "fabric/live/collector.h"
#include "fabric/live/places.h"

namespace mercury::fabric {

Orders Collector::TookOver(int64_t version) {
  Orders orders;
  hosts_.server = hosts_.replica.value_or(hosts_.server);
  hosts_.servers = 1;
  hosts_.replica.reset();
  server_node_ = hosts_.replica_node;
  state_ = State::kReady;
  for (auto& [id, task] : tasks_) task.got = false;
  version_ = version;
  lasts_.push_back(version);
  for (const UpdateId& id : ledger_.Clear()) {
    if (options_.staleness.bounded()) {
      Again(id, &orders);
    } else {
      Settle(id, Fate::kLost, &orders);
    }
  }
  const std::map<int64_t, UpdateId> planned = std::move(planned_);
  planned_.clear();
  for (const auto& [place, id] : planned) Return(place, id, &orders);
  for (const UpdateId& id : std::exchange(reduced_, {})) Again(id, &orders);
  return orders;
}

Orders Collector::Lost(int node) {
  Orders orders;
  if (state_ == State::kFailed) return orders;
  const bool taking_over = state_ == State::kTakingOver;
  if (node >= 0) {
    if (Alive(node)) LoseWorker(node, &orders);
  } else if (IsReplicaNode(node) && !Follows(node)) {
    auto& reserve = hosts_.reserve;
    const auto is_lost = [node](const Reserve& its) { return its.node == node; };
    reserve.erase(std::remove_if(reserve.begin(), reserve.end(), is_lost), reserve.end());
  } else if (IsReplicaNode(node) && !taking_over) {
    LoseReplica(&orders);
  } else if (IsServerNode(node) && replica_has_model() && !taking_over) {
    state_ = State::kTakingOver;
    lost_server_ = node;
    Order order = MakeOrder(Order::kTakeOver, hosts_.replica_node);
    std::map<int64_t, UpdateId> all = planned_;
    for (const auto& [place, entry] : ledger_.log()) all.emplace(place, entry.id);
    for (const auto& [place, id] : all) {
      const Task& task = tasks_[id];
      if (task.request.reduce) continue;
      order.updates.push_back({place, id, task.request.version, task.round});
    }
    orders.push_back(std::move(order));
    held_.clear();
    ledger_.GiveUp();
    hold_ = 0;
  } else {
    if (!taking_over) lost_server_ = node;
    const bool first = IsServerNode(server_node_);
    const int rank = lost_server_ == kServerNode ? kOnlyOne : ServerIndex(lost_server_);
    Party party{first ? Role::kServer : Role::kReplica, first ? rank : ReplicaIndex(server_node_),
                ""};
    const bool too_soon = (hosts_.replica && !taking_over) || !hosts_.reserve.empty();
    Fail(Status::PeerLost(NodeName(Role::kServer, rank) +
                          (too_soon ? " is lost, and its next replica does not have the model yet"
                                    : " is lost, and there is no replica to take over"))
             .By({Blame::kNamed, std::move(party)}),
         &orders);
  }
  return orders;
}

void Collector::Fail(const Status& status, Orders* orders) {
  if (state_ == State::kFailed) return;
  state_ = State::kFailed;
  Order order = MakeOrder(Order::kFail, kServerNode);
  order.text = Encode(status);
  orders->push_back(std::move(order));
}

void Collector::FailWithout(int worker, Orders* orders) {
  Fail(Status::PeerLost(NodeName(Role::kWorker, worker) +
                        " is gone, and others wait for it: synchronous updates and all-reduces "
                        "need all workers")
           .By({Blame::kNamed, Party{Role::kWorker, worker, ""}}),
       orders);
}

void Collector::LoseWorker(int worker, Orders* orders) {
  dead_.insert(worker);
  const auto is_theirs = [worker](const UpdateId& id) { return id.worker == worker; };
  for (const UpdateId& id : batching_.Forget(worker)) tasks_.erase(id);
  if (state_ == State::kTakingOver) return;
  ForgetReduced(orders);
  for (const auto& [place, id] : planned_) {
    const Task& task = tasks_[id];
    const bool needed = task.round != 0 && batching_.NeedsEverybody(task.request.reduce);
    if (needed) return FailWithout(worker, orders);
  }
  const auto skip = [&](int aggregator, Goal goal, std::vector<int64_t> places) {
    Order order = MakeOrder(Order::kSkip, aggregator);
    order.hop.goal = goal;
    order.places = std::move(places);
    orders->push_back(std::move(order));
  };
  std::vector<int64_t> gone;
  // A chain comes whole, or not at all.
  for (const std::vector<int64_t>& chain : chains_) {
    const bool broken = std::any_of(chain.begin(), chain.end(), [&](int64_t place) {
      const auto planned = planned_.find(place);
      return planned != planned_.end() && is_theirs(planned->second);
    });
    if (broken) gone.insert(gone.end(), chain.begin(), chain.end());
  }
  for (const auto& [place, id] : planned_) {
    if (Contains(gone, place)) continue;
    const int aggregator = tasks_[id].aggregator;
    if (aggregator == worker || (is_theirs(id) && aggregator == kServerNode)) {
      gone.push_back(place);
    } else if (is_theirs(id)) {
      skip(aggregator, Goal::kServer, {place});
    }
  }
  std::sort(gone.begin(), gone.end());
  VoidAtServer(gone, false, orders);
  std::vector<ReplicaLedger::SentGroup> still;
  for (const ReplicaLedger::SentGroup& group : ledger_.coming()) {
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
    const bool chain = group.aggregator == kReplicaNode && group.places.size() > 1;
    if (group.aggregator == worker || (chain && !theirs.empty())) continue;
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
  // What it has not passed on will not come, which is nobody else's fault. A round is applied as a
  // whole, or planned again as one.
  std::vector<int64_t> gone;
  bool round = false;
  for (const int64_t place : relayed_) {
    const auto planned = planned_.find(place);
    if (planned == planned_.end()) continue;
    gone.push_back(place);
    Task& task = tasks_[planned->second];
    --task.attempts;
    round = task.round != 0;
  }
  std::sort(gone.begin(), gone.end());
  VoidAtServer(gone, round, orders);
  held_.clear();
  EndHold(orders);
  if (state_ == State::kCatchingUp) state_ = State::kReady;
}

}  // namespace mercury::fabric
