// Whole jobs, simulated: a scheduler, a server, a replica and workers that compute, push, aggregate
// and forward, with real sums. Messages take their time, transfers take shorter and far longer than
// planned, links change, nodes die. What must hold, holds for each of them:
//
//   each update is applied once at most, and its worker hears what became of it, once;
//   no update is applied too late; places are applied in rising order;
//   the model is what applying those updates one by one gives;
//   where a batch ends without a loss, server and replica are within the bound.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "fabric/live/collector.h"
#include "fabric/live/letters.h"
#include "fabric/live/model_daemon.h"
#include "fabric/live/worker_daemon.h"
#include "harness.h"
#include "sums/momentum_sum.h"

using namespace mercury::fabric;
using namespace mercury::testing;
using mercury::Append;
using mercury::StrideOf;

namespace {

#ifdef __SANITIZE_ADDRESS__  // some ten times slower
constexpr int kHistories = 1000;
#else
constexpr int kHistories = 30'000;
#endif
constexpr size_t kSize = 3;
constexpr int64_t kBytes = 25'000'000;
constexpr int kEventsMost = 10'000;
using Vector = std::vector<double>;

double Norm(const Vector& vector) {
  double square = 0;
  for (const double value : vector) square += value * value;
  return std::sqrt(square);
}

// A model, a group on its way, or a single update: `updates` of them.
struct Sums {
  Vector sum = Vector(kSize, 0);
  Vector step = Vector(kSize, 0);
  int64_t updates = 0;

  void Take(double momentum, const Sums& group) {
    Append<double>(StrideOf(momentum, group.updates),
                   {sum.data(), momentum > 0 ? step.data() : nullptr},
                   {group.sum.data(), group.step.data()}, kSize);
    updates += group.updates;
  }
};

// A process that has the model: the server, or the replica.
struct Holder {
  Holder(ModelDaemon::Role role, bool is_alive, int64_t bound, bool confirm)
      : node(role == ModelDaemon::Role::kServer ? kServerNode : kReplicaNode),
        alive(is_alive),
        daemon(role, bound, confirm) {}
  int node;
  bool alive;
  ModelDaemon daemon;
  Sums model;
  std::map<int64_t, Sums> memory;  // what has come, by the number that the daemon was told
  int64_t numbers = 0;
  std::vector<Placed> lineage;  // all that is in the model
};

struct Worker {
  explicit Worker(bool two_sums) : daemon(two_sums) {}
  bool alive = true;
  int64_t computed = 0;
  int64_t version = 0;  // that it knows
  WorkerDaemon daemon;
  std::map<UpdateId, Sums> updates;
  std::map<int64_t, Sums> memory;  // what has come, by the number that the daemon was told
  std::map<int64_t, Sums> groups;  // by hop
  std::set<int64_t> started;       // hops
  int64_t numbers = 0;
};

// As the other end reads it.
Letter Received(const Letter& letter) {
  Letter received;
  CHECK_OK(Decode(Encode(letter), &received));
  return received;
}

class Job {
 public:
  explicit Job(Random* random)
      : random_(*random),
        options_(Options(random)),
        workers_(1 + random->Below(6), Worker(options_.momentum > 0)),
        with_replica_(random->OneIn(2)),
        server_(ModelDaemon::Role::kServer, true, options_.delay_bound, with_replica_),
        replica_(ModelDaemon::Role::kReplica, with_replica_, options_.delay_bound, false),
        collector_(Hosts(), options_) {
    for (size_t w = 0; w < workers_.size(); ++w) Compute(static_cast<int>(w));
    for (uint64_t deaths = random_.OneIn(3) ? 0 : random_.Below(3); deaths > 0; --deaths) {
      const int node = static_cast<int>(
          random_.Between(with_replica_ ? -2 : -1, static_cast<int64_t>(workers_.size()) - 1));
      At(2 * random_.Unit(), [this, node] { Kill(node); });
    }
  }

  void Run() {
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
  }

 private:
  static CollectorOptions Options(Random* random) {
    CollectorOptions options;
    options.delay_bound = random->Between(1, 8);
    options.momentum = random->OneIn(3) ? 0 : 0.9 * random->Unit();
    options.divergence_bound = random->OneIn(5) ? 0 : 5 * random->Unit();
    options.at_once = random->OneIn(2);
    options.aggregators = random->Below(3);
    options.seed = (*random)();
    return options;
  }

  FleetHosts Hosts() const {
    FleetHosts hosts;
    for (size_t w = 0; w < workers_.size(); ++w) hosts.workers.push_back(2 + w / 2);
    if (with_replica_) hosts.replica = 1;
    return hosts;
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
      Worker& worker = workers_[static_cast<size_t>(w)];
      if (!worker.alive || worker.computed == 4) return;
      const UpdateId id{w, ++worker.computed};
      Sums& update = worker.updates[id];
      for (double& value : update.sum) value = 2 * random_.Unit() - 1;
      update.step = update.sum;
      update.updates = 1;
      values_[id] = update;
      worker.daemon.Keep(id, kBytes);
      const Request request{id, worker.version, kBytes, Norm(update.sum)};
      Tell(w, kScheduler, [this, request] { CHECK_OK(collector_.Push(request)); });
      if (random_.OneIn(3)) Compute(w);  // without waiting for what becomes of it
    });
  }

  Holder& Of(Goal goal) { return goal == Goal::kReplica || took_over_ ? replica_ : server_; }

  void Obey(const Orders& orders) {
    for (const Order& order : orders) {
      if (order.kind == Order::kFail) failed_ = true;
      if (order.kind == Order::kVoid || order.kind == Order::kSkip) loss_ = true;
      if (order.kind == Order::kExpect) {
        if (with_replica_ && replica_.alive && !took_over_ && !loss_ && server_.alive) {
          CHECK_TRUE(Apart() <= options_.divergence_bound + 1e-6);
        }
        loss_ = false;
      }
      Letter letter;
      letter.kind = Letter::Kind::kOrder;
      letter.order = order;
      Tell(kScheduler, order.node,
           [this, order = Received(letter).order, to_old = !knows_new_server_] {
             if (order.node != kServerNode || to_old != took_over_) Do(order);
           });
    }
  }

  double Apart() const {
    Vector difference = server_.model.sum;
    for (size_t i = 0; i < kSize; ++i) difference[i] -= replica_.model.sum[i];
    return Norm(difference);
  }

  void Do(const Order& order) {
    if (order.node >= 0) return DoAtWorker(order.node, order);
    Holder& holder = order.kind == Order::kTakeOver || took_over_ ? replica_ : server_;
    if (!holder.alive) return;
    if (order.kind == Order::kTakeOver) took_over_ = true;
    ModelSteps steps;
    CHECK_OK(holder.daemon.Obey(order, &steps));
    Carry(&holder, steps);
  }

  void DoAtWorker(int w, const Order& order) {
    Worker& worker = workers_[static_cast<size_t>(w)];
    if (!worker.alive) return;
    if (order.kind == Order::kReport) {
      reports_[order.update].push_back(order.fate);
      if (order.fate == Fate::kLost) return;
      Tell(w, kServerNode, [this, w] {  // get
        const Holder& holder = took_over_ ? replica_ : server_;
        if (holder.alive) workers_[static_cast<size_t>(w)].version = holder.daemon.version();
        Compute(w);
      });
    }
    if (order.kind == Order::kSend) CHECK_EQ(worker.updates.count(order.hop.update), 1);
    Carry(w, worker.daemon.Obey(order, now_s_));
  }

  // Does what the daemon says, and sends what it allows.
  void Carry(int w, const Steps& steps) {
    Worker& worker = workers_[static_cast<size_t>(w)];
    for (const Step& step : steps) {
      if (step.kind == Step::kAdd) {
        REQUIRE_EQ(worker.memory.count(step.memory), 1);
        worker.groups[step.hop].Take(options_.momentum, worker.memory[step.memory]);
      }
      if (step.kind == Step::kAdd || step.kind == Step::kDiscard) worker.memory.erase(step.memory);
      if (step.kind == Step::kDiscardGroup) CHECK_EQ(worker.groups.erase(step.hop), 1);
      if (step.kind == Step::kForget) CHECK_EQ(worker.updates.erase(step.update), 1);
      if (step.kind == Step::kEmpty) {
        Parcel parcel;
        parcel.hop.goal = step.goal;
        parcel.skipped = step.skipped;
        Tell(w, kServerNode, [this, parcel] { Arrive(parcel, {}); });
      }
    }
    for (const Allowance& allowance : worker.daemon.Due(now_s_)) {
      if (worker.started.insert(allowance.number).second) Transfer(w, allowance.number);
    }
    const double wake_s = worker.daemon.WakeAt(now_s_);
    if (wake_s > now_s_ && wake_s < mercury::fabric::kNever && !worker.daemon.Due(wake_s).empty()) {
      At(wake_s, [this, w] {
        if (workers_[static_cast<size_t>(w)].alive) Carry(w, {});
      });
    }
  }

  // Takes as long as planned, or shorter, or much longer.
  void Transfer(int w, int64_t number) {
    const Hop& hop = *workers_[static_cast<size_t>(w)].daemon.Find(number);
    double takes_s = (hop.end_s - hop.start_s) * (0.5 + random_.Unit());
    if (random_.OneIn(15)) takes_s += 5 * random_.Unit();
    At(now_s_ + takes_s, [this, w, number] {
      Worker& worker = workers_[static_cast<size_t>(w)];
      if (!worker.alive) return;
      const std::optional<Parcel> parcel = worker.daemon.Sent(number, 2 * kBytes);
      if (!parcel) return;
      Sums sums;
      if (parcel->hop.gathered) {
        sums = worker.groups[number];
        worker.groups.erase(number);
        CHECK_EQ(sums.updates, parcel->places.size());
      } else {
        sums = worker.updates[parcel->hop.update];
      }
      Arrive(*parcel, sums);
    });
  }

  void Arrive(const Parcel& parcel, const Sums& sums) {
    const std::vector<int64_t>& places = parcel.places;
    if (parcel.hop.to_aggregator) {
      Worker& worker = workers_[static_cast<size_t>(parcel.hop.to)];
      if (!worker.alive) return;
      worker.memory[++worker.numbers] = sums;
      return Carry(parcel.hop.to, worker.daemon.Arrive(parcel.hop.goal, places[0], kBytes,
                                                       worker.numbers, now_s_));
    }
    Holder& holder = Of(parcel.hop.goal);
    if (!holder.alive) return;
    holder.memory[++holder.numbers] = sums;
    Carry(&holder, holder.daemon.Arrive(places, parcel.skipped, holder.numbers));
  }

  // Does what the server's or the replica's daemon says.
  void Carry(Holder* holder, const ModelSteps& steps) {
    for (const ModelStep& step : steps) {
      if (step.kind == ModelStep::kApply) {
        int64_t version = step.version - static_cast<int64_t>(step.updates.size());
        for (const Placed& update : step.updates) {
          CHECK_TRUE(holder->lineage.empty() || holder->lineage.back().place < update.place);
          CHECK_TRUE(++version - update.version <= options_.delay_bound);
          holder->lineage.push_back(update);
        }
        holder->model.Take(options_.momentum, holder->memory.at(step.memory));
        CHECK_EQ(holder->model.updates, step.version);
      }
      if (step.kind == ModelStep::kApply || step.kind == ModelStep::kDiscard) {
        CHECK_EQ(holder->memory.erase(step.memory), 1);
      }
      if (step.kind == ModelStep::kConfirm) {
        Tell(kServerNode, kReplicaNode, [this, updates = step.updates] {
          ModelSteps more;
          if (!replica_.alive) return;
          CHECK_OK(replica_.daemon.Confirmed(updates, &more));
          Carry(&replica_, more);
        });
      }
      if (step.kind == ModelStep::kSendModel) {
        Tell(kServerNode, kReplicaNode, [this, step, model = holder->model, all = holder->lineage] {
          if (!replica_.alive || took_over_) return;
          replica_.model = model;
          replica_.lineage = all;
          Carry(&replica_, replica_.daemon.TakeModel(step.version, step.place));
        });
      }
      if (step.kind != ModelStep::kTell) continue;
      Letter letter;
      letter.kind = Letter::Kind::kNews;
      letter.news = step.news;
      letter.history_norm = Norm(holder->model.step);
      Tell(holder->node, kScheduler,
           [this, received = Received(letter)] { Hear(received.news, received.history_norm); });
    }
  }

  void Hear(const News& news, double norm) {
    if (news.kind == News::kTookOver) knows_new_server_ = true;
    Obey(news.kind == News::kCommitted        ? collector_.Committed(news.places, news.version)
         : news.kind == News::kVoided         ? collector_.Voided(news.places)
         : news.kind == News::kHeld           ? collector_.Held(news.places)
         : news.kind == News::kReplicaHas     ? collector_.ReplicaHas(news.places)
         : news.kind == News::kReplicaApplied ? collector_.ReplicaApplied(news.places, norm)
         : news.kind == News::kCaughtUp       ? collector_.ReplicaCaughtUp(news.place, norm)
                                              : collector_.TookOver(news.version));
  }

  void Kill(int node) {
    if (node >= 0) {
      workers_[static_cast<size_t>(node)].alive = false;
    } else if (took_over_) {
      replica_.alive = false;
      node = kServerNode;
    } else {
      (node == kServerNode ? server_ : replica_).alive = false;
    }
    Tell(node, kScheduler, [this, node] { Obey(collector_.Lost(node)); });
  }

  void Check() {
    const Holder& holder = took_over_ ? replica_ : server_;
    std::map<UpdateId, int> applied;
    Sums model;
    for (const Placed& update : holder.lineage) {
      ++applied[update.id];
      model.Take(options_.momentum, values_[update.id]);
    }
    for (size_t i = 0; i < kSize; ++i) {
      CHECK_TRUE(std::abs(model.sum[i] - holder.model.sum[i]) < 1e-9);
    }
    for (const auto& [id, times] : applied) CHECK_EQ(times, 1);
    if (with_replica_ && !took_over_) {  // the replica is the server as it was
      REQUIRE_TRUE(replica_.lineage.size() <= server_.lineage.size());
      for (size_t i = 0; i < replica_.lineage.size(); ++i) {
        CHECK_EQ(replica_.lineage[i].place, server_.lineage[i].place);
      }
    }
    if (failed_ || !holder.alive) return;
    CHECK_EQ(collector_.waiting(), 0);
    CHECK_EQ(collector_.under_way(), 0);
    std::set<UpdateId> at_replica;
    for (const Placed& update : replica_.lineage) at_replica.insert(update.id);
    for (const auto& [id, update] : values_) {
      if (!workers_[static_cast<size_t>(id.worker)].alive) continue;
      const std::vector<Fate>& fates = reports_[id];
      const bool lost = fates.size() == 2 && fates[1] == Fate::kLost;
      CHECK_TRUE(fates.size() == 1 || lost);
      CHECK_EQ(!fates.empty() && fates[0] == Fate::kCommitted && !lost, applied.count(id) == 1);
      const bool kept = workers_[static_cast<size_t>(id.worker)].updates.count(id) == 1;
      CHECK_EQ(kept, with_replica_ && replica_.alive && !took_over_ && applied.count(id) == 1 &&
                         at_replica.count(id) == 0);
    }
  }

  static constexpr int kScheduler = -9;
  Random& random_;
  const CollectorOptions options_;
  std::vector<Worker> workers_;
  const bool with_replica_;
  Holder server_;
  Holder replica_;
  Collector collector_;
  std::multimap<double, std::function<void()>> queue_;
  std::map<std::pair<int, int>, double> channels_;
  std::map<UpdateId, Sums> values_;
  std::map<UpdateId, std::vector<Fate>> reports_;
  double now_s_ = 0;
  double wakes_s_ = -1;
  bool took_over_ = false;
  bool knows_new_server_ = false;  // the scheduler does
  bool failed_ = false;
  bool loss_ = false;  // since the batch was planned
};

}  // namespace

TEST(each_update_is_applied_once_in_order_or_its_worker_hears_why_not) {
  Random random;
  for (int history = 0; history < kHistories; ++history) Job(&random).Run();
}
