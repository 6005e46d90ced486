#include "fabric/plan_text.h"

#include "fabric/json.h"
#include "fabric/planner.h"
#include "fabric/random_batch.h"

using namespace mercury::testing;

TEST(a_plan_s_text_has_all_of_it) {
  Random random;
  for (int round = 0; round < 200; ++round) {
    Shape shape;
    shape.synchronous = random.OneIn(3);
    shape.replica = !shape.synchronous && random.OneIn(2);
    Batch batch = RandomBatch(&random, shape);
    batch.by_packets = random.OneIn(2);
    if (shape.replica) batch.replica->relays = batch.by_packets;
    batch.updates[0].id = "quoted \"\xc3\xa9\"\n";
    const Plan plan = PlanBatch(batch, {});
    Json text;
    REQUIRE_OK(ReadJson(PlanText(batch, plan), &text));
    CHECK_EQ(text.Find("order")->items.size(), plan.order.size());
    for (size_t i = 0; i < plan.order.size(); ++i) {
      CHECK_EQ(text.Find("order")->items[i].text, batch.updates[plan.order[i]].id);
    }
    CHECK_EQ(text.Find("dropped")->items.size(), plan.dropped.size());
    REQUIRE_EQ(text.Find("transfers")->items.size(), plan.transfers.size());
    for (size_t i = 0; i < plan.transfers.size(); ++i) {
      const Transfer& transfer = plan.transfers[i];
      const Json& written = text.Find("transfers")->items[i];
      const bool to_replica = transfer.relaying == Relaying::kTo;
      CHECK_EQ(written.Find("to")->text == "replica", to_replica);
      CHECK_EQ(written.Find("from")->text == "replica", transfer.relaying == Relaying::kFrom);
      const bool ends = transfer.to_aggregator == kDirect && transfer.next == kNoShipment;
      CHECK_EQ(written.Find("to")->text == "server", ends && !to_replica);
      CHECK_EQ(written.Find("bytes")->number, transfer.bytes);
      CHECK_EQ(written.Find("not_before_s") != nullptr, transfer.not_before_s >= 0);
      REQUIRE_EQ(written.Find("pieces")->items.size(), transfer.pieces.size());
      for (size_t p = 0; p < transfer.pieces.size(); ++p) {
        const std::vector<Json>& piece = written.Find("pieces")->items[p].items;
        CHECK_EQ(piece[0].number, transfer.pieces[p].start_s);
        CHECK_EQ(piece[1].number, transfer.pieces[p].end_s);
        CHECK_EQ(piece[2].number, transfer.pieces[p].bit_per_s);
      }
    }
    REQUIRE_EQ(text.Find("commits")->items.size(), plan.commits.size());
    if (!plan.commits.empty()) {
      const auto applied = static_cast<int64_t>(shape.synchronous ? 1 : plan.order.size());
      CHECK_EQ(text.Find("commits")->items.back().Find("version")->number, 100 + applied);
    }
    CHECK_EQ(text.Find("objective_s")->number, plan.objective_s);
    const Json* replica = text.Find("replica");
    CHECK_EQ(replica->type == Json::Type::kNull, !shape.replica);
    if (shape.replica) {
      CHECK_EQ(replica->Find("frozen")->items.size(), plan.replica->frozen);
      CHECK_EQ(replica->Find("frozen")->items.size() + replica->Find("punted")->items.size(),
               batch.replica->pending.size() + plan.order.size());
    }
  }
}
