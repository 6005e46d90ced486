#include "fabric/live/model_daemon.h"

#include <algorithm>
#include <utility>

namespace mercury::fabric {
namespace {

void Say(News news, ModelSteps* steps) {
  ModelStep step;
  step.kind = ModelStep::kTell;
  step.news = std::move(news);
  steps->push_back(std::move(step));
}

void SayPlaces(News::Kind kind, const std::vector<int64_t>& places, ModelSteps* steps) {
  if (places.empty()) return;
  News news;
  news.kind = kind;
  news.places = places;
  Say(std::move(news), steps);
}

void Discard(int64_t memory, ModelSteps* steps) {
  ModelStep step;
  step.kind = ModelStep::kDiscard;
  step.memory = memory;
  steps->push_back(std::move(step));
}

}  // namespace

Status ModelDaemon::Obey(const Order& order, ModelSteps* steps) {
  if (order.kind == Order::kTakeOver) return TakeOver(order, steps);
  if (role_ != Role::kServer) {
    if (order.kind == Order::kVoid) return Status::Ok();  // what is applied, the server says
    return Status::InvalidArgument("a replica is told to do what a server does");
  }
  if (order.kind == Order::kExpect) {
    Status status = order_.Expect(order.updates);
    if (!status.ok()) return status;
    if (order.place != 0) order_.Hold(order.place);
  } else if (order.kind == Order::kVoid) {
    SayPlaces(News::kVoided, order_.Void(order.places, order.even_arrived), steps);
  } else if (order.kind == Order::kRelease) {
    order_.Release(order.place);
  } else if (order.kind == Order::kSnapshot) {
    if (!IsReplicaNode(order.hop.to)) return Status::InvalidArgument("a model for no replica");
    confirm_ = true;
    ModelStep step;
    step.to = order.hop.to;
    step.kind = ModelStep::kSendModel;
    step.version = order_.version();
    step.place = order_.applied_through();
    steps->push_back(std::move(step));
  }
  Advance(steps);
  return Status::Ok();
}

ModelSteps ModelDaemon::Arrive(const std::vector<int64_t>& places,
                               const std::vector<int64_t>& skipped, int64_t memory) {
  ModelSteps steps;
  const bool server = role_ == Role::kServer;
  // What a group on its way to the replica lacks, the server may well have applied.
  Arrival arrival{places, server ? skipped : std::vector<int64_t>(), memory};
  if (!order_.Arrive(std::move(arrival))) {
    Discard(memory, &steps);
  } else if (!server) {
    SayPlaces(News::kReplicaHas, places, &steps);
  }
  if (server) SayPlaces(News::kVoided, skipped, &steps);
  Advance(&steps);
  return steps;
}

Status ModelDaemon::Confirmed(const std::vector<Placed>& updates, ModelSteps* steps) {
  if (role_ != Role::kReplica) return Status::Ok();  // said before this one took over
  Status status = order_.Expect(updates);
  if (status.ok()) Advance(steps);
  return status;
}

ModelSteps ModelDaemon::TakeModel(int64_t version, int64_t place) {
  ModelSteps steps;
  order_.Jump(version, place);
  News news;
  news.kind = News::kCaughtUp;
  news.place = place;
  Say(std::move(news), &steps);
  Advance(&steps);
  return steps;
}

Status ModelDaemon::TakeOver(const Order& order, ModelSteps* steps) {
  if (role_ == Role::kServer) {
    return Status::InvalidArgument("a server is told to take over");
  }
  std::vector<Placed> rest;
  for (const Placed& update : order.updates) {
    if (update.place > order_.expected_through()) rest.push_back(update);
  }
  Status status = order_.Expect(rest);
  if (!status.ok()) return status;
  Advance(steps);
  order_.TakeOver(delay_bound_);
  role_ = Role::kServer;
  News news;
  news.kind = News::kTookOver;
  news.version = order_.version();
  Say(std::move(news), steps);
  Advance(steps);
  return Status::Ok();
}

void ModelDaemon::SayApplied(std::vector<Placed> updates, int64_t version, ModelSteps* steps) {
  const auto by_place = [](const Placed& a, const Placed& b) { return a.place < b.place; };
  std::sort(updates.begin(), updates.end(), by_place);
  const bool server = role_ == Role::kServer;
  News news;
  news.kind = server ? News::kCommitted : News::kReplicaApplied;
  news.version = version;
  for (const Placed& update : updates) news.places.push_back(update.place);
  if (server && confirm_) {
    ModelStep step;
    step.kind = ModelStep::kConfirm;
    step.version = version;
    step.updates = std::move(updates);
    steps->push_back(std::move(step));
  }
  Say(std::move(news), steps);
}

void ModelDaemon::Advance(ModelSteps* steps) {
  Progress progress = order_.Advance();
  for (const Arrival& arrival : progress.given_back) Discard(arrival.memory, steps);
  // A round is said as one.
  std::vector<Placed> updates;
  for (size_t i = 0; i < progress.commits.size(); ++i) {
    Applied& applied = progress.commits[i];
    ModelStep step;
    step.kind = ModelStep::kApply;
    step.memory = applied.memory;
    step.version = applied.version;
    step.versions = applied.versions;
    step.first = applied.first;
    step.updates = std::move(applied.updates);
    updates.insert(updates.end(), step.updates.begin(), step.updates.end());
    steps->push_back(std::move(step));
    const bool last = i + 1 == progress.commits.size() || progress.commits[i + 1].first;
    if (last) SayApplied(std::exchange(updates, {}), applied.version, steps);
  }
  const std::vector<int64_t> held = order_.Held();
  if (role_ != Role::kServer || held == said_held_) return;
  said_held_ = held;
  SayPlaces(News::kHeld, held, steps);
}

}  // namespace mercury::fabric
