// What servers and replicas of a simulated job do, and what must hold at its end.
#pragma once

#include "fabric/live/simulated_job.h"

namespace mercury::testing {

// The other servers give the same.
inline void SimulatedJob::GiveStripes(const Sums& sums, bool reduce, int64_t version) {
  for (Holder& follower : followers_) {
    Tell(kServerNode, follower.node, [&follower, sums, reduce, version] {
      if (!follower.alive) return;
      CHECK_EQ(follower.daemon.version(), version);
      CheckSame((reduce ? follower.reduced : follower.model).sum, sums.sum);
    });
  }
}

// Each server gets its stripe when it gets it, or never, if the sender dies before.
inline void SimulatedJob::ArriveAtEach(const Parcel& parcel, const Sums& sums) {
  for (size_t i = 0; i <= followers_.size(); ++i) {
    At(now_s_ + 0.05 * random_.Unit(), [this, i, parcel, sums] {
      Holder& holder = i == 0 ? server_ : followers_[i - 1];
      if (!holder.alive || took_over() || !Of(parcel.hop.from).alive) return;
      holder.memory[++holder.numbers] = sums;
      if (i == 0) {
        return ArriveWhole(arrivals_.AtFirst({parcel.places, parcel.skipped, holder.numbers}));
      }
      Carry(&holder, holder.daemon.Arrive(parcel.places, {}, holder.numbers));
    });
  }
}

inline void SimulatedJob::ArriveWhole(const std::optional<Arrival>& arrival) {
  ModelSteps steps;
  if (arrival) steps = server_.daemon.Arrive(arrival->places, arrival->skipped, arrival->memory);
  Carry(&server_, steps);
}

inline void SimulatedJob::Confirm(Holder* server, Holder* follower,
                                  const std::vector<Placed>& updates) {
  Tell(server->node, follower->node, [this, follower, updates] {
    ModelSteps more;
    if (!follower->alive) return;
    CHECK_OK(follower->daemon.Confirmed(updates, &more));
    Carry(follower, more);
  });
}

// Does what a server's or a replica's daemon says.
inline void SimulatedJob::Carry(Holder* holder, const ModelSteps& steps) {
  if (holder == &server_) {
    const auto possible = [this](int64_t place) { return server_.daemon.Possible(place); };
    for (const Arrival& arrival : arrivals_.Drop(possible)) {
      CHECK_EQ(server_.memory.erase(arrival.memory), 1);
    }
  }
  for (const ModelStep& step : steps) {
    if (step.kind == ModelStep::kApply) holder->Apply(step, options_.momentum, Bound(), origins_);
    if (step.kind == ModelStep::kApply || step.kind == ModelStep::kDiscard) {
      CHECK_EQ(holder->memory.erase(step.memory), 1);
    }
    if (step.kind == ModelStep::kConfirm) {
      const bool follows = !replicas_.empty() && !step.updates[0].reduce;
      if (follows) Confirm(holder, &Replica(holder->tells), step.updates);
      for (Holder& follower : followers_) {
        if (holder == &server_) Confirm(holder, &follower, step.updates);
      }
    }
    if (step.kind == ModelStep::kSendModel) {
      if (holder == &server_) GiveStripes(holder->model, false, step.version);
      holder->tells = step.to;
      Tell(holder->node, step.to, [this, step, old = *holder] {
        Holder& replica = Replica(step.to);
        if (!replica.alive || replica.reign != 0) return;  // it may have taken over
        replica.model = old.model;
        replica.lineage = old.lineage;
        replica.progress = old.progress;
        replica.versions = step.version;
        Carry(&replica, replica.daemon.TakeModel(step.version, step.place));
      });
    }
    if (step.kind != ModelStep::kTell) continue;
    News news = step.news;
    news.history_norm = Norm(holder->model.step);
    if (holder->node < kSchedulerNode && IsServerNode(holder->node)) {
      if (news.kind != News::kReplicaHas) continue;
      const auto server = static_cast<size_t>(ServerIndex(holder->node));
      Tell(holder->node, kServerNode, [this, server, places = news.places] {
        if (server_.alive) ArriveWhole(arrivals_.At(places, server));
      });
      continue;
    }
    Tell(holder->node, kScheduler, [this, from = holder->node, news = Received(news)] {
      if (from != kServerNode || !servers_lost_) Hear(from, news);
    });
  }
  Answer(holder);
}

inline void SimulatedJob::Hear(int from, const News& news) {
  const double norm = news.history_norm;
  if (news.kind == News::kCaughtUp) Replica(from).followed = true;
  if (news.kind == News::kTookOver) {
    ++known_reign_;
    for (size_t i = 0; i < workers_.size(); ++i) {
      const int w = static_cast<int>(i);
      Tell(kScheduler, w, [this, w] {
        ++Of(w).reign;
        Of(w).sum.reset();
        if (Of(w).alive && Of(w).wish) Ask(w, *Of(w).wish);
      });
    }
  }
  Obey(news.kind == News::kCommitted        ? collector_.Committed(news.places, news.version)
       : news.kind == News::kVoided         ? collector_.Voided(news.places)
       : news.kind == News::kHeld           ? collector_.Held(news.places)
       : news.kind == News::kReplicaHas     ? collector_.ReplicaHas(news.places)
       : news.kind == News::kReplicaApplied ? collector_.ReplicaApplied(news.places, norm)
       : news.kind == News::kCaughtUp       ? collector_.ReplicaCaughtUp(news.place, norm)
                                            : collector_.TookOver(news.version));
}

// A replica passes on to the server that it follows, and keeps a copy for itself.
inline void SimulatedJob::PassOn(const Parcel& parcel, const Sums& sums, Holder* relay) {
  ++relayed_;
  if (relay->reign == 0) {
    Holder* const server = &Serving();
    Tell(relay->node, server->node, [this, parcel, sums, server] {
      if (server->alive && server->reign == static_cast<int64_t>(heirs_.size())) {
        Keep(parcel, sums, server);
      }
    });
  }
  Keep(parcel, sums, relay);
}

inline void SimulatedJob::KillFollower(int node) {
  Holder& follower = followers_[static_cast<size_t>(ServerIndex(node) - 1)];
  if (std::exchange(follower.alive, false) && !took_over()) LoseServer(node);
}

// The first that is lost counts.
inline void SimulatedJob::LoseServer(int node) {
  Tell(node, kScheduler, [this, node] {
    if (!std::exchange(servers_lost_, true)) Obey(collector_.Lost(node));
  });
}

inline bool SimulatedJob::AllServers() const {
  return server_.alive && std::all_of(followers_.begin(), followers_.end(),
                                      [](const Holder& its) { return its.alive; });
}

inline void SimulatedJob::Check() {
  const Holder& holder = Serving();
  std::map<UpdateId, int> applied;
  Sums model;
  int64_t round = 0;
  for (const Placed& update : holder.lineage) {
    ++applied[update.id];
    const bool same = update.round != 0 && update.round == std::exchange(round, update.round);
    model.Take(options_.momentum, same ? 0 : 1, values_[update.id]);
  }
  CheckSame(model.sum, holder.model.sum);
  for (const auto& [id, times] : applied) CHECK_EQ(times, 1);
  const Holder* replica = Following();
  const bool follows = replica != nullptr && replica->alive && replica->reign == 0;
  if (follows) {  // it is the server as it was
    REQUIRE_TRUE(replica->lineage.size() <= holder.lineage.size());
    for (size_t i = 0; i < replica->lineage.size(); ++i) {
      CHECK_EQ(replica->lineage[i].place, holder.lineage[i].place);
    }
  }
  if (failed_ || !holder.alive) return;
  if (!took_over()) {
    CHECK_TRUE(server_.memory.empty());
    for (const Holder& follower : followers_) CheckSame(follower.model.sum, holder.model.sum);
  }
  CHECK_EQ(collector_.waiting(), 0);
  CHECK_EQ(collector_.under_way(), 0);
  for (const Worker& worker : workers_) {
    if (worker.alive) CHECK_EQ(worker.finished, kSteps);
  }
  std::set<UpdateId> at_replica;
  if (follows) {
    for (const Placed& update : replica->lineage) at_replica.insert(update.id);
  }
  for (const auto& [id, update] : values_) {
    if (!Of(id.worker).alive) continue;
    const std::vector<Fate>& fates = reports_[id];
    const bool lost = fates.size() == 2 && fates[1] == Fate::kLost && !bounded();
    CHECK_TRUE(fates.size() == 1 || lost);
    if (bounded() || parts_.count(id) != 0) CHECK_EQ(fates[0], Fate::kCommitted);
    if (parts_.count(id) != 0) {
      CHECK_EQ(Of(id.worker).updates.count(id), 0);  // all have the sum
      continue;
    }
    CHECK_EQ(!fates.empty() && fates[0] == Fate::kCommitted && !lost, applied.count(id) == 1);
    const bool kept = Of(id.worker).updates.count(id) == 1;
    CHECK_EQ(kept, follows && applied.count(id) == 1 && at_replica.count(id) == 0);
  }
}

}  // namespace mercury::testing
