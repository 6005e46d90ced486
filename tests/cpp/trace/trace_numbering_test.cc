#include "trace/trace_numbering.h"

#include <algorithm>

#include "trace/trace_golden.h"

using namespace mercury;
namespace {

using testing::GoldenTrace;
using testing::Lines;
using testing::ReadGolden;

std::vector<TraceRecord> Numbered(const TraceIdentity& identity,
                                  const std::vector<TraceEvent>& events) {
  TraceNumbering numbering(identity);
  std::vector<TraceRecord> records;
  for (const TraceEvent& event : events) numbering.Add(event, &records);
  numbering.Finish(&records);
  return records;
}

// Without the ids: the order in a file is free.
std::vector<std::string> Sorted(std::vector<std::string> lines) {
  for (std::string& line : lines) line.erase(0, line.find(' ') + 1);
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(messages_become_the_records_of_the_golden_files) {
  for (const char* name : {"zmq/trace_worker_0", "zmq/trace_worker_1", "zmq/trace_server_0"}) {
    const GoldenTrace golden = ReadGolden(name);
    CHECK_TRUE(golden.records.size() > 80);
    const auto lines = Lines(Numbered(golden.identity, golden.events));
    REQUIRE_EQ(lines.size(), golden.records.size());
    for (size_t i = 0; i < lines.size(); ++i) REQUIRE_EQ(lines[i], golden.records[i]);
  }
}

TEST(packets_become_the_records_of_the_golden_files) {
  for (const char* name :
       {"mercury/trace_worker_0", "mercury/trace_worker_1", "mercury/trace_server_0"}) {
    const GoldenTrace golden = ReadGolden(name);
    const auto lines = Sorted(Lines(Numbered(golden.identity, golden.events)));
    const auto wanted = Sorted(golden.records);
    REQUIRE_EQ(lines.size(), wanted.size());
    for (size_t i = 0; i < lines.size(); ++i) REQUIRE_EQ(lines[i], wanted[i]);
  }
}

struct Node {
  explicit Node(TraceIdentity identity) : numbering(identity), me(identity) {}
  // The op_ids, dep_types and id_deps of the records that this event completes.
  std::string See(uint8_t stage, int32_t number, uint32_t key = 0, uint32_t peer = 0,
                  uint16_t parts = 1, int64_t length = 10, bool initial = false,
                  bool ahead = false) {
    TraceEvent event;
    event.time_us = ++now;
    event.operation = stage;
    event.number = number;
    event.key = key;
    event.parts = parts;
    event.length = length;
    event.initial = initial;
    event.ahead = ahead;
    event.node =
        TraceNode(me.role == TraceRole::kWorker ? TraceRole::kServer : TraceRole::kWorker, peer);
    std::vector<TraceRecord> records;
    numbering.Add(event, &records);
    std::string text;
    for (const TraceRecord& record : records) {
      std::string line;
      AppendTraceRecord(0, record, &line);
      line.pop_back();
      text += (text.empty() ? "" : ", ") + line.substr(line.find("OP:= ") + 5);
      lengths.push_back(record.length);
      times.push_back(record.time);
    }
    return text;
  }
  TraceNumbering numbering;
  TraceIdentity me;
  int64_t now = 0;
  std::vector<int64_t> lengths, times;
};

TraceIdentity Worker(uint32_t rank, uint32_t servers = 1) {
  TraceIdentity identity;
  identity.rank = rank;
  identity.workers = 2;
  identity.servers = servers;
  return identity;
}

TraceIdentity Server() {
  TraceIdentity identity = Worker(0);
  identity.role = TraceRole::kServer;
  return identity;
}

TEST(a_share_in_several_messages_is_one_record) {
  Node worker(Worker(1));
  CHECK_EQ(worker.See(kTracePush, 1, 0, 0, 3), "");
  CHECK_EQ(worker.See(kTracePush, 1, 0, 0, 3), "");
  CHECK_EQ(worker.See(kTracePush, 1, 0, 0, 3), "Push_Send_Worker 0-2-s0 0 0 0 1 -1");
  CHECK_EQ(worker.See(kTraceConfirm, 1, 0, 0, 3), "");
  CHECK_EQ(worker.See(kTraceConfirm, 1, 0, 0, 3), "");
  CHECK_EQ(worker.See(kTraceConfirm, 1, 0, 0, 3), "Push_Recv_Worker 0-3-s0 1 5 0 6 0-2-s0");
  CHECK_EQ(worker.lengths.at(0), 30);  // sent: when the first was
  CHECK_EQ(worker.times.at(0), 1);
  CHECK_EQ(worker.lengths.at(1), 30);  // received: when the last was
  CHECK_EQ(worker.times.at(1), 6);
}

TEST(a_server_answers_some_of_a_share_before_it_has_all) {
  Node server(Server());
  for (int message = 0; message < 2; ++message) {
    CHECK_EQ(server.See(kTracePush, 1, 0, 0, 3), "");
    CHECK_EQ(server.See(kTraceConfirm, 1, 0, 0, 3), "");
  }
  // Each has the time of the last: no confirmation before what it confirms.
  CHECK_EQ(server.See(kTracePush, 1, 0, 0, 3), "Push_Recv_Server 0-2-w0 0 0 0 5 -1");
  CHECK_EQ(server.See(kTraceConfirm, 1, 0, 0, 3), "Push_Send_Server 0-3-w0 1 1 0 6 (2-w0.2-w1.)");
}

TEST(a_request_that_goes_right_behind_its_push_depends_on_it) {
  const auto ask = [](Node* node, int32_t number) {
    return node->See(kTraceRequest, number, 0, 0, 1, 10, false, true);
  };
  Node worker(Worker(1));
  CHECK_EQ(worker.See(kTracePush, 1), "Push_Send_Worker 0-2-s0 0 0 0 1 -1");
  CHECK_EQ(ask(&worker, 2), "Pull_Send_Worker 0-4-s0 2 1 0 2 0-2-s0");
  CHECK_EQ(worker.See(kTraceConfirm, 1), "Push_Recv_Worker 0-3-s0 1 2 0 3 0-2-s0");
  CHECK_EQ(worker.See(kTraceAnswer, 2), "Pull_Recv_Worker 0-5-s0 3 2 0 4 0-4-s0");
  CHECK_EQ(worker.See(kTracePush, 3), "Push_Send_Worker 0-6-s0 4 1 0 5 (5-s0.)");
  // On a server it does not matter whether the confirmation has left by then.
  Node server(Server());
  server.See(kTracePush, 1);
  CHECK_EQ(server.See(kTraceConfirm, 1), "Push_Send_Server 0-3-w0 1 1 0 2 (2-w0.2-w1.)");
  CHECK_EQ(ask(&server, 2), "Pull_Recv_Server 0-4-w0 2 2 0 3 0-2-w0");
}

TEST(a_share_in_several_lanes_is_one_record) {
  TraceIdentity me = Worker(1);
  me.mercury = true;
  Node worker(me);
  CHECK_EQ(worker.See(kTracePush, 5, 0, 0, 2, 0), "");
  CHECK_EQ(worker.See(kTraceConfirm, 5, 0, 0, 2, 100), "");
  CHECK_EQ(worker.See(kTracePush, 5, 0, 0, 2, 0), "");
  CHECK_EQ(worker.See(kTraceRequest, 6, 0, 0, 2, 0), "");
  CHECK_EQ(worker.See(kTraceConfirm, 5, 0, 0, 2, 60),
           "Push_Send_Worker 0-2-s0 0 0 0 1 -1, Push_Recv_Worker 0-3-s0 1 4 0 5 0-2-s0");
  CHECK_EQ(worker.See(kTraceRequest, 6, 0, 0, 2, 0), "Pull_Send_Worker 0-4-s0 2 3 0 4 0-2-s0");
  CHECK_EQ(worker.See(kTraceAnswer, 6, 0, 0, 2, 100), "");
  CHECK_EQ(worker.See(kTraceAnswer, 6, 0, 0, 2, 60), "Pull_Recv_Worker 0-5-s0 3 4 0 8 0-4-s0");
  CHECK_EQ(worker.lengths.at(0), 160);
  CHECK_EQ(worker.lengths.at(1), 0);
  CHECK_EQ(worker.lengths.at(2), 0);
  CHECK_EQ(worker.lengths.at(3), 160);
}

TEST(the_first_packet_of_all_lanes_is_a_record_of_its_push) {
  TraceIdentity me = Worker(1);
  me.mercury = true;
  Node worker(me);
  const auto packet = static_cast<uint8_t>(kTraceFirstPacket);
  CHECK_EQ(worker.See(kTracePush, 5, 0, 0, 2, 0), "");
  CHECK_EQ(worker.See(kTracePush, 5, 0, 0, 2, 0), "");
  CHECK_EQ(worker.See(packet, 5, 0, 0, 2), "First_Packet 0-2-s0 1 2 0 3 0-2-s0");
  CHECK_EQ(worker.See(packet, 5, 0, 0, 2), "");
  CHECK_EQ(worker.lengths.at(0), 0);
  worker.See(kTraceConfirm, 5, 0, 0, 2);
  worker.See(kTraceConfirm, 5, 0, 0, 2);
  // Of a push that the ring had no room for, there is nothing to depend on.
  CHECK_EQ(worker.See(packet, 7, 0, 0, 2), "");
  TraceRecord record;
  record.operation = packet;
  record.op_num = 10;
  CHECK_EQ(worker.numbering.IterationOf(record), 2);
}

TEST(pushes_without_pulls_and_pulls_without_pushes) {
  Node worker(Worker(1));
  CHECK_EQ(worker.See(kTracePush, 1), "Push_Send_Worker 0-2-s0 0 0 0 1 -1");
  CHECK_EQ(worker.See(kTraceConfirm, 1), "Push_Recv_Worker 0-3-s0 1 1 0 2 0-2-s0");
  // The set before has no answer: nothing to wait for.
  CHECK_EQ(worker.See(kTracePush, 2), "Push_Send_Worker 0-6-s0 0 0 0 3 -1");
  CHECK_EQ(worker.See(kTraceConfirm, 2), "Push_Recv_Worker 0-7-s0 1 1 0 4 0-6-s0");
  CHECK_EQ(worker.See(kTraceRequest, 3), "Pull_Send_Worker 0-8-s0 2 1 0 5 0-7-s0");
  CHECK_EQ(worker.See(kTraceAnswer, 3), "Pull_Recv_Worker 0-9-s0 3 1 0 6 0-8-s0");
  // A pull that follows a pull begins a set, and there is no push that it could depend on.
  CHECK_EQ(worker.See(kTraceRequest, 4), "Pull_Send_Worker 0-12-s0 0 0 0 7 -1");
  CHECK_EQ(worker.See(kTraceAnswer, 4), "Pull_Recv_Worker 0-13-s0 3 1 0 8 0-12-s0");
  CHECK_EQ(worker.See(kTracePush, 5), "Push_Send_Worker 0-14-s0 4 1 0 9 (13-s0.)");
}

TEST(the_first_pull_is_of_the_initial_value) {
  Node worker(Worker(0));
  CHECK_EQ(worker.See(kTracePush, 1, 0, 0, 1, 10, true), "Push_Send_Worker 0-0-s0 0 0 0 1 -1");
  CHECK_EQ(worker.See(kTraceConfirm, 1, 0, 0, 1, 10, true),
           "Push_Recv_Worker 0-1-s0 1 1 0 2 0-0-s0");
  CHECK_EQ(worker.See(kTraceRequest, 2), "Pull_Send_Worker 0-2-s0 2 1 0 3 0-1-s0");
  CHECK_EQ(worker.See(kTraceAnswer, 2), "Pull_Recv_Worker 0-3-s0 3 1 0 4 0-2-s0");
  CHECK_EQ(worker.See(kTraceRequest, 3), "Pull_Send_Worker 0-6-s0 0 0 0 5 -1");
  // Another key, which is pushed before it was ever pulled.
  CHECK_EQ(worker.See(kTracePush, 4, 1), "Push_Send_Worker 1-4-s0 4 2 0 6 (3-s0.)");
  worker.See(kTraceConfirm, 4, 1);
  CHECK_EQ(worker.See(kTraceRequest, 5, 1), "Pull_Send_Worker 1-6-s0 2 1 0 8 1-5-s0");
}

TEST(a_key_that_a_server_sees_first_in_training_waits_for_nothing) {
  Node server(Server());
  CHECK_EQ(server.See(kTracePush, 1, 0, 0), "Push_Recv_Server 0-2-w0 0 0 0 1 -1");
  CHECK_EQ(server.See(kTracePush, 1, 0, 1), "Push_Recv_Server 0-2-w1 0 0 0 2 -1");
  CHECK_EQ(server.See(kTraceConfirm, 1, 0, 0), "Push_Send_Server 0-3-w0 1 1 0 3 (2-w0.2-w1.)");
}

TEST(lost_events_do_not_shift_the_numbers_after_them) {
  Node worker(Worker(1));
  for (int32_t round = 0; round < 3; ++round) {
    const std::string first = std::to_string(2 + 4 * round);
    // In the second round the ring had no room for the push.
    if (round != 1) worker.See(kTracePush, 2 * round + 1);
    const std::string confirmed = worker.See(kTraceConfirm, 2 * round + 1);
    CHECK_EQ(confirmed.substr(0, 23),
             "Push_Recv_Worker 0-" + std::to_string(3 + 4 * round) + (round == 2 ? "-s" : "-s0"));
    worker.See(kTraceRequest, 2 * round + 2);
    worker.See(kTraceAnswer, 2 * round + 2);
    CHECK_EQ(worker.numbering.latest_iteration(), round);
  }
}

TEST(what_is_under_way_at_the_end_is_not_forgotten) {
  TraceIdentity me = Worker(1);
  me.mercury = true;
  TraceEvent event;
  event.node = TraceNode(TraceRole::kServer, 0);
  const auto records = Numbered(me, {event});
  REQUIRE_EQ(records.size(), 1U);
  CHECK_EQ(records[0].op_num, 2);
  CHECK_EQ(records[0].length, 0);
}

TEST(traffic_with_the_scheduler_is_counted_by_operation) {
  TraceNumbering numbering(Worker(1));
  std::vector<TraceRecord> records;
  TraceEvent event;
  event.node = TraceNode(TraceRole::kScheduler, 0);
  for (const int operation : {10, 11, 14, 15, 14, 8, 9}) {
    event.operation = static_cast<uint8_t>(operation);
    event.time_us = 5000000 + operation;
    event.length = 60;
    event.node =
        operation < 10 ? TraceNode(TraceRole::kServer, 0) : TraceNode(TraceRole::kScheduler, 0);
    numbering.Add(event, &records);
  }
  const auto lines = Lines(records);
  CHECK_EQ(lines.at(0), "0 1 3 60 0 OP:= Register_Send 0-0-h0 0 0 5 10 -1");
  CHECK_EQ(lines.at(1), "1 3 1 60 0 OP:= Register_Recv 0-0-h0 0 0 5 11 -1");
  CHECK_EQ(lines.at(4), "4 1 3 60 0 OP:= Heartbeat_Send 0-1-h0 0 0 5 14 -1");
  CHECK_EQ(lines.at(5), "5 1 2 60 0 OP:= SendCom_TO_Servers");
  CHECK_EQ(lines.at(6), "6 2 1 60 0 OP:= SendCom_To_Servers");  // its reply
  CHECK_EQ(numbering.IterationOf(records[0]), -1);
}

}  // namespace
