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
  using Node = std::shared_ptr<Process>;

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
    for (const auto& node : all_) {
      for (const Server& each : servers_) node->servers[each->rank] = MemberOf(*each);
    }
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
  DataLinks links_;
  std::vector<Node> all_;

  void Note(const std::string& what) {
    notes_.push_back(std::to_string(network_.now_us()) + " us: " + what);
  }
  void Begin(const Node& node) {
    node->life = all_.size() + 1;
    all_.push_back(node);
    Every([node] { return node->runs(); }, [this, node] { Tick(node); });
  }
  void Die(const Node& node, bool silently) {
    if (!node->alive) return;
    node->alive = false;
    const int64_t within_us = silently ? 150000 : 2000;
    if (const Worker dead = AsWorker(node)) {
      if (dead->streams != nullptr) dead->streams->Fail(Status::Closed("it is dead"));
      return links_.BreakAll(dead, within_us);
    }
    const auto dead = AsServer(node);
    for (auto& [rank, worker] : workers_) links_.BreakAll(worker, within_us, dead);
  }

 private:
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
    events.server = [this](const WorkerProcess& worker, int rank) {
      const auto life = static_cast<size_t>(worker.servers.at(rank).life);
      return std::static_pointer_cast<ServerProcess>(all_[life - 1]);
    };
    events.worker = [this](int rank) { return worker(rank); };
    return events;
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

  // What a node does by itself, and hears.
  void Tick(const Node& node) {
    for (const auto& [of, reported] : node->reported) {
      if (NowMs() < reported.verdict_by_ms) continue;
      if (node->membership.WaitsForWordOf(of, NowMs())) continue;
      return Fail(node, Status::PeerLost("lost " + NodeName(of) + ", says nobody"), false);
    }
    if (const Server server = AsServer(node)) Check(server);
    CarryOut(node, node->membership.Tick(NowMs()));
  }
  // One that came while the job ran, and has lost the scheduler since: it may have been let in
  // without hearing it, or some workers without.
  void Check(const Server& server) {
    if (!server->late || server->rank < 0 || !server->membership.alone()) {
      server->waits_since_ms = NowMs();
      return;
    }
    bool all = server->in;
    for (int w = 0; w < places() && all; ++w) {
      const bool out = server->out.count(w) != 0, came = worker(w) != nullptr;
      all = out ||
            (came && worker(w)->links[server->rank].been.count(server->shards[server->rank]) != 0);
    }
    if (all) server->waits_since_ms = NowMs();
    const int64_t patience_ms = server->in ? kPatienceUs / 1000 : 0;
    if (all || NowMs() - server->waits_since_ms < patience_ms) return;
    Fail(server, Status::PeerLost("the scheduler was lost while it was let in"), false);
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
    const Server server = AsServer(node);
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
      const Server server = AsServer(node);
      for (const int rank : server->finished) says_.Finished(server, rank);
    }
    for (const auto& [of, reported] : std::map<int, Process::Reported>(node->reported)) {
      says_.Report(node, of);
    }
  }
  void HearRelease(const Node& node, uint64_t releases) override {
    AsWorker(node)->passed = releases;
    if (AsWorker(node)->at_barrier) Leave(AsWorker(node));
  }
  void HearDeparture(const Node& node, int departed) override {
    node->departed.insert(departed);
    node->reported.erase(departed);
    const int rank = RankOf(departed);
    if (const Worker worker = AsWorker(node)) {
      worker->present.Out(rank);
      return Hears(worker);
    }
    const Server server = AsServer(node);
    server->IsOut(rank);
    const Worker left = worker(rank);
    for (auto& [shard, slots] : server->shards) {  // where it has not come
      if (left->links[shard].been.count(slots) == 0) slots->Drop(rank, 0);
    }
    EndIfAlone(server);
  }
  void HearLoss(const Node& node, int lost, const Status& why, uint64_t generation) override {
    if (lost == node->id()) return Fail(node, why, false);
    node->Begins(generation);
    if (node->WasIn(lost, generation)) {
      node->lost.erase(lost);
      for (const int shard : node->homes.Find(RankOf(lost))) Move(node, shard);
    }
    Lose(node, lost);
  }
  void Lose(const Node& node, int lost) {
    if (!node->lost.insert(lost).second) return;
    node->reported.erase(lost);
    const Worker worker = AsWorker(node);
    if (RoleOf(lost) == Role::kServer) {
      if (const Server server = AsServer(node)) server->coming.erase(RankOf(lost));
      for (const int shard : node->homes.Lose(RankOf(lost))) Move(node, shard);
    } else if (worker != nullptr) {
      worker->present.Out(RankOf(lost));
    } else {
      Drop(AsServer(node), RankOf(lost));
    }
    if (worker != nullptr) Hears(worker);
  }
  void HearAdmission(const Node& node, const Member& newcomer, Admission admission,
                     uint64_t generation) override {
    const int rank = RankOf(newcomer.id);
    const bool before = admission == Admission::kIn && generation <= node->began_with;
    if (before || !node->membership.IsNews(newcomer, admission)) return;
    if (newcomer.role == Role::kServer) return HearServer(node, newcomer, admission, generation);
    const auto known = node->entries.find(rank);
    if (known == node->entries.end() || known->second != newcomer.entry) {
      if (known != node->entries.end() || rank < options_.workers) Lose(node, newcomer.id);
      node->lost.erase(newcomer.id);
      node->reported.erase(newcomer.id);
    }
    node->Begins(generation);
    node->entries[rank] = newcomer.entry;
    if (const Worker worker = AsWorker(node)) {
      worker->present.Admits(rank, newcomer.entry, admission);
      return Hears(worker);
    }
    const Server server = AsServer(node);
    if (admission == Admission::kComes) {
      server->Expect(rank);
    } else if (admission == Admission::kIn) {
      server->LetIn(rank);
    }
  }
  void HearServer(const Node& node, const Member& newcomer, Admission admission,
                  uint64_t generation) {
    const int rank = RankOf(newcomer.id);
    const auto known = node->servers.find(rank);
    node->Begins(generation);
    const bool had = known != node->servers.end();
    if (node->id() != newcomer.id && !(had && known->second.entry == newcomer.entry)) {
      if (had) Lose(node, newcomer.id);
      node->lost.erase(newcomer.id);
      node->reported.erase(newcomer.id);
      node->servers[rank] = newcomer;
    }
    const Server serves = AsServer(node);
    if (admission == Admission::kComes && serves != nullptr) {
      serves->coming.insert(rank);
      says_.OfNewcomer(node, newcomer, Admission::kTakes);
    }
    if (admission != Admission::kIn) return;
    node->changed[newcomer.id] = generation;
    for (const int shard : node->homes.Find(rank)) Move(node, shard);
    if (serves != nullptr) serves->coming.erase(rank);
    if (node->id() == newcomer.id) serves->in = true;
  }
  void HearTable(const Node& node, const Table& table) override {
    node->membership.Assigned(NowMs());
    node->entries = table.entries;
    node->generation = node->began_with = table.generation;
    const std::vector<bool> moved = node->Knows(table.servers, servers());
    for (const auto& [rank, server] : table.servers) {
      if (server.id != node->id()) (void)node->membership.IsNews(server, Admission::kIn);
    }
    if (node->role == Role::kServer) {
      return ServerComes(AsServer(node), table);
    }
    const Worker worker = AsWorker(node);
    worker->entry = table.itself.entry;
    worker->present.Begin(table.workers);
    worker->present.Admits(worker->rank, worker->entry, Admission::kComes);
    workers_[worker->rank] = worker;
    links_.ForgetParted(worker->rank);
    network_.Renew(worker->rank, moved);
    worker->streams = &network_.streams(worker->rank);
    for (int shard = 0; shard < servers(); ++shard) links_.Dial(worker, shard);
    Starts(worker);
  }
  void ServerComes(const Server& server, const Table& table) {
    servers_[static_cast<size_t>(server->rank)] = server;
    for (int w = 0; w < places(); ++w) {
      if (table.workers.count(w) != 0) continue;
      server->dropped.insert(w);
      server->out.insert(w);
      server->entries.erase(w);
    }
    for (int shard = 0; shard < servers(); ++shard) {
      if (server->homes.Of(shard) == server->rank) Adopt(server, shard, 0);
    }
    says_.OfNewcomer(server, table.itself, Admission::kReady);
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
      return HearLoss(node, of, why, node->generation);
    }
    if (!node->reported.emplace(of, Process::Reported{why}).second) return;
    Note(NodeName(node->id()) + " reports " + NodeName(of) + ": " + why.text());
    says_.Report(node, of);
  }
  // Slots find another home, as a worker and as a server see it.
  void Move(const Node& node, int shard) {
    if (const Worker worker = AsWorker(node)) return links_.Move(worker, shard);
    const Server server = AsServer(node);
    const auto here = server->shards.find(shard);
    if (server->homes.Of(shard) == server->rank) {
      if (here == server->shards.end()) Adopt(server, shard, server->change);
    } else if (here != server->shards.end() && server->change >= server->since[shard]) {
      server->given.push_back(here->second);
      server->shards.erase(here);
    }
  }
  void Adopt(const Server& server, int shard, uint64_t since) {
    server->since[shard] = since;
    const auto unfit = [this, server](int rank) {
      Report(server, NodeId(Role::kWorker, rank), Status::Closed("it lacks what others need"));
    };
    server->shards[shard] = network_.Adopt(shard, server->out, server->new_ones, unfit,
                                           options_.planted != Planted::kForgetsSums);
  }
  void Drop(const Server& server, int rank) {
    if (options_.planted == Planted::kKeepsTheLost) return;
    server->Drop(rank);
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
  std::vector<std::string> notes_;
  bool some_waited_for_nobody_ = false;  // before they left
  std::map<int, Worker> workers_;        // who has each place
  std::vector<Server> servers_;
};

}  // namespace mercury::testing
