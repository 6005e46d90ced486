// Batch after batch, with models that are really updated: what plans promise of delay, order and
// divergence holds for whole histories, while rates change from batch to batch.
#include <cmath>
#include <deque>

#include "fabric/planner.h"
#include "fabric/random_batch.h"

using namespace mercury::testing;

namespace {

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

class History {
 public:
  explicit History(Random* random)
      : random_(*random),
        momentum_(random->OneIn(3) ? 0 : 0.9 * random->Unit()),
        divergence_bound_(random->OneIn(5) ? 0 : 6 * random->Unit()),
        delay_bound_(random->Between(0, 6)) {}

  void PlayBatch() {
    Batch batch = DrawBatch();
    const Plan plan = PlanBatch(batch, {random_.OneIn(50)});
    REQUIRE_TRUE(plan.replica.has_value());
    // When the replica makes its commits, and how many updates it has then.
    std::deque<std::pair<double, size_t>> replica_commits;
    double last_s = 0;
    size_t sent = replica_.applied;
    for (const Transfer& transfer : plan.replica->transfers) {
      if (transfer.to_aggregator != kDirect) continue;
      last_s = std::max(last_s, transfer.end_s);
      sent += transfer.shipments.size();
      replica_commits.emplace_back(last_s, sent);
    }
    CHECK_EQ(sent, replica_.applied + plan.replica->frozen);
    for (const size_t g : plan.order) log_.push_back(drawn_[g]);
    size_t place = 0;
    for (size_t c = 0; c < plan.commits.size(); ++c) {
      for (const size_t g : plan.commits[c].shipments) {
        CHECK_EQ(g, plan.order[place++]);
        server_.Apply(drawn_[g], momentum_);
        CHECK_TRUE(Version() - batch.updates[g].version <= delay_bound_);
      }
      while (!replica_commits.empty() &&
             replica_commits.front().first <= plan.commits[c].time_s + 1e-9) {
        Replicate(replica_commits.front().second);
        replica_commits.pop_front();
      }
      const double apart = Distance(server_.weights, replica_.weights);
      CHECK_TRUE(apart <= plan.replica->divergence_at_commits[c] + 1e-9);
      if (c + 1 == plan.commits.size()) CHECK_TRUE(apart <= divergence_bound_ + 1e-9);
    }
    CHECK_EQ(place, plan.order.size());
    CHECK_TRUE(replica_commits.empty());
  }

 private:
  int64_t Version() const { return static_cast<int64_t>(server_.applied); }

  // The replica has the same updates as the server, in the same order.
  void Replicate(size_t up_to) {
    while (replica_.applied < up_to) replica_.Apply(log_[replica_.applied], momentum_);
  }

  Batch DrawBatch() {
    Shape shape;
    shape.updates_most = 4;
    shape.replica = true;
    Batch batch = RandomBatch(&random_, shape);
    drawn_.clear();
    batch.version = Version();
    batch.delay_bound = delay_bound_;
    batch.momentum = momentum_;
    for (Update& update : batch.updates) {
      update.version = Version() - random_.Between(0, std::min<int64_t>(Version(), 5));
      update.norm = Draw();
    }
    ReplicaBatch& replica = *batch.replica;
    replica.momentum = momentum_;
    replica.divergence_bound = divergence_bound_;
    replica.history_norm = Distance(replica_.step, {});
    replica.pending.clear();
    for (size_t i = replica_.applied; i < log_.size(); ++i) {
      Update update;
      update.id = "p" + std::to_string(i);
      update.worker = batch.updates[random_.Below(batch.updates.size())].worker;
      update.bytes = {50'000'000};
      update.norm = Distance(log_[i], {});
      replica.pending.push_back(update);
    }
    return batch;
  }

  double Draw() {
    Vector update;
    for (double& value : update.at) value = 2 * random_.Unit() - 1;
    drawn_.push_back(update);
    return Distance(update, {});
  }

  Random& random_;
  const double momentum_;
  const double divergence_bound_;
  const int64_t delay_bound_;
  std::vector<Vector> drawn_;  // this batch's
  std::vector<Vector> log_;    // what the server has applied
  Model server_;
  Model replica_;
};

}  // namespace

TEST(delay_order_and_divergence_hold_from_batch_to_batch) {
  Random random;
  for (int history = 0; history < 300; ++history) {
    History played(&random);
    for (int batch = 0; batch < 12; ++batch) played.PlayBatch();
  }
}
