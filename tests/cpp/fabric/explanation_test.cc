#include "fabric/explanation.h"

#include <fstream>
#include <sstream>

#include "fabric/batch_text.h"
#include "fabric/planner.h"
#include "fabric/random_batch.h"

using namespace mercury::testing;

namespace {

bool Says(const std::string& text, const std::string& what) {
  if (text.find(what) != std::string::npos) return true;
  std::printf("not in:\n%s\n", text.c_str());
  return false;
}

}  // namespace

TEST(the_example_in_words) {
  std::ifstream file(MERCURY_GOLDEN_DIR "/fabric/example_batch.json");
  std::stringstream json;
  json << file.rdbuf();
  Batch batch;
  REQUIRE_OK(ReadBatch(json.str(), &batch));
  const std::string text = Explain(batch, PlanBatch(batch, {}));
  CHECK_TRUE(Says(text, "5 updates applied, 1 dropped"));
  CHECK_TRUE(Says(text,
                  "2 updates go straight and 3 by way of aggregators. With all straight it "
                  "would take 5 s, or 3 s in the mean, if the replica were not waited for."));
  CHECK_TRUE(
      Says(text, "1. g5: straight to server, by 1 s; applied at 1 s. It has to be the first."));
  CHECK_TRUE(Says(text, "applied at 2 s. It has to be among the first 2."));
  CHECK_TRUE(
      Says(text,
           "5. g6: to a1, on its own host, by 0 s (all ahead of it is at the server by 2 s), "
           "and on with its group (g3, g4, g6), by 8 s; held until 6 s for the replica; applied at "
           "8 s."));
  CHECK_TRUE(Says(text,
                  "Dropped: g1: it was computed from version 12, and the next one is 21: more "
                  "than 8 versions later."));
  CHECK_TRUE(Says(text, "The replica gets p1, g5, g2, g3, g4, g6 with this batch; nothing can"));
}

TEST(who_is_overtaken_is_told_by_whom) {
  Batch batch;
  batch.network = Network({Steady(100e6, 100e6), Steady(100e6, 10e6), Steady(100e6, 90e6)});
  batch.servers = {{"server", 0}};
  batch.delay_bound = 5;
  batch.version = 4;
  batch.updates = {{"slow", {"w1", 1}, 0, {12'500'000}, 0, 1},
                   {"fast", {"w2", 2}, 0, {12'500'000}, 4, 1}};
  const std::string text = Explain(batch, PlanBatch(batch, {}));
  CHECK_TRUE(Says(text,
                  "Dropped: slow: it would arrive at 10 s, after fast, which is next and "
                  "arrives at 1.11111 s: the server would wait for it."));
}

TEST(every_update_has_a_line) {
  Random random;
  for (int round = 0; round < 200; ++round) {
    Shape shape;
    shape.updates_most = 9;
    shape.synchronous = random.OneIn(3);
    shape.replica = !shape.synchronous && random.OneIn(2);
    const Batch batch = RandomBatch(&random, shape);
    const std::string text = Explain(batch, PlanBatch(batch, {random.OneIn(2)}));
    for (const Update& update : batch.updates) CHECK_TRUE(Says(text, " " + update.id + ": "));
    CHECK_EQ(text.back(), '\n');
  }
}

TEST(the_last_aggregator_takes_what_is_left) {
  Batch batch;
  batch.network = Network(std::vector<HostLink>{Steady(100e6, 100e6), Steady(1e9, 1e9),
                                                Steady(1e9, 1e9), Steady(1e9, 1e9)});
  batch.servers = {{"server", 0}};
  batch.aggregators = {{"a1", 3}};
  batch.synchronous = true;
  batch.updates = {{"g1", {"w1", 1}, 0, {12'500'000}, 0, 1},
                   {"g2", {"w2", 2}, 0, {12'500'000}, 0, 1}};
  const std::string text = Explain(batch, PlanBatch(batch, {}));
  CHECK_TRUE(Says(text,
                  "1. g1: to a1, by 0.1 s (the last aggregator takes what is left), and on with "
                  "its group (g1, g2), by 1.2 s; applied at 1.2 s."));
}

TEST(a_tree_says_who_has_the_model_from_whom) {
  Batch batch;
  // 0.1 s from anybody, but the server's way out takes 1 s.
  batch.network = Network(std::vector<HostLink>{Steady(1e9, 100e6), Steady(1e9, 1e9),
                                                Steady(1e9, 1e9), Steady(1e9, 1e9)});
  batch.servers = {{"server", 0}};
  batch.aggregators = {{"a\n1", 1}};
  for (size_t host = 1; host <= 3; ++host) {
    const std::string number = std::to_string(host);
    batch.updates.push_back({"g" + number, {"w" + number, host}, 0, {12'500'000}, 0, 1});
  }
  CHECK_EQ(ExplainTree(batch),
           "3 gets answered by 1.2 s; by the server alone it would be 3 s.\n"
           "a?1: from server, by 1 s; it passes it on to w1, w2, w3.\n"
           "w1: from a?1, on its own host, by 1 s.\n"
           "w2: from a?1, by 1.1 s.\n"
           "w3: from a?1, by 1.2 s.\n");
  batch.updates.clear();
  CHECK_EQ(ExplainTree(batch), "0 gets answered by 0 s; by the server alone it would be 0 s.\n");
}

TEST(small_models_go_straight_packets_or_not) {
  Batch batch;
  batch.by_packets = true;
  batch.network = Network(std::vector<HostLink>(4, Steady(1e9, 1e9)));
  batch.servers = {{"server", 0}};
  batch.aggregators = {{"a1", 1}};
  for (size_t host = 1; host <= 3; ++host) {
    const std::string number = std::to_string(host);
    batch.updates.push_back({"g" + number, {"w" + number, host}, 0, {10'000}, 0, 1});
  }
  const std::string text = ExplainTree(batch);
  CHECK_TRUE(Says(text, "3 gets answered by 0.00024 s; by the server alone it would be 0.00024 s"));
  for (const char* w : {"w1", "w2", "w3"}) CHECK_TRUE(Says(text, w + std::string(": from server")));
  for (auto& update : batch.updates) update.bytes = {12'500'000};
  CHECK_TRUE(Says(ExplainTree(batch), "w2: from w1"));
}

TEST(what_goes_through_the_replica_is_said_to) {
  Batch batch;
  batch.by_packets = true;
  batch.network = Network(std::vector<HostLink>(5, Steady(1e8, 1e8)));
  batch.servers = {{"server", 0}};
  batch.aggregators = {{"a1", 2}};
  batch.delay_bound = 9;
  ReplicaBatch& replica = batch.replica.emplace();
  replica.node = {"copy", 1};
  replica.relays = true;
  for (size_t host = 2; host < 5; ++host) {
    const std::string number = std::to_string(host);
    batch.updates.push_back({"g" + number, {"w" + number, host}, 0, {1'000'000}, 0, 1});
  }
  const std::string text = Explain(batch, PlanBatch(batch, {}));
  CHECK_TRUE(Says(text, "3 updates in 1 chain, 0 straight."));
  CHECK_TRUE(Says(text, "and on to copy, which passes it on to server, by 0.0"));
  CHECK_TRUE(Says(text, "The replica gets g2, g3, g4 with this batch"));
  batch.updates.resize(1);
  CHECK_TRUE(
      Says(Explain(batch, PlanBatch(batch, {})), "straight to server, through copy, by 0.08"));
}
