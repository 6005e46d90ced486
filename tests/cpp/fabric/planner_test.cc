#include "fabric/planner.h"

#include <fstream>
#include <sstream>

#include "fabric/batch_text.h"
#include "fabric/plan_text.h"
#include "fabric/random_batch.h"

using namespace mercury::testing;

namespace {

std::string Golden(const std::string& name) {
  std::ifstream file(MERCURY_GOLDEN_DIR "/fabric/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

size_t HostOfSender(const Transfer& transfer, const std::vector<Update>& log,
                    const std::vector<Site>& aggregators) {
  return transfer.from_aggregator == kDirect
             ? log[transfer.shipments[0]].worker.host
             : aggregators[static_cast<size_t>(transfer.from_aggregator)].host;
}

// Replays transfers in their order: the same pieces, and nobody leaves before it is ready.
void CheckTransfers(const std::vector<Transfer>& transfers, const std::vector<Update>& log,
                    const std::vector<Site>& servers, const std::vector<Site>& aggregators,
                    Network* network) {
  std::vector<double> gathered(aggregators.size(), 0);
  for (const Transfer& transfer : transfers) {
    const size_t from = HostOfSender(transfer, log, aggregators);
    const size_t to = transfer.to_aggregator == kDirect
                          ? servers[transfer.server].host
                          : aggregators[static_cast<size_t>(transfer.to_aggregator)].host;
    double ready_s = transfer.from_aggregator == kDirect
                         ? log[transfer.shipments[0]].available_s
                         : gathered[static_cast<size_t>(transfer.from_aggregator)];
    ready_s = std::max(ready_s, transfer.not_before_s);
    if (transfer.not_before_s >= 0) {
      network->Occupy(from, to, transfer.pieces);
      for (const RateSpan& piece : transfer.pieces) CHECK_TRUE(piece.start_s >= ready_s);
    } else {
      std::vector<RateSpan> pieces;
      const double bits = Bits(transfer.bytes);
      const double end_s = network->Reserve(from, to, ready_s, bits, &pieces);
      CHECK_EQ(end_s, transfer.end_s);
      REQUIRE_TRUE(pieces.size() == transfer.pieces.size());
      for (size_t i = 0; i < pieces.size(); ++i) {
        CHECK_EQ(pieces[i].start_s, transfer.pieces[i].start_s);
        CHECK_EQ(pieces[i].end_s, transfer.pieces[i].end_s);
        CHECK_EQ(pieces[i].bit_per_s, transfer.pieces[i].bit_per_s);
      }
    }
    if (transfer.to_aggregator != kDirect) {
      double& last_s = gathered[static_cast<size_t>(transfer.to_aggregator)];
      last_s = std::max(last_s, transfer.end_s);
    }
  }
}

void CheckPlan(const Batch& batch, const Plan& plan) {
  std::vector<int> seen(batch.updates.size(), 0);
  for (size_t i = 0; i < plan.order.size(); ++i) {
    ++seen[plan.order[i]];
    const Update& update = batch.updates[plan.order[i]];
    // The delay as applied.
    const int64_t produced = batch.version + static_cast<int64_t>(i) + 1;
    if (!batch.synchronous) CHECK_TRUE(produced - update.version <= batch.delay_bound);
  }
  for (const Drop& drop : plan.dropped) ++seen[drop.shipment];
  for (const int times : seen) CHECK_EQ(times, 1);
  std::vector<size_t> applied;
  double last_s = 0;
  double sum_s = 0;
  for (const Commit& commit : plan.commits) {
    CHECK_TRUE(commit.time_s >= last_s);
    last_s = commit.time_s;
    sum_s += last_s * static_cast<double>(commit.shipments.size());
    applied.insert(applied.end(), commit.shipments.begin(), commit.shipments.end());
  }
  CHECK_TRUE(applied == plan.order);
  const double mean_s = applied.empty() ? 0 : sum_s / static_cast<double>(applied.size());
  CHECK_TRUE(std::abs(plan.objective_s - (batch.synchronous ? last_s : mean_s)) < 1e-9);
  Network network = batch.network;
  CheckTransfers(plan.transfers, batch.updates, batch.servers, batch.aggregators, &network);
  CHECK_EQ(plan.replica.has_value(), batch.replica.has_value());
  if (!plan.replica || plan.order.empty()) return;
  CHECK_EQ(plan.replica->divergence_at_commits.size(), plan.commits.size());
  CHECK_TRUE(plan.replica->divergence_at_commits.back() <= batch.replica->divergence_bound);
}

}  // namespace

TEST(the_format_s_example_is_planned_as_it_says) {
  Batch batch;
  REQUIRE_OK(ReadBatch(Golden("example_batch.json"), &batch));
  const Plan plan = PlanBatch(batch, {});
  CHECK_EQ(PlanText(batch, plan), Golden("example_plan.json"));
  CheckPlan(batch, plan);
  batch.replica->divergence_bound = 6;
  const Plan loose = PlanBatch(batch, {});
  CHECK_EQ(loose.objective_s, 3);
  CHECK_EQ(loose.replica->frozen, 3);
  CHECK_TRUE(loose.replica->divergence_at_commits == (std::vector<double>{1.75, 1.875, 5.890625}));
}

TEST(plans_keep_their_promises) {
  Random random;
  for (int round = 0; round < 2000; ++round) {
    Shape shape;
    shape.updates_most = 9;
    shape.synchronous = random.OneIn(3);
    shape.replica = !shape.synchronous && random.OneIn(2);
    const Batch batch = RandomBatch(&random, shape);
    const Plan plain = PlanBatch(batch, {});
    CheckPlan(batch, plain);
    if (!random.OneIn(20)) continue;
    const Plan searched = PlanBatch(batch, {true});
    CheckPlan(batch, searched);
    CHECK_EQ(searched.order.size(), plain.order.size());
    CHECK_TRUE(searched.objective_s <= plain.objective_s);
  }
}

TEST(all_parts_of_an_update_arrive_or_none) {
  Random random;
  for (int round = 0; round < 300; ++round) {
    Batch batch = RandomBatch(&random, {});
    batch.aggregators.clear();
    batch.servers.push_back({"second", 1});
    for (Update& update : batch.updates) {
      update.bytes.push_back(random.OneIn(3) ? 0 : random.Between(1, 50'000'000));
    }
    const Plan plan = PlanBatch(batch, {});
    CheckPlan(batch, plan);
    CHECK_EQ(plan.commits.size(), plan.order.size());
    size_t parts = 0;
    for (const size_t g : plan.order) parts += batch.updates[g].bytes[1] == 0 ? 1 : 2;
    CHECK_EQ(plan.transfers.size(), parts);
  }
}

TEST(an_empty_batch_has_an_empty_plan) {
  Batch batch;
  batch.network = Network({Steady(1, 1)});
  batch.servers = {{"server", 0}};
  const Plan plan = PlanBatch(batch, {});
  CHECK_EQ(plan.objective_s, 0);
  CHECK_TRUE(plan.commits.empty());
}
