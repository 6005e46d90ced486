// A whole job, simulated: the scheduler's membership and every node's own, the streams of all
// workers and the aggregators of all servers, with letters in their order and real packets.
// Processes die, fall silent, are cut off, or come while the job runs.
//
// What vans and nodes do with threads and sockets is done here, in data_links.h and in
// scheduler_side.h as they do it, in a few lines each; what decides is theirs. What scripts do is
// in training.h.
//
// Thread-safety: none. Time is the network's.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/data_links.h"
#include "sim/node_sayings.h"
#include "sim/scheduler_side.h"

namespace mercury::testing {

// What a test breaks on purpose, to see that it is seen.
enum class Planted { kNothing, kForgetsSums, kBelievesItself, kKeepsTheLost };

struct WholeJobOptions {
  NetworkOptions network;  // its workers: places
  int workers = 1;         // at first
  int least = 1;
  bool barrier = true;  // workers wait for one another before they leave, as MXNet's do
  Planted planted = Planted::kNothing;
};

class WholeJob : private NodeHearings {
 public:
  using Worker = std::shared_ptr<WorkerProcess>;
  using Server = std::shared_ptr<ServerProcess>;

  WholeJob(const WholeJobOptions& options, Random* random)
      : options_(options),
        random_(random),
        network_(options.network, random),
        scheduler_(&network_, random, this, options.workers, servers(),
                   [this](const std::string& what) { Note(what); }),
        says_(&network_, &scheduler_),
        links_(&network_, random, options.workers, LinkEvents()) {
    for (int s = 0; s < servers(); ++s) {
      servers_.push_back(NewServer(s));
      scheduler_.Register(servers_.back());
    }
    for (int w = 0; w < options.workers; ++w) scheduler_.Register(NewWorker(w));
    scheduler_.GoOnWith(options.least, servers() > 1, places());
  }
  WholeJob(const WholeJob&) = delete;
  WholeJob& operator=(const WholeJob&) = delete;

  Network& network() { return network_; }
  int places() const { return options_.network.workers; }
  int servers() const { return options_.network.shares.servers(); }
  Worker worker(int rank) {
    const auto found = workers_.find(rank);
    return found != workers_.end() ? found->second : nullptr;
  }
  Server server(int rank) { return servers_[static_cast<size_t>(rank)]; }
  // The others have gone on without it, as the scheduler knows.
  bool HasLost(const Process& process) const { return scheduler_.HasLost(process); }
  bool EndedUnheard() const { return scheduler_.EndedUnheard(); }
  bool SomeWaitedForNobody() const { return some_waited_for_nobody_; }
  // By life: that many have been before it.
  const std::vector<Node>& all() const { return all_; }
  // Everybody has been told that it is over, or is no more.
  bool Over() const {
    return std::none_of(all_.begin(), all_.end(), [](const auto& each) { return each->runs(); });
  }
  // What has happened, for whoever looks for the reason of a failure.
  const std::vector<std::string>& notes() const { return notes_; }

  // What happens to a job. `silently`: no connection breaks, as if a machine had lost its power.
  void Kill(const Node& node, bool silently) {
    if (!node->alive) return;
    Note(NodeName(node->id()) + " is killed" + (silently ? " silently" : ""));
    Die(node, silently);
    if (silently) return;
    const bool by_launcher = node->hint >= 0 && random_->OneIn(2);
    network_.After(random_->Between(0, 3000),
                   [this, node, by_launcher] { scheduler_.SeeEnd(node, by_launcher); });
  }
  void KillScheduler(bool silently) {
    Note("the scheduler is killed");
    scheduler_.Kill();
    for (const auto& node : all_) {
      if (silently) break;
      network_.After(random_->Between(0, 3000), [this, node] {
        if (node->runs()) node->membership.Suspect(NowMs());
      });
    }
  }
  // Nodes find it again, and those that wait to be taken in ask again.
  void ReturnScheduler() {
    scheduler_.Return();
    for (const Node& each : all_) {
      if (each->rank >= 0 || !each->runs() || !scheduler_.works()) continue;
      network_.After(random_->Between(0, 3000), [this, each] {
        if (each->runs()) scheduler_.Ask(each);
      });
    }
  }
  // Its process, or its machine; then it goes on.
  void StopScheduler(int64_t for_us) {
    Note("the scheduler stops for " + std::to_string(for_us) + " us");
    scheduler_.Stop(true);
    network_.After(for_us, [this] { scheduler_.Stop(false); });
  }
  void CutLink(int worker, int server) {
    Note("worker " + std::to_string(worker) + " and server " + std::to_string(server) + " part");
    links_.Part(worker, this->server(server));
  }
  // Nobody reaches it any more, nor it anybody; but it goes on.
  void Isolate(const Node& node, bool from_scheduler_alone) {
    Note(NodeName(node->id()) + " is isolated" + (from_scheduler_alone ? " in part" : ""));
    scheduler_.wires().Cut(node->id());
    node->isolated = true;
    if (from_scheduler_alone) return;
    const bool serves = node->role == Role::kServer;
    for (int other = 0; other < (serves ? places() : servers()); ++other) {
      serves ? CutLink(other, node->rank) : CutLink(node->rank, other);
    }
  }
  // For so long, which is too short to matter.
  void Hold(const Node& node, int64_t for_us) {
    const int id = node->id();
    Note(NodeName(id) + " is held for " + std::to_string(for_us) + " us");
    scheduler_.wires().Cut(id);
    HoldPipes(*node, true);
    network_.After(for_us, [this, node, id] {
      scheduler_.wires().Mend(id);
      HoldPipes(*node, false);
    });
  }
  // A worker comes, in the first place that is free, or in that one.
  void Come(int hint = -1) {
    const auto times = SchedulerSide::Times();
    auto comes = std::make_shared<WorkerProcess>(Role::kWorker, hint, servers(), times, NowMs());
    comes->rank = -1;
    comes->told = false;
    Begin(comes);
    for (int64_t at_us = random_->Between(0, 2000); at_us < 5000; at_us += 2500) {  // again
      network_.After(at_us, [this, comes] {
        if (comes->runs()) scheduler_.Ask(comes);
      });
    }
  }

 protected:
  // What a script does, at each place where it has to do with the job.
  virtual void Starts(const Worker& worker) = 0;
  virtual void Hears(const Worker& worker) = 0;  // who is in has changed, or it is alone

  int64_t NowMs() const { return network_.now_us() / 1000; }
  void Finish(const Worker& worker) {
    worker->at_barrier = options_.barrier;
    if (!options_.barrier || worker->membership.alone()) return Leave(worker);
    says_.Barrier(worker);
  }
  void Fail(const Node& node, const Status& why, bool tell) {
    if (!node->runs()) return;
    if (tell && node->rank >= 0) says_.Leaves(node, why);
    const Worker worker = AsWorker(node);
    if (worker != nullptr && worker->streams != nullptr) worker->streams->Fail(why);
    if (worker != nullptr) SayGoodbye(worker, false);
    End(node, why);
  }

  const WholeJobOptions options_;
  Random* const random_;
  Network network_;
  SchedulerSide scheduler_;
  NodeSayings says_;

 private:
  void Note(const std::string& what) {
    notes_.push_back(std::to_string(network_.now_us()) + " us: " + what);
  }
  void Every(std::function<bool()> while_true, std::function<void()> tick) {
    network_.After(10000, [=] {
      if (!while_true()) return;
      tick();
      Every(while_true, tick);
    });
  }
  DataLinks::Events LinkEvents() {
    DataLinks::Events events;
    events.lost = [this](const Node& node, int lost) {
      Report(node, lost, Status::PeerLost("its connection broke"));
    };
    events.connected = [this](const Worker& worker) {
      if (!worker->in) says_.Admission(worker, worker->rank, Admission::kReady);
    };
    events.server = [this](int rank) { return server(rank); };
    events.worker = [this](int rank) { return worker(rank); };
    return events;
  }
  void Begin(const Node& node) {
    node->life = all_.size() + 1;
    all_.push_back(node);
    Every([node] { return node->runs(); }, [this, node] { Tick(node); });
  }
  Server NewServer(int rank) {
    const auto times = SchedulerSide::Times();
    auto made = std::make_shared<ServerProcess>(Role::kServer, rank, servers(), times, NowMs());
    made->shards[rank] = &network_.aggregator(rank);
    for (int w = options_.workers; w < places(); ++w) {
      made->dropped.insert(w);
      made->out.insert(w);
    }
    Begin(made);
    return made;
  }
  Worker NewWorker(int rank) {
    const auto times = SchedulerSide::Times();
    auto made = std::make_shared<WorkerProcess>(Role::kWorker, rank, servers(), times, NowMs());
    workers_[rank] = made;
    made->streams = &network_.streams(rank);
    std::set<int> in;
    for (int w = 0; w < options_.workers; ++w) in.insert(w);
    made->present.Begin(in);
    made->in = true;
    for (int s = 0; s < servers(); ++s) made->links[s] = {server(s), &network_.aggregator(s), 0};
    network_.After(0, [this, made] { Starts(made); });
    Begin(made);
    return made;
  }

  // A node: what it does by itself, and what it hears.
  void Tick(const Node& node) {
    for (const auto& [of, reported] : node->reported) {
      if (NowMs() < reported.verdict_by_ms) continue;
      if (node->membership.MayBeAloneSoon(NowMs())) continue;
      return Fail(node, Status::PeerLost("lost " + NodeName(of) + ", says nobody"), false);
    }
    CarryOut(node, node->membership.Tick(NowMs()));
  }
  void CarryOut(const Node& node, const Actions& actions) {
    for (const Action& action : actions) {
      if (action.kind == Action::kHeartbeat && node->rank >= 0) {
        says_.Heartbeat(node);
      } else if (action.kind == Action::kFail) {
        Fail(node, action.status, true);
      } else if (action.kind == Action::kAlone) {
        EndIfAlone(node);
      }
    }
  }
  void EndIfAlone(const Node& node) {
    if (!node->runs() || !node->membership.alone()) return;
    if (const Worker worker = AsWorker(node)) {
      return worker->at_barrier ? Leave(worker) : Hears(worker);
    }
    const auto server = std::static_pointer_cast<ServerProcess>(node);
    if (!server->failed.empty()) {
      return Fail(node, Status::PeerLost("workers say that the job has failed"), false);
    }
    const size_t out = server->out.size() - server->let_in.size();
    if (static_cast<int>(out) == places()) End(node, Status::Ok());
  }
  void HearHeartbeat(const Node& node) override { CarryOut(node, node->membership.Heard(NowMs())); }
  void HearBack(const Node& node, uint64_t returns) override {
    if (returns <= node->returns) return;
    node->returns = returns;
    CarryOut(node, node->membership.Heard(NowMs()));
    says_.Heartbeat(node);
    if (const Worker worker = AsWorker(node)) {
      if (worker->at_barrier) says_.Barrier(worker);
    } else {
      const auto server = std::static_pointer_cast<ServerProcess>(node);
      for (const int rank : server->finished) says_.Finished(server, rank);
    }
    for (const auto& [of, reported] : std::map<int, Process::Reported>(node->reported)) {
      says_.Report(node, of);
    }
  }
  void HearRelease(const Node& node, uint64_t releases) override {
    const Worker worker = AsWorker(node);
    worker->passed = releases;
    if (worker->at_barrier) Leave(worker);
  }
  void HearDeparture(const Node& node, int departed) override {
    node->departed.insert(departed);
    node->reported.erase(departed);
    const Worker worker = AsWorker(node);
    if (worker == nullptr) return;
    worker->present.Out(RankOf(departed));
    Hears(worker);
  }
  void HearLoss(const Node& node, int lost, const Status& why) override {
    if (lost == node->id()) return Fail(node, why, false);
    if (!node->lost.insert(lost).second) return;
    node->reported.erase(lost);
    const Worker worker = AsWorker(node);
    if (RoleOf(lost) == Role::kServer) {
      for (const int shard : node->homes.Lose(RankOf(lost))) Move(node, shard);
    } else if (worker != nullptr) {
      worker->present.Out(RankOf(lost));
    } else {
      Drop(std::static_pointer_cast<ServerProcess>(node), RankOf(lost));
    }
    if (worker != nullptr) Hears(worker);
  }
  void HearAdmission(const Node& node, const Member& newcomer, Admission admission) override {
    const int rank = RankOf(newcomer.id);
    if (!node->membership.IsNews(newcomer, admission)) return;
    const auto known = node->entries.find(rank);
    if (known == node->entries.end() || known->second != newcomer.entry) {
      const bool had = known != node->entries.end() || rank < options_.workers;
      if (had) HearLoss(node, newcomer.id, Status::PeerLost("another has its place"));
      node->lost.erase(newcomer.id);
      node->reported.erase(newcomer.id);
    }
    node->entries[rank] = newcomer.entry;
    if (const Worker worker = AsWorker(node)) {
      worker->present.Admits(rank, newcomer.entry, admission);
      return Hears(worker);
    }
    const auto server = std::static_pointer_cast<ServerProcess>(node);
    if (admission == Admission::kComes) {
      server->dropped.erase(rank);
      server->failed.erase(rank);
      server->finished.erase(rank);
      server->let_in.erase(rank);
      server->out.insert(rank);
      server->new_ones.insert(rank);
      for (auto& [shard, aggregator] : server->shards) aggregator->Expect(rank);
    } else if (admission == Admission::kIn) {
      if (server->new_ones.erase(rank) == 0) return;
      server->let_in.erase(rank);
      server->out.erase(rank);
    }
  }
  void HearTable(const Node& node, const Member& itself, const std::set<int>& in,
                 const std::map<int, uint8_t>& entries) override {
    const Worker worker = AsWorker(node);
    worker->membership.Assigned(NowMs());
    worker->entry = itself.entry;
    worker->entries = entries;
    worker->present.Begin(in);
    worker->present.Admits(worker->rank, worker->entry, Admission::kComes);
    workers_[worker->rank] = worker;
    links_.ForgetParted(worker->rank);
    network_.Renew(worker->rank);
    worker->streams = &network_.streams(worker->rank);
    for (int shard = 0; shard < servers(); ++shard) links_.Dial(worker, shard);
    Starts(worker);
  }
  void HearEnd(const Node& node, const Status& how) override {
    const Worker worker = AsWorker(node);
    if (!how.ok()) return Fail(node, how, false);
    if (worker == nullptr || worker->in) return End(node, how);
    Fail(node, Status::PeerLost("the job ended before it was let in"), false);
  }

  void Report(const Node& node, int of, const Status& why) {
    const bool out = node->lost.count(of) + node->departed.count(of) != 0;
    if (!node->runs() || out) return;
    if (options_.planted == Planted::kBelievesItself && RoleOf(of) == Role::kServer) {
      return HearLoss(node, of, why);
    }
    if (!node->reported.emplace(of, Process::Reported{why}).second) return;
    Note(NodeName(node->id()) + " reports " + NodeName(of) + ": " + why.text());
    says_.Report(node, of);
  }
  // Slots find another home, as a worker and as a server see it.
  void Move(const Node& node, int shard) {
    if (const Worker worker = AsWorker(node)) return links_.Move(worker, shard);
    const auto server = std::static_pointer_cast<ServerProcess>(node);
    if (server->homes.Of(shard) != server->rank || server->shards.count(shard) != 0) return;
    const auto unfit = [this, server](int rank) {
      Report(server, NodeId(Role::kWorker, rank), Status::Closed("it lacks what others need"));
    };
    server->shards[shard] = network_.Adopt(shard, server->out, server->new_ones, unfit,
                                           options_.planted != Planted::kForgetsSums);
  }
  void Drop(const Server& server, int rank) {
    if (options_.planted == Planted::kKeepsTheLost) return;
    server->dropped.insert(rank);
    server->out.insert(rank);
    server->new_ones.erase(rank);
    server->let_in.erase(rank);
    server->failed.erase(rank);
    for (auto& [shard, aggregator] : server->shards) aggregator->Drop(rank, 0);
    for (const Node& each : all_) {
      const Worker worker = AsWorker(each);
      const bool it = worker != nullptr && worker->rank == rank;
      if (it && worker->entry == server->entries[rank]) links_.BreakAll(worker, 500, server);
    }
    EndIfAlone(server);
  }

  void Leave(const Worker& worker) {
    if (!worker->runs()) return;
    some_waited_for_nobody_ |= !options_.barrier || worker->membership.alone();
    says_.Leaves(worker, Status::Ok());
    SayGoodbye(worker, true);
    End(worker, Status::Ok());
  }
  void SayGoodbye(const Worker& worker, bool done) {
    links_.SayGoodbye(worker, done, [this, worker, done](const Server& server) {
      if (done && server->returns != 0) says_.Finished(server, worker->rank);
      EndIfAlone(server);
    });
  }
  void End(const Node& node, const Status& how) {
    Note(NodeName(node->id()) + " ends: " + (how.ok() ? "well" : how.text()));
    node->over = true;
    node->how = how;
    node->membership.End();
    network_.After(random_->Between(0, 4000), [this, node] { Die(node, false); });
  }
  void Die(const Node& node, bool silently) {
    if (!node->alive) return;
    node->alive = false;
    const int64_t within_us = silently ? 150000 : 2000;
    if (const Worker dead = AsWorker(node)) {
      if (dead->streams != nullptr) dead->streams->Fail(Status::Closed("it is dead"));
      return links_.BreakAll(dead, within_us);
    }
    const auto dead = std::static_pointer_cast<ServerProcess>(node);
    for (auto& [rank, worker] : workers_) links_.BreakAll(worker, within_us, dead);
  }
  void HoldPipes(const Process& process, bool held) {
    for (int w = 0; w < places(); ++w) {
      for (int s = 0; s < servers(); ++s) {
        const int rank = process.role == Role::kServer ? s : w;
        if (rank == process.rank) network_.Hold(w, s, held);
      }
    }
  }

  std::vector<std::string> notes_;
  bool some_waited_for_nobody_ = false;  // before they left
  DataLinks links_;
  std::vector<Node> all_;
  std::map<int, Worker> workers_;  // who has each place
  std::vector<Server> servers_;
};

}  // namespace mercury::testing
