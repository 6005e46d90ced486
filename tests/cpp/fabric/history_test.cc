// Batch after batch, with models that are really updated: what plans promise of delay, order and
// divergence holds for whole histories, while rates change from batch to batch and within one,
// transfers take longer than planned, and workers and servers die in the middle of a batch.
//
// Whoever carries plans out keeps three rules here. The replica applies nothing that the server has
// not. A batch's last commit waits until the replica has all that is frozen. What a death leaves
// undone is planned again with the next batch, and the server itself sends what the replica lacks.
#include <algorithm>
#include <cmath>
#include <deque>

#include "fabric/planner.h"
#include "fabric/random_batch.h"
#include "fabric/replication.h"

using namespace mercury::testing;

namespace {

constexpr int kHistories = 100'000;
constexpr int kBatches = 3;
constexpr size_t kSize = 3;

struct Vector {
  double at[kSize] = {};
};

double Distance(const Vector& a, const Vector& b) {
  double square = 0;
  for (size_t i = 0; i < kSize; ++i) square += (a.at[i] - b.at[i]) * (a.at[i] - b.at[i]);
  return std::sqrt(square);
}

struct Model {
  Vector weights;
  Vector step;
  size_t applied = 0;

  void Apply(const Vector& update, double momentum) {
    for (size_t i = 0; i < kSize; ++i) {
      step.at[i] = momentum * step.at[i] + update.at[i];
      weights.at[i] += step.at[i];
    }
    ++applied;
  }
};

// One update, from its worker to the end.
struct Task {
  Vector value;
  int64_t version = 0;
  int applied = 0;
  bool gone = false;  // dropped by a plan, or lost with who had it
};

class History {
 public:
  explicit History(Random* random)
      : random_(*random),
        momentum_(random->OneIn(3) ? 0 : 0.9 * random->Unit()),
        divergence_bound_(random->OneIn(5) ? 0 : 6 * random->Unit()),
        delay_bound_(random->Between(0, 6)) {}

  void PlayBatch() {
    const Batch batch = DrawBatch();
    const Plan plan = PlanBatch(batch, {random_.OneIn(500)});
    REQUIRE_TRUE(plan.replica.has_value());
    CHECK_EQ(plan.order.size() + plan.dropped.size(), drawn_.size());
    for (const Drop& drop : plan.dropped) tasks_[drawn_[drop.shipment]].gone = true;
    const bool late = random_.OneIn(2);
    const bool death = random_.OneIn(4);
    const size_t made = death ? random_.Below(plan.commits.size() + 1) : plan.commits.size();
    CarryOut(batch, plan, made, late);
    if (made < plan.commits.size()) {
      for (size_t c = made; c < plan.commits.size(); ++c) {
        for (const size_t g : plan.commits[c].shipments) waiting_.push_back(drawn_[g]);
      }
      if (random_.OneIn(2)) {
        LoseServer();
      } else {
        const size_t lost = random_.Below(waiting_.size());
        tasks_[waiting_[lost]].gone = true;
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(lost));
      }
    }
  }

  // Each update is applied once, or known to be gone, or still waits.
  void CheckTasks() {
    std::vector<int> accounts(tasks_.size(), 0);
    for (const size_t task : log_) ++accounts[task];
    for (const size_t task : waiting_) ++accounts[task];
    for (size_t i = 0; i < tasks_.size(); ++i) {
      CHECK_EQ(accounts[i] + (tasks_[i].gone ? 1 : 0), 1);
      CHECK_TRUE(tasks_[i].applied <= 1);
    }
  }

 private:
  int64_t Version() const { return static_cast<int64_t>(server_.applied); }

  // The first `made` commits of a plan; `late`: the replica's come at any time.
  void CarryOut(const Batch& batch, const Plan& plan, size_t made, bool late) {
    const ReplicaBatch& replica = *batch.replica;
    const size_t had = replica_.applied;
    std::vector<double> norms;
    for (const Update& update : replica.pending) norms.push_back(update.norm);
    for (const size_t g : plan.order) norms.push_back(batch.updates[g].norm);
    // When the replica makes its commits, and how many updates it has then.
    std::deque<std::pair<double, size_t>> commits;
    double last_s = 0;
    size_t sent = had;
    const auto arrive = [&](const Transfer& transfer) {
      last_s = std::max(last_s, transfer.end_s);
      sent += transfer.shipments.size();
      commits.emplace_back(last_s, sent);
    };
    for (const Transfer& transfer : plan.replica->transfers) {
      if (transfer.to_aggregator == kDirect) arrive(transfer);
    }
    for (const Transfer& transfer : plan.transfers) {
      if (transfer.relaying == Relaying::kTo) arrive(transfer);
    }
    CHECK_EQ(sent, had + plan.replica->frozen);
    size_t place = 0;
    size_t arrived = had;
    for (size_t c = 0; c < made; ++c) {
      const bool last = c + 1 == plan.commits.size();
      for (const size_t g : plan.commits[c].shipments) {
        CHECK_EQ(g, plan.order[place++]);
        log_.push_back(drawn_[g]);
        Task& task = tasks_[drawn_[g]];
        ++task.applied;
        server_.Apply(task.value, momentum_);
        CHECK_TRUE(Version() - task.version <= delay_bound_);
      }
      while (!commits.empty() &&
             (late ? last || random_.OneIn(2)
                   : commits.front().first <= plan.commits[c].time_s + kSameTime_s)) {
        arrived = commits.front().second;
        commits.pop_front();
      }
      while (replica_.applied < std::min(arrived, server_.applied)) {
        replica_.Apply(tasks_[log_[replica_.applied]].value, momentum_);
      }
      const double apart = Distance(server_.weights, replica_.weights);
      CHECK_TRUE(apart <= DivergenceBound(momentum_, replica.history_norm, norms,
                                          server_.applied - had, replica_.applied - had) +
                              1e-9);
      if (!late) CHECK_TRUE(apart <= plan.replica->divergence_at_commits[c] + 1e-9);
      if (last) CHECK_TRUE(apart <= divergence_bound_ + 1e-9);
      if (last) CHECK_EQ(replica_.applied, had + plan.replica->frozen);
    }
  }

  // The replica takes over; what it has not had is lost, and so is what was computed from that.
  void LoseServer() {
    while (log_.size() > replica_.applied) {
      tasks_[log_.back()].gone = true;
      log_.pop_back();
    }
    server_ = replica_;
    const auto orphan = [this](size_t task) { return tasks_[task].version > Version(); };
    for (const size_t task : waiting_) tasks_[task].gone = tasks_[task].gone || orphan(task);
    waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), orphan), waiting_.end());
  }

  Batch DrawBatch() {
    Shape shape;
    shape.updates_most = 4;
    shape.replica = true;
    Batch batch = RandomBatch(&random_, shape);
    batch.by_packets = random_.OneIn(2);
    batch.replica->relays = batch.by_packets;
    batch.version = Version();
    batch.delay_bound = delay_bound_;
    batch.momentum = momentum_;
    drawn_.clear();
    for (Update& update : batch.updates) {
      drawn_.push_back(tasks_.size());
      tasks_.push_back(
          {Draw(), Version() - random_.Between(0, std::min<int64_t>(Version(), 5)), 0, false});
      update.version = tasks_.back().version;
      update.norm = Distance(tasks_.back().value, {});
    }
    for (const size_t task : waiting_) {
      drawn_.push_back(task);
      batch.updates.push_back(Resent(batch, "g", task));
    }
    waiting_.clear();
    ReplicaBatch& replica = *batch.replica;
    replica.momentum = momentum_;
    replica.divergence_bound = divergence_bound_;
    replica.history_norm = Distance(replica_.step, {});
    replica.pending.clear();
    for (size_t i = replica_.applied; i < log_.size(); ++i) {
      replica.pending.push_back(Resent(batch, "p", log_[i]));
      replica.pending.back().worker = batch.servers[0];
    }
    return batch;
  }

  // An update of an earlier batch, from where one of this batch's comes from.
  Update Resent(const Batch& batch, const std::string& prefix, size_t task) {
    Update update;
    update.id = prefix + "again" + std::to_string(task);
    update.worker = batch.updates[random_.Below(batch.updates.size())].worker;
    update.bytes = {50'000'000};
    update.version = tasks_[task].version;
    update.norm = Distance(tasks_[task].value, {});
    return update;
  }

  Vector Draw() {
    Vector update;
    for (double& value : update.at) value = 2 * random_.Unit() - 1;
    return update;
  }

  Random& random_;
  const double momentum_;
  const double divergence_bound_;
  const int64_t delay_bound_;
  std::vector<Task> tasks_;      // all of the history
  std::vector<size_t> drawn_;    // this batch's
  std::vector<size_t> waiting_;  // what a death has left undone
  std::vector<size_t> log_;      // what the server has applied
  Model server_;
  Model replica_;
};

}  // namespace

TEST(delay_order_and_divergence_hold_whoever_is_late_or_dies) {
  Random random;
  const int histories = Trials(kHistories);
  for (int history = 0; history < histories; ++history) {
    History played(&random);
    for (int batch = 0; batch < kBatches; ++batch) played.PlayBatch();
    played.CheckTasks();
  }
}
