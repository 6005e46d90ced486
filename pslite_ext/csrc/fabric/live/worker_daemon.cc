#include "fabric/live/worker_daemon.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "fabric/course.h"

namespace mercury::fabric {
namespace {

Step Make(Step::Kind kind, int64_t memory, int64_t hop) {
  Step step;
  step.kind = kind;
  step.memory = memory;
  step.hop = hop;
  return step;
}

}  // namespace

Steps WorkerDaemon::Obey(const Order& order, double now_s) {
  Steps steps;
  const bool passes_on = order.kind == Order::kPassOn;
  if (order.kind == Order::kSend || passes_on) Send(order.hop, passes_on, now_s, &steps);
  if (order.kind == Order::kGather) Begin(order.hop, now_s, &steps);
  if (order.kind == Order::kSkip) Skip(order, now_s, &steps);
  if (order.kind == Order::kForget) Forget(order.update, &steps);
  return steps;
}

void WorkerDaemon::Abort(int64_t hop, Steps* steps) {
  if (courier_.Cancel(hop)) steps->push_back(Make(Step::kAbort, 0, hop));
}

Steps WorkerDaemon::Break(int64_t hop) {
  Steps steps;
  if (const Hop* its = courier_.Find(hop)) sends_.erase({its->goal, its->update});
  Abort(hop, &steps);
  return steps;
}

void WorkerDaemon::Send(const Hop& hop, bool passes_on, double now_s, Steps* steps) {
  const auto kept = kept_.find(hop.update);
  if (kept == kept_.end()) return;  // forgotten meanwhile
  const auto [send, first] = sends_.emplace(std::make_pair(hop.goal, hop.update), 0);
  if (!first) Abort(send->second, steps);
  send->second = courier_.Take(hop);
  Target target;
  target.two_sums = hop.two_sums;
  const size_t members = passes_on ? hop.places.size() : 1;
  courier_.Ready(send->second, AggregateBytes(target, kept->second, members), now_s);
  if (!passes_on) return;
  courier_.Reach(send->second, 0);
  Step step = Make(Step::kPassOn, 0, send->second);
  step.update = hop.update;
  steps->push_back(std::move(step));
}

void WorkerDaemon::Begin(const Hop& hop, double now_s, Steps* steps) {
  if (hop.places.empty()) return;
  const auto old = groups_.find(hop.goal);
  if (old != groups_.end()) {
    for (const auto& [place, member] : old->second.waiting) {
      steps->push_back(Make(Step::kDiscard, member.memory, 0));
    }
    Abort(old->second.hop, steps);
    if (!old->second.order.added().empty()) {
      steps->push_back(Make(Step::kDiscardGroup, 0, old->second.hop));
    }
    groups_.erase(old);
  }
  Group& group = groups_.emplace(hop.goal, Group(hop.places)).first->second;
  group.hop = courier_.Take(hop);
  told_[hop.goal] = hop.places.back();
  // Places rise: what is before this group belongs to nobody any more.
  auto early = early_.lower_bound({hop.goal, 0});
  while (early != early_.end() && early->first.first == hop.goal &&
         early->first.second <= hop.places.back()) {
    const int64_t place = early->first.second;
    const GroupMember member = early->second;
    early = early_.erase(early);
    Take(&group, place, member, now_s, steps);
  }
}

void WorkerDaemon::Skip(const Order& order, double now_s, Steps* steps) {
  const auto group = groups_.find(order.hop.goal);
  if (group == groups_.end()) return;
  for (const int64_t place : order.places) {
    Add(&group->second, group->second.order.Skip(place), now_s, steps);
  }
}

void WorkerDaemon::Forget(UpdateId update, Steps* steps) {
  if (kept_.erase(update) == 0) return;
  for (const Goal goal : {Goal::kServer, Goal::kReplica}) {
    const auto send = sends_.find({goal, update});
    if (send == sends_.end()) continue;
    Abort(send->second, steps);
    sends_.erase(send);
  }
  Step step = Make(Step::kForget, 0, 0);
  step.update = update;
  steps->push_back(std::move(step));
}

Steps WorkerDaemon::Arrive(Goal goal, int64_t place, int64_t bytes, int64_t memory, double now_s) {
  Steps steps;
  const GroupMember member{bytes, memory};
  const auto group = groups_.find(goal);
  if (place > told_[goal]) {
    if (early_.emplace(std::make_pair(goal, place), member).second) return steps;
  } else if (group != groups_.end()) {
    Take(&group->second, place, member, now_s, &steps);
    return steps;
  }
  steps.push_back(Make(Step::kDiscard, memory, 0));
  return steps;
}

void WorkerDaemon::Take(Group* group, int64_t place, const GroupMember& member, double now_s,
                        Steps* steps) {
  if (!group->order.Awaits(place)) {
    steps->push_back(Make(Step::kDiscard, member.memory, 0));
    return;
  }
  group->waiting[place] = member;
  Add(group, group->order.Arrive(place), now_s, steps);
}

void WorkerDaemon::Add(Group* group, const std::vector<int64_t>& places, double now_s,
                       Steps* steps) {
  for (const int64_t place : places) {
    const auto member = group->waiting.find(place);
    MERCURY_CHECK(member != group->waiting.end());
    steps->push_back(Make(Step::kAdd, member->second.memory, group->hop));
    group->largest = std::max(group->largest, member->second.bytes);
    group->waiting.erase(member);
  }
  const GroupOrder& order = group->order;
  if (!order.whole() || group->on_its_way) return;
  group->on_its_way = true;
  if (!order.added().empty()) {
    Target target;
    target.two_sums = courier_.Find(group->hop)->two_sums;
    courier_.Ready(group->hop, AggregateBytes(target, group->largest, order.added().size()), now_s);
    return;
  }
  Step step = Make(Step::kEmpty, 0, group->hop);
  step.goal = courier_.Find(group->hop)->goal;
  step.to = courier_.Find(group->hop)->to;
  step.skipped = order.skipped();
  steps->push_back(std::move(step));
  courier_.Cancel(group->hop);
}

Parcel WorkerDaemon::What(int64_t hop) const {
  Parcel parcel;
  parcel.hop = *courier_.Find(hop);
  parcel.places = parcel.hop.places;
  if (!parcel.hop.gathered) return parcel;
  const auto group = groups_.find(parcel.hop.goal);
  MERCURY_CHECK(group != groups_.end() && group->second.on_its_way);
  parcel.places = group->second.order.added();
  parcel.skipped = group->second.order.skipped();
  return parcel;
}

bool WorkerDaemon::Sent(int64_t hop, int64_t bytes) {
  const std::optional<Hop> over = courier_.Sent(hop, bytes);
  if (!over) return false;
  if (over->gathered) {
    groups_.erase(over->goal);
  } else {
    sends_.erase({over->goal, over->update});
  }
  return true;
}

}  // namespace mercury::fabric
