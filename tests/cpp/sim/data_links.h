// The links of a simulated job's workers to the slots of its servers, wherever those are: made,
// refused, broken and moved as MercuryWorker and MercuryServer do.
//
// Thread-safety: none. Time is the network's.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "sim/processes.h"

namespace mercury::testing {

constexpr int64_t kPatienceUs = 400000;  // of who dials: twice that of who waits for a heartbeat

class DataLinks {
 public:
  using Worker = std::shared_ptr<WorkerProcess>;
  using Server = std::shared_ptr<ServerProcess>;
  struct Events {
    // A node has lost another one.
    std::function<void(const std::shared_ptr<Process>& node, int lost)> lost;
    std::function<void(const Worker& worker)> connected;  // to all slots
    // Who serves there, as the worker knows.
    std::function<Server(const WorkerProcess& worker, int rank)> server;
    std::function<Worker(int rank)> worker;  // who has the place now
  };

  // `workers`: that the job begins with.
  DataLinks(Network* network, Random* random, int workers, Events events)
      : network_(network), random_(random), workers_(workers), events_(std::move(events)) {}

  // As a server ends, or falls silent, or a worker: both ends hear of it within that time, if they
  // are there and it matters to them.
  void Break(const Worker& worker, int shard, int64_t within_us) {
    const WorkerProcess::Home& link = worker->links[shard];
    const Server at = link.at;
    if (at == nullptr) return;
    if (events_.worker(worker->rank) == worker) network_->Cut(worker->rank, shard);
    const int moves = link.moves;
    network_->After(random_->Between(0, within_us), [this, worker, shard, moves, at] {
      if (worker->links[shard].moves == moves) events_.lost(worker, at->id());
    });
    network_->After(random_->Between(0, within_us), [this, worker, shard, at, slots = link.slots] {
      if (MayLeave(*at, shard, slots)) return;
      const int rank = worker->rank;
      const bool of_use = at->entries[rank] == worker->entry && at->dropped.count(rank) == 0 &&
                          (at->out.count(rank) == 0 || at->new_ones.count(rank) != 0);
      if (of_use) events_.lost(at, worker->id());
    });
  }
  void BreakAll(const Worker& worker, int64_t within_us, const Server& at = nullptr) {
    for (auto& [shard, link] : worker->links) {
      if (at == nullptr || link.at == at) Break(worker, shard, within_us);
    }
  }
  // The two cannot reach each other any more.
  void Part(int worker, const Server& server) {
    apart_.insert({worker, server->life});
    const Worker of = events_.worker(worker);
    if (of != nullptr) BreakAll(of, 20000, server);
  }
  // Whoever comes in its place is somewhere else.
  void ForgetParted(int worker) {
    const auto of = [worker](const auto& pair) { return pair.first == worker; };
    for (auto it = apart_.begin(); it != apart_.end();) it = of(*it) ? apart_.erase(it) : ++it;
  }
  void Move(const Worker& worker, int shard) {
    Break(worker, shard, 500);
    ++worker->links[shard].moves;  // it knows
    worker->links[shard].at = nullptr;
    worker->streams->Moved(shard, network_->now_us());
    Dial(worker, shard);
  }
  void Dial(const Worker& worker, int shard) {
    const int moves = worker->links[shard].moves;
    const int64_t until_us = network_->now_us() + kPatienceUs;
    const uint64_t generation = worker->generation;
    network_->After(random_->Between(50, 1500),
                    [=] { TryLink(worker, shard, moves, generation, until_us); });
  }
  // `done`: it has done its work; else its job has failed.
  void SayGoodbye(const Worker& worker, bool done,
                  const std::function<void(const Server& server)>& then) {
    for (auto& [shard, link] : worker->links) {
      const Server at = link.at;
      if (at == nullptr || !at->runs() || at->dropped.count(worker->rank) != 0) continue;
      if (at->entries[worker->rank] != worker->entry) continue;
      if (done) {
        Header goodbye;
        goodbye.kind = PacketKind::kGoodbye;
        const int lanes = network_->options().lanes;
        for (int lane = 0; lane < lanes; ++lane) {
          const int from = LinkOf(worker->rank, lane, lanes);
          CHECK_OK(link.slots->OnPacket(from, goodbye, network_->now_us()));
        }
        at->out.insert(worker->rank);
        at->new_ones.erase(worker->rank);
        at->let_in.erase(worker->rank);
        at->finished.insert(worker->rank);
        for (auto& [others, slots] : at->shards) {  // where it has not come
          if (worker->links[others].been.count(slots) == 0) slots->Drop(worker->rank, 0);
        }
      } else {
        if (at->new_ones.count(worker->rank) == 0) at->failed.insert(worker->rank);
      }
      then(at);
    }
  }

 private:
  // Another server has the slots by now, or may have them soon.
  static bool MayLeave(const ServerProcess& server, int shard, const Aggregator* slots) {
    const auto here = server.shards.find(shard);
    const bool given = here == server.shards.end() || here->second != slots;
    return given || (shard != server.rank && !server.coming.empty());
  }
  // It has heard sooner than the server that it is to come.
  bool ComesEarly(const ServerProcess& server, const WorkerProcess& worker) const {
    const auto known = server.entries.find(worker.rank);
    if (known != server.entries.end()) return known->second < worker.entry;
    return server.late || worker.rank >= workers_ || worker.entry != 0;
  }
  void TryLink(const Worker& worker, int shard, int moves, uint64_t generation, int64_t until_us) {
    WorkerProcess::Home& link = worker->links[shard];
    if (!worker->runs() || link.moves != moves) return;
    const Server at = events_.server(*worker, worker->homes.Of(shard));
    const bool reaches = at->runs() && apart_.count({worker->rank, at->life}) == 0;
    const bool early = generation > at->generation || ComesEarly(*at, *worker) ||
                       at->shards.count(shard) == 0 || generation < at->since[shard];
    if (!reaches || early) {
      if (!at->runs() || network_->now_us() >= until_us) return events_.lost(worker, at->id());
      network_->After(500, [=] { TryLink(worker, shard, moves, generation, until_us); });
      return;
    }
    const bool other = at->entries[worker->rank] != worker->entry;
    if (other || at->dropped.count(worker->rank) != 0) return events_.lost(worker, at->id());
    link.at = at;
    link.slots = at->shards[shard];
    link.been.insert(link.slots);
    network_->Cut(worker->rank, shard);  // of who was there before, as its server closes it
    network_->Attach(worker->rank, shard, link.slots);
    const bool all = std::all_of(worker->links.begin(), worker->links.end(),
                                 [](const auto& each) { return each.second.at != nullptr; });
    const auto links = static_cast<int>(worker->links.size());
    if (all && links == network_->options().shares.servers()) events_.connected(worker);
  }

  Network* const network_;
  Random* const random_;
  const int workers_;
  const Events events_;
  std::set<std::pair<int, uint64_t>> apart_;  // workers, and servers' lives
};

}  // namespace mercury::testing
