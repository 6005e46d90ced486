// A whole job, simulated: a scheduler, one server or several, replicas and workers that compute,
// push, aggregate and forward, with real sums. Messages take their time, transfers take shorter and
// far longer than planned, links change, nodes die. Of several servers, each applies whole updates,
// as if all of the model were its stripe.
//
// Thread-safety: none. It checks itself, while it runs and at its end (live_history_test.cc says
// what).
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "fabric/live/collector.h"
#include "fabric/live/joint_arrivals.h"
#include "fabric/live/simulated_nodes.h"
#include "harness.h"

namespace mercury::testing {

using namespace mercury::fabric;

class SimulatedJob {
 public:
  // `reduces`: each worker's second step is an all-reduce.
  SimulatedJob(Random* random, Staleness staleness, bool reduces)
      : random_(*random),
        options_(Options(random, staleness)),
        reduces_(reduces),
        workers_(1 + random->Below(6)),
        replicas_(Replicas()),
        followers_(Followers()),
        server_(kServerNode, Role::kServer, Bound(), !replicas_.empty() || !followers_.empty()),
        arrivals_(1 + followers_.size()),
        collector_(Hosts(), options_) {
    for (size_t w = 0; w < workers_.size(); ++w) Compute(static_cast<int>(w));
    const uint64_t deaths_most = 3 + replicas_.size();
    for (uint64_t deaths = random_.OneIn(3) ? 0 : random_.Below(deaths_most); deaths > 0;
         --deaths) {
      int node = static_cast<int>(random_.Between(-1, static_cast<int64_t>(workers_.size()) - 1));
      if (!replicas_.empty() && random_.OneIn(3)) node = kServerNode;
      if (!replicas_.empty() && random_.OneIn(4)) node = AnyOf(replicas_);
      if (!followers_.empty() && random_.OneIn(4)) node = AnyOf(followers_);
      At(2 * random_.Unit(), [this, node] { Kill(node); });
    }
  }

  // How often the replica has passed on what went to the server.
  int Run() {
    int events = 0;
    while (!queue_.empty() && !failed_) {
      REQUIRE_TRUE(++events < kEventsMost);
      const auto event = queue_.begin();
      now_s_ = event->first;
      const std::function<void()> run = std::move(event->second);
      queue_.erase(event);
      run();
      Tick();
    }
    Check();
    return relayed_;
  }

 private:
  static CollectorOptions Options(Random* random, Staleness staleness) {
    CollectorOptions options;
    options.staleness = staleness;
    options.delay_bound = random->Between(1, 8);
    options.momentum = random->OneIn(3) ? 0 : 0.9 * random->Unit();
    options.divergence_bound = random->OneIn(5) ? 0 : 5 * random->Unit();
    options.at_once = random->OneIn(2);
    options.aggregators = random->Below(3);
    options.by_packets = random->OneIn(2);
    options.seed = (*random)();
    return options;
  }

  std::vector<Holder> Replicas() {
    std::vector<Holder> replicas;
    const uint64_t all = random_.OneIn(2) ? 0 : random_.OneIn(2) ? 1 : 2 + random_.Below(2);
    while (replicas.size() < all) {
      const int node = ReplicaNode(static_cast<int>(replicas.size()));
      replicas.emplace_back(node, Role::kReplica, Bound(), false);
    }
    if (!replicas.empty()) replicas[0].followed = true;
    return replicas;
  }

  std::vector<Holder> Followers() {
    std::vector<Holder> followers;
    const uint64_t more = options_.by_packets && random_.OneIn(2) ? 1 + random_.Below(2) : 0;
    while (followers.size() < more) {
      const int node = ServerNode(static_cast<int>(followers.size()) + 1);
      followers.emplace_back(node, Role::kReplica, Bound(), false);
    }
    return followers;
  }

  int AnyOf(const std::vector<Holder>& holders) {
    return holders[random_.Below(holders.size())].node;
  }
  int64_t Bound() const { return bounded() ? mercury::kNever : options_.delay_bound; }
  bool bounded() const { return options_.staleness.bounded(); }
  Worker& Of(int w) { return workers_[static_cast<size_t>(w)]; }

  FleetHosts Hosts() const {
    FleetHosts hosts;
    for (size_t w = 0; w < workers_.size(); ++w) hosts.workers.push_back(2 + w / 2);
    hosts.servers = 1 + followers_.size();
    if (!replicas_.empty()) hosts.replica = 1;
    for (size_t i = 1; i < replicas_.size(); ++i) {
      hosts.reserve.push_back({replicas_[i].node, 2 + i % workers_.size()});
    }
    return hosts;
  }

  Holder& Replica(int node) { return replicas_[static_cast<size_t>(ReplicaIndex(node))]; }
  // The server, so many replicas having become it.
  Holder& ServerOf(size_t reign) { return reign == 0 ? server_ : Replica(heirs_[reign - 1]); }
  Holder& Serving() { return ServerOf(heirs_.size()); }
  bool took_over() const { return !heirs_.empty(); }
  // Who follows the server, as the scheduler knows.
  Holder* Following() {
    const FleetHosts& hosts = collector_.hosts();
    return hosts.replica ? &Replica(hosts.replica_node) : nullptr;
  }

  void At(double at_s, std::function<void()> what) { queue_.emplace(at_s, std::move(what)); }

  // A message: those from one node to another stay in order.
  void Tell(int from, int to, const std::function<void()>& what) {
    double& last_s = channels_[{from, to}];
    last_s = std::max(last_s, now_s_ + 0.005 * random_.Unit() + (random_.OneIn(30) ? 0.2 : 0));
    At(last_s, what);
  }

  void Tick() {
    std::vector<HostLink> links;
    for (size_t host = 0; host < 2 + workers_.size(); ++host) {
      constexpr double kRates[] = {5e8, 1e9, 5e9, 1e10};
      const auto when = static_cast<size_t>(2 * now_s_);
      const auto rate = [&](size_t n) { return RateProfile({{0, kRates[(n * 7 + when) % 4]}}); };
      links.push_back({rate(2 * host), rate(2 * host + 1)});
    }
    Obey(collector_.Tick(links, now_s_));
    const double wake_s = collector_.WakeAt();
    if (wake_s < mercury::fabric::kNever && wake_s > now_s_ && wake_s != wakes_s_) {
      wakes_s_ = wake_s;
      At(wake_s, [] {});
    }
  }

  // A worker computes from the version that it knows, and asks for its push.
  void Compute(int w) {
    At(now_s_ + 0.3 * random_.Unit(), [this, w] {
      Worker& worker = Of(w);
      if (!worker.alive || worker.steps == kSteps) return;
      const bool reduce = ++worker.steps == 2 && reduces_;
      const UpdateId id{w, ++worker.numbers_used};
      const Sums& update = values_[id] = worker.updates[id] = Drawn(&random_);
      worker.daemon.Keep(id, kBytes);
      const Known& known = origins_[id] = worker.known;
      const Request request{id, known.version, kBytes, Norm(update.sum), 0, reduce, known.reign};
      Tell(w, kScheduler, [this, request] { CHECK_OK(collector_.Push(request)); });
      if (reduce) {
        parts_.insert(id);
        return Ask(w, {0, id.number});
      }
      ++worker.pushed;
      // Without waiting for what becomes of it.
      if (!bounded() && !reduces_ && random_.OneIn(3)) Compute(w);
    });
  }

  void Ask(int w, const Wish& wish) {
    Of(w).wish = wish;
    Holder* const holder = &ServerOf(Of(w).reign);
    Tell(w, holder->node, [this, w, wish, holder] {
      holder->wishes[w] = wish;
      Answer(holder);
    });
  }

  void Answer(Holder* holder) {
    std::vector<bool> alive;
    for (const Worker& worker : workers_) alive.push_back(worker.alive);
    for (auto it = holder->wishes.begin(); it != holder->wishes.end();) {
      const auto [w, wish] = *it;
      const bool granted = holder->Grants(w, wish, alive);
      it = granted ? holder->wishes.erase(it) : std::next(it);
      if (!granted || !holder->alive) continue;
      const Sums sums = wish.reduce != 0 ? holder->reduced : holder->model;
      if (holder == &server_) GiveStripes(sums, wish.reduce != 0, server_.daemon.version());
      Tell(holder->node, w, [this, holder, w = w, sums, known = holder->Shows()] {
        const bool from_server = holder == &ServerOf(Of(w).reign);
        if (holder->alive && from_server && Of(w).alive && Of(w).wish) Take(w, sums, known);
      });
    }
  }

  // A worker gets what it has asked for.
  void Take(int w, const Sums& sums, const Known& known) {
    Worker& worker = Of(w);
    if (worker.wish->reduce != 0) {
      const UpdateId part{w, worker.wish->reduce};
      const auto reign = static_cast<int64_t>(worker.reign);
      Tell(w, kScheduler, [this, part, reign] { Obey(collector_.Got(part, reign)); });
      worker.sum = sums;
      if (worker.reign == replicas_.size()) Use(w);
      return;
    }
    worker.wish.reset();
    ++worker.finished;
    Compute(w);
    worker.known = known;
    if (!options_.staleness.everybody()) return;
    CHECK_EQ(known.version, worker.pushed);
    CheckSame(sums.sum, models_.emplace(known.version, sums).first->second.sum);
  }

  // The sum of an all-reduce.
  void Use(int w) {
    Worker& worker = Of(w);
    const Sums sums = *std::exchange(worker.sum, std::nullopt);
    worker.wish.reset();
    ++worker.finished;
    Compute(w);
    CHECK_EQ(sums.updates, workers_.size());
    Values sum(kSize, 0);
    for (const UpdateId& part : parts_) Add(values_[part].sum, &sum);
    CheckSame(sums.sum, sum);
    if (!used_) used_ = sums.sum;
    CHECK_TRUE(*used_ == sums.sum);
  }

  void Obey(const Orders& orders) {
    for (const Order& order : orders) {
      if (order.kind == Order::kFail) {
        failed_ = true;
        const bool needed = reduces_ || options_.staleness.everybody();
        CHECK_TRUE((worker_died_ && needed) || NoServer());
      }
      if (order.kind == Order::kVoid || order.kind == Order::kSkip) loss_ = true;
      if (order.kind == Order::kExpect && !order.updates[0].reduce) {
        const Holder* replica = Following();
        if (replica != nullptr && replica->alive && !loss_ && Serving().alive) {
          CHECK_TRUE(Apart(*replica) <= options_.divergence_bound + 1e-6);
        }
        loss_ = false;
      }
      const int node = order.node == kServerNode ? ServerOf(known_reign_).node : order.node;
      Tell(kScheduler, node, [this, order = Received(order), node] {
        if (node >= 0) return DoAtWorker(node, order);
        DoAtHolder(node == kServerNode ? &server_ : &Replica(node), order);
      });
    }
  }

  // As the scheduler must see it: the server is lost, and nobody follows it who has the model.
  bool NoServer() {
    const Holder* replica = Following();
    const bool lost = !Serving().alive || (!took_over() && !AllServers());
    return lost && (replica == nullptr || !replica->alive || !replica->followed);
  }

  double Apart(const Holder& replica) {
    Values difference = Serving().model.sum;
    for (size_t i = 0; i < kSize; ++i) difference[i] -= replica.model.sum[i];
    return Norm(difference);
  }

  void DoAtHolder(Holder* holder, const Order& order) {
    if (!holder->alive || holder->reign < static_cast<int64_t>(heirs_.size())) {
      if (order.kind != Order::kTakeOver || !holder->alive) return;  // it is the server no more
    }
    if (order.kind == Order::kTakeOver) {
      heirs_.push_back(holder->node);
      holder->reign = static_cast<int64_t>(heirs_.size());
    }
    ModelSteps steps;
    CHECK_OK(holder->daemon.Obey(order, &steps));
    Carry(holder, steps);
  }

  void DoAtWorker(int w, const Order& order) {
    Worker& worker = Of(w);
    if (!worker.alive) return;
    if (order.kind == Order::kReport) {
      reports_[order.update].push_back(order.fate);
      if (order.fate == Fate::kLost || parts_.count(order.update) != 0) return;
      if (bounded()) {
        const int64_t least = worker.pushed - options_.staleness.updates;
        return Ask(w, {std::max(int64_t{0}, least), 0});
      }
      ++worker.finished;
      Tell(w, kServerNode, [this, w] {  // get
        const Holder& holder = Serving();
        if (holder.alive) Of(w).known = holder.Shows();
        Compute(w);
      });
    }
    if (order.kind == Order::kSend) CHECK_EQ(worker.updates.count(order.hop.update), 1);
    Carry(w, worker.daemon.Obey(order, now_s_));
  }

  // Does what the daemon says, and sends what it allows.
  void Carry(int w, const Steps& steps) {
    Worker& worker = Of(w);
    for (const Step& step : steps) {
      if (step.kind == Step::kAdd) {
        REQUIRE_EQ(worker.memory.count(step.memory), 1);
        const Hop* hop = worker.daemon.Find(step.hop);
        Sums& group = worker.groups[step.hop];
        group.Take(options_.momentum, hop->two_sums ? 1 : 0, worker.memory[step.memory]);
      }
      if (step.kind == Step::kAdd || step.kind == Step::kDiscard) worker.memory.erase(step.memory);
      if (step.kind == Step::kDiscardGroup) CHECK_EQ(worker.groups.erase(step.hop), 1);
      if (step.kind == Step::kForget) {
        CHECK_EQ(worker.updates.erase(step.update), 1);
        if (worker.sum && worker.wish->reduce == step.update.number) Use(w);
      }
      worker.OfChain(step);
      if (step.kind == Step::kEmpty) {
        Parcel parcel;
        parcel.hop.goal = step.goal;
        parcel.hop.to = step.to;
        parcel.skipped = step.skipped;
        Tell(w, kServerNode, [this, parcel] { Arrive(parcel, {}); });
      }
    }
    worker.PassOn(options_.momentum);
    for (const Allowance& allowance : worker.daemon.Due(now_s_)) {
      if (worker.started.insert(allowance.number).second) Transfer(w, allowance.number);
    }
    const double wake_s = worker.daemon.WakeAt(now_s_, [&](int64_t number, const Hop&) {
      return worker.started.count(number) == 0 ? std::optional(int64_t{0}) : std::nullopt;
    });
    if (wake_s > now_s_ && wake_s < mercury::fabric::kNever) {
      At(wake_s, [this, w] {
        if (Of(w).alive) Carry(w, {});
      });
    }
  }

  // Takes as long as planned, or shorter, or much longer.
  void Transfer(int w, int64_t number) {
    const Hop& hop = *Of(w).daemon.Find(number);
    double takes_s = (hop.end_s - hop.start_s) * (0.5 + random_.Unit());
    if (random_.OneIn(15)) takes_s += 5 * random_.Unit();
    At(now_s_ + takes_s, [this, w, number] {
      Worker& worker = Of(w);
      if (!worker.alive) return;
      if (worker.daemon.Find(number) == nullptr) return;  // broken off
      const Parcel parcel = worker.daemon.What(number);
      CHECK_TRUE(worker.daemon.Sent(number, 2 * kBytes));
      Arrive(parcel, worker.Leaves(number, parcel));
    });
  }

  void Arrive(const Parcel& parcel, const Sums& sums) {
    const std::vector<int64_t>& places = parcel.places;
    if (parcel.hop.to_aggregator) {
      Worker& worker = workers_[static_cast<size_t>(parcel.hop.to)];
      if (!worker.alive) return;
      if (parcel.hop.chained) {
        worker.comes.emplace_back(parcel.hop, sums);
        return Carry(parcel.hop.to, {});
      }
      worker.memory[++worker.numbers] = sums;
      return Carry(parcel.hop.to, worker.daemon.Arrive(parcel.hop.goal, places[0], kBytes,
                                                       worker.numbers, now_s_));
    }
    if (IsRelayed(parcel.hop)) {
      Holder& relay = Replica(parcel.hop.to);
      if (relay.alive) PassOn(parcel, sums, &relay);
      return;
    }
    Holder& holder = parcel.hop.goal == Goal::kServer ? Serving() : Replica(parcel.hop.to);
    const bool each = &holder == &server_ && !followers_.empty() && !places.empty();
    if (each) return ArriveAtEach(parcel, sums);
    if (!holder.alive) return;
    Keep(parcel, sums, &holder);
  }

  void Keep(const Parcel& parcel, const Sums& sums, Holder* holder) {
    holder->memory[++holder->numbers] = sums;
    Carry(holder, holder->daemon.Arrive(parcel.places, parcel.skipped, holder->numbers));
  }

  void Kill(int node) {
    if (node < kSchedulerNode && IsServerNode(node)) return KillFollower(node);
    if (node >= 0) {
      if (!std::exchange(Of(node).alive, false)) return;
      worker_died_ = true;
      Answer(&server_);
      for (Holder& replica : replicas_) Answer(&replica);
      return Tell(node, kScheduler, [this, node] { Obey(collector_.Lost(node)); });
    }
    Holder& holder = node == kServerNode ? Serving() : Replica(node);
    if (!std::exchange(holder.alive, false)) return;
    if (&holder == &server_) return LoseServer(kServerNode);
    // Perhaps it has said that it is the server now.
    Tell(holder.node, kScheduler, [this, its = holder.node] {
      Obey(collector_.Lost(ServerOf(known_reign_).node == its ? kServerNode : its));
    });
  }

  // simulated_servers.h:
  void GiveStripes(const Sums& sums, bool reduce, int64_t version);
  void ArriveAtEach(const Parcel& parcel, const Sums& sums);
  void ArriveWhole(const std::optional<Arrival>& arrival);
  void PassOn(const Parcel& parcel, const Sums& sums, Holder* relay);
  void Confirm(Holder* server, Holder* follower, const std::vector<Placed>& updates);
  void Carry(Holder* holder, const ModelSteps& steps);
  void Hear(int from, const News& news);
  void KillFollower(int node);
  void LoseServer(int node);
  bool AllServers() const;
  void Check();

  static constexpr int kScheduler = -9;
  Random& random_;
  const CollectorOptions options_;
  const bool reduces_;
  std::vector<Worker> workers_;
  std::vector<Holder> replicas_;
  std::vector<Holder> followers_;  // the servers but the first
  Holder server_;
  JointArrivals arrivals_;
  Collector collector_;
  std::multimap<double, std::function<void()>> queue_;
  std::map<std::pair<int, int>, double> channels_;
  std::map<UpdateId, Sums> values_;
  std::map<UpdateId, Known> origins_;  // what each update was computed from
  std::map<UpdateId, std::vector<Fate>> reports_;
  std::set<UpdateId> parts_;        // of the all-reduce
  std::optional<Values> used_;      // its sum, in a worker
  std::map<int64_t, Sums> models_;  // by version, as a worker has got them
  double now_s_ = 0, wakes_s_ = -1;
  std::vector<int> heirs_;  // who have become the server, one after the other
  size_t known_reign_ = 0;  // so many of them, as the scheduler knows
  bool failed_ = false, worker_died_ = false;
  bool servers_lost_ = false;  // one, as the scheduler knows
  bool loss_ = false;          // since the batch was planned
  int relayed_ = 0;            // so often the replica had something to pass on
};

}  // namespace mercury::testing
