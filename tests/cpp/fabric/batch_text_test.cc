#include "fabric/batch_text.h"

#include <fstream>
#include <sstream>

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

namespace {

std::string Example() {
  std::ifstream file(MERCURY_GOLDEN_DIR "/fabric/example_batch.json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The example with `from`, which must be in it, replaced.
std::string With(const std::string& from, const std::string& to) {
  std::string text = Example();
  const size_t at = text.find(from);
  if (at == std::string::npos) return "there is no " + from;
  return text.replace(at, from.size(), to);
}

std::string Problem(const std::string& text) {
  Batch batch;
  const mercury::Status status = ReadBatch(text, &batch);
  CHECK_EQ(status.text().find('\n'), std::string::npos);
  return status.text();
}

}  // namespace

TEST(the_example_is_read) {
  Batch batch;
  REQUIRE_OK(ReadBatch(Example(), &batch));
  CHECK_EQ(batch.updates.size(), 6);
  CHECK_EQ(batch.updates[4].id, "g5");
  CHECK_EQ(batch.updates[4].worker.name, "w5");
  CHECK_EQ(batch.updates[4].version, 13);
  CHECK_EQ(batch.aggregators[0].host, batch.updates[5].worker.host);
  REQUIRE_TRUE(batch.replica.has_value());
  CHECK_EQ(batch.replica->pending.size(), 1);
  CHECK_EQ(batch.replica->divergence_bound, 4);
  CHECK_FALSE(batch.synchronous);
}

TEST(unknown_fields_are_ignored) {
  CHECK_EQ(Problem(With("\"mode\"", "\"colour\": {\"deep\": [1]}, \"mode\"")), "");
}

TEST(errors_name_the_field) {
  const struct {
    const char* from;
    const char* to;
    const char* problem;
  } kCases[] = {
      {"\"mode\": \"async\"", "\"mode\": \"fast\"", "mode: \"fast\" is neither"},
      {"\"mode\": \"async\"", "\"mode\": \"sync\"", "replica: it must be null"},
      {"\"delay_bound\": 8", "\"delay_bound\": -8", "delay_bound: -8 is below 0"},
      {"\"delay_bound\": 8", "\"delay_bound\": 8.5", "delay_bound: 8.5 is not an integer"},
      {"\"delay_bound\": 8", "\"delay_bound\": true", "delay_bound: it is not a number"},
      {"\"delay_bound\": 8,", "", "delay_bound: it is missing"},
      {"\"momentum\": 0.5,\n \"updates\"", "\"momentum\": 1,\n \"updates\"",
       "momentum: 1 is not below 1"},
      {"\"id\": \"g3\"", "\"id\": \"g2\"", "updates[2].id: \"g2\" is the id of another update"},
      {"\"id\": \"p1\"", "\"id\": \"g2\"", "replica.pending[0].id: \"g2\" is the id of another"},
      {"\"id\": \"g3\"", "\"id\": 3", "updates[2].id: it is not a string"},
      {"\"worker\": \"w3\"", "\"worker\": \"w9\"", "updates[2].worker: there is no node \"w9\""},
      {"\"w1\": \"h1\"", "\"w1\": \"h9\"", "placement[\"w1\"]: there is no host \"h9\""},
      {"\"server\": \"server\", \"aggr", "\"server\": \"x\", \"aggr", "server: there is no node"},
      {"[\"a1\", \"a2\"]", "[\"a1\", \"a1\"]", "aggregators[1]: \"a1\" is named twice"},
      {"[\"r1\"]", "[\"a1\"]", "replica.aggregators[0]: \"a1\" is named twice"},
      {"\"divergence_bound\": 4", "\"divergence_bound\": -1", "replica.divergence_bound: -1"},
      {"\"version\": 13", "\"version\": 21", "updates[4].version: 21 is above"},
      {"\"bytes\": 12500000, \"available_s\"", "\"bytes\": 0, \"available_s\"",
       "updates[0].bytes: 0 is below 1"},
      {"\"available_s\": 0", "\"available_s\": 1e999", "updates[0].available_s: it is not JSON"},
      {"\"available_s\": 0", "\"available_s\": 1e101",
       "updates[0].available_s: 1e+101 is above 1e+100"},
      {"\"h1\": {\"in\": [[0, 1e8]]", "\"h1\": {\"in\": []", "hosts[\"h1\"].in: it has no entry"},
      {"\"h1\": {\"in\": [[0, 1e8]]", "\"h1\": {\"in\": [[1, 1e8]]",
       "hosts[\"h1\"].in[0]: the first time is not 0"},
      {"[3, 0], [4, 1e8]", "[4, 0], [4, 1e8]", "hosts[\"hR\"].in[2]: its time is not later"},
      {"[3, 0], [4, 1e8]", "[3, 0]", "hosts[\"hR\"].in: the last rate is below"},
      {"[3, 0], [4, 1e8]", "[3, -1], [4, 1e8]", "hosts[\"hR\"].in[1][1]: -1 is below 0"},
      {"[3, 0], [4, 1e8]", "[3], [4, 1e8]", "hosts[\"hR\"].in[1]: it is not a pair"},
      {"\"server\": \"server\", \"aggr", "\"servers\": [\"server\"], \"aggr",
       "aggregators: it mus"},
  };
  for (const auto& test : kCases) {
    const std::string problem = Problem(With(test.from, test.to));
    CHECK_EQ(problem.substr(0, std::string(test.problem).size()), test.problem);
  }
  CHECK_EQ(Problem("[]"), "the batch: it is not an object");
}

TEST(several_servers_take_parts) {
  const std::string head =
      R"({"hosts": {"a": {"in": [[0, 9]], "out": [[0, 9]]}, "b": {"in": [[0, 9]], "out": [[0, 9]]}},
          "placement": {"w": "a", "s1": "a", "s2": "b"}, "servers": ["s1", "s2"],
          "aggregators": [], "replica": null, "mode": "async", "delay_bound": 1, "version": 3,
          "momentum": 0, "updates": [{"id": "g", "worker": "w", "available_s": 0, "version": 3,
          "norm": 1, "parts": )";
  Batch batch;
  REQUIRE_OK(ReadBatch(head + "[0, 5]}]}", &batch));
  CHECK_TRUE(batch.updates[0].bytes == (std::vector<int64_t>{0, 5}));
  CHECK_EQ(Problem(head + "[5]}]}"), "updates[0].parts: it has 1 entries for 2 servers");
  CHECK_EQ(Problem(head + "[0, 0]}]}"), "updates[0].parts: all parts are empty");
  CHECK_EQ(Problem(head + "[1, -5]}]}"), "updates[0].parts[1]: -5 is below 0");
}
