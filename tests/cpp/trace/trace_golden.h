// The trace files under tests/golden/trace, taken apart into what a node saw: the events that must
// come out as these very files again.
//
// Thread-safety: none. Ownership: values.
#pragma once

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "harness.h"
#include "trace/trace_text.h"

namespace mercury::testing {

struct GoldenTrace {
  TraceIdentity identity;
  std::string header;                // all up to the columns' names
  std::vector<std::string> records;  // lines
  std::vector<std::string> notes;    // without "# "
  std::vector<TraceEvent> events;
};

inline TraceEvent GoldenEvent(const std::string& line, const TraceIdentity& identity,
                              std::map<std::string, int64_t>* push_bytes) {
  std::istringstream words(line);
  std::string operation, op_id, skipped;
  int64_t id, src, dst, number, seconds = 0, microseconds = 0;
  TraceEvent event;
  words >> id >> src >> dst >> event.length >> number >> skipped >> operation;
  if (operation.rfind("SendCom_", 0) == 0) {
    const bool command = operation == "SendCom_TO_Servers";
    event.operation = command ? kTraceCommand : kTraceReply;
    const auto server = static_cast<uint32_t>(command ? dst : src) - identity.workers;
    event.node = TraceNode(TraceRole::kServer, server);
    return event;
  }
  words >> op_id >> skipped >> skipped >> seconds >> microseconds;
  event.time_us = seconds * 1000000 + microseconds;
  event.key = static_cast<uint32_t>(std::stoul(op_id));
  const size_t place = op_id.rfind('-');
  const auto rank = static_cast<uint32_t>(std::stoul(op_id.substr(place + 2)));
  const std::string letters = "wsh";
  event.node = TraceNode(static_cast<TraceRole>(letters.find(op_id[place + 1])), rank);
  const std::vector<std::string> stages = {"Push_Send", "Push_Recv", "Pull_Send", "Pull_Recv"};
  const std::vector<std::string> server_stages = {"Push_Recv", "Push_Send", "Pull_Recv",
                                                  "Pull_Send"};
  for (uint8_t stage = 0; stage < 4; ++stage) {
    const auto& names = identity.role == TraceRole::kServer ? server_stages : stages;
    if (operation.rfind(names[stage], 0) == 0) event.operation = stage;
  }
  if (operation == "First_Packet") event.operation = kTraceFirstPacket;
  const int number_of_set = std::stoi(op_id.substr(op_id.find('-') + 1));
  event.initial = event.operation < kTraceRequest && number_of_set < identity.first_number();
  event.number = event.initial ? 0 : static_cast<int32_t>(number);
  if (identity.mercury && event.operation <= kTraceConfirm) {
    int64_t& bytes = (*push_bytes)[op_id.substr(0, op_id.find('-')) + op_id.substr(place)];
    if (event.operation == kTracePush) bytes = std::exchange(event.length, 0);
    if (event.operation == kTraceConfirm) event.length = bytes;
  }
  return event;
}

// `name`: "zmq/trace_worker_0".
inline GoldenTrace ReadGolden(const std::string& name) {
  GoldenTrace golden;
  std::ifstream file(MERCURY_GOLDEN_DIR "/trace/" + name + ".txt");
  REQUIRE_TRUE(file.good());
  TraceIdentity& identity = golden.identity;
  identity.mercury = name.rfind("mercury", 0) == 0;
  identity.workers = 2;
  identity.servers = 1;
  identity.run = identity.mercury ? "golden-mercury" : "golden-zmq";
  identity.rank = static_cast<uint32_t>(name.back() - '0');
  identity.role =
      name.find("server") != std::string::npos ? TraceRole::kServer : TraceRole::kWorker;
  identity.host = TraceRoleName(identity.role) + std::to_string(identity.rank);
  std::map<std::string, int64_t> push_bytes;
  bool body = false;
  for (std::string line; std::getline(file, line);) {
    if (!body) {
      golden.header += line + "\n";
      body = line.rfind("id src", 0) == 0;
    } else if (line.rfind("# ", 0) == 0) {
      golden.notes.push_back(line.substr(2));
    } else {
      golden.records.push_back(line);
      golden.events.push_back(GoldenEvent(line, identity, &push_bytes));
    }
  }
  return golden;
}

inline std::vector<std::string> Lines(const std::vector<TraceRecord>& records) {
  std::vector<std::string> lines;
  for (const TraceRecord& record : records) {
    std::string line;
    AppendTraceRecord(static_cast<int64_t>(lines.size()), record, &line);
    line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

}  // namespace mercury::testing
