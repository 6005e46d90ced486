#include "trace/trace_text.h"

#include <charconv>

namespace mercury {
namespace {

const char* const kOperations[] = {
    "Push_Send_Worker",   "Push_Recv_Worker",   "Pull_Send_Worker", "Pull_Recv_Worker",
    "Push_Recv_Server",   "Push_Send_Server",   "Pull_Recv_Server", "Pull_Send_Server",
    "SendCom_TO_Servers", "SendCom_To_Servers", "Register_Send",    "Register_Recv",
    "Barrier_Send",       "Barrier_Recv",       "Heartbeat_Send",   "Heartbeat_Recv",
    "Terminate_Send",     "Terminate_Recv",     "First_Packet",
};

constexpr char kCommonMeaning[] =
    "num_pp: push or pull in dispatch order, a pull one after its push; 0 set-up, -15 initial "
    "values\n"
    "op_id: key-operation_num-node; worker 0 trains from 4, other workers from 2, servers from 2; "
    "four to an iteration\n";
constexpr char kMessagesMeaning[] =
    "dependencies on a worker: Push_Send <- Push_Recv <- Pull_Send <- Pull_Recv <- (all keys) next "
    "Push_Send\n"
    "dependencies on a server: Push_Recv <- (all workers) Push_Send <- Pull_Recv <- Pull_Send <- "
    "(all workers) next Push_Recv\n";
constexpr char kPacketsMeaning[] =
    "on a worker: Push_Send handed over, First_Packet first packet sent, Push_Recv last packet "
    "sent, "
    "Pull_Send first sum received, Pull_Recv last sum received\n"
    "on a server: Push_Recv first packet received, Push_Send last packet received, Pull_Recv first "
    "sum sent, Pull_Send last sum sent\n"
    "dependencies on a worker: Push_Send <- First_Packet; Push_Send <- Push_Recv; Push_Send <- "
    "Pull_Send <- Pull_Recv <- (all keys) next Push_Send\n"
    "dependencies on a server: Push_Recv <- Push_Send; Push_Recv <- (all workers) Pull_Recv <- "
    "Pull_Send <- (all workers) next Push_Recv\n";

void Append(int64_t number, std::string* text) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
  text->append(digits, end);
}

void AppendNode(uint32_t node, std::string* text) {
  text->push_back("wsh"[static_cast<size_t>(TraceRoleOf(node))]);
  Append(TraceRankOf(node), text);
}

std::string Ids(uint32_t first, uint32_t count) {
  std::string text;
  for (uint32_t i = 0; i < count; ++i) text += " " + std::to_string(first + i);
  return text;
}

}  // namespace

const char* TraceRoleName(TraceRole role) {
  return role == TraceRole::kWorker   ? "worker"
         : role == TraceRole::kServer ? "server"
                                      : "scheduler";
}

const char* TraceModeName(const TraceIdentity& identity) {
  return identity.mercury ? "mercury" : "zmq";
}

const char* TraceTrainingName(const TraceIdentity& identity) {
  return identity.asynchronous ? "asynchronous" : "synchronous";
}

std::string TraceFileName(const TraceIdentity& identity, bool scheduler_traffic) {
  return std::string("trace_") + (scheduler_traffic ? "sch_" : "") + TraceRoleName(identity.role) +
         "_" + std::to_string(identity.rank);
}

std::string TraceHeaderText(const TraceIdentity& identity) {
  const std::string rule(64, '=');
  const uint32_t workers = identity.workers;
  const uint32_t servers = identity.servers;
  std::string text = rule + "\nSketchDLC trace: version 1\n";
  text += "run: " + identity.run + "\n";
  text += std::string("mode: ") + TraceModeName(identity) + "\n";
  text += std::string("training: ") + TraceTrainingName(identity) + "\n";
  text += "number of workers: " + std::to_string(workers) + "\n";
  text += "number of servers: " + std::to_string(servers) + "\n";
  text += "host: " + identity.host + "\n";
  text += std::string("role: ") + TraceRoleName(identity.role) + "\n";
  text += "rank: " + std::to_string(identity.rank) + "\n";
  text += "worker ids:" + Ids(0, workers) + "\n";
  text += "server ids:" + Ids(workers, servers) + "\n";
  text += "scheduler id: " + std::to_string(workers + servers) + "\n";
  text += kCommonMeaning;
  text += identity.mercury ? kPacketsMeaning : kMessagesMeaning;
  text += rule + "\n";
  text += "id src dst length num_pp operation op_id dep_type d_time time_sec time_usec id_dep\n";
  return text;
}

void AppendTraceRecord(int64_t id, const TraceRecord& r, std::string* text) {
  for (const int64_t number : {id, int64_t{r.src}, int64_t{r.dst}, r.length, r.num_pp}) {
    Append(number, text);
    text->push_back(' ');
  }
  *text += "OP:= ";
  *text += kOperations[r.operation];
  if (r.operation == kTraceCommand || r.operation == kTraceReply) {
    text->push_back('\n');
    return;
  }
  text->push_back(' ');
  Append(r.key, text);
  text->push_back('-');
  Append(r.op_num, text);
  text->push_back('-');
  AppendNode(r.node, text);
  for (const int64_t number : {int64_t{r.dep_type}, r.d_time, r.time / 1000000, r.time % 1000000}) {
    text->push_back(' ');
    Append(number, text);
  }
  text->push_back(' ');
  switch (r.dep_kind) {
    case TraceDependency::kNone:
      *text += "-1";
      break;
    case TraceDependency::kOne:
      Append(r.dep_key, text);
      text->push_back('-');
      Append(r.dep_num, text);
      text->push_back('-');
      AppendNode(r.dep_node, text);
      break;
    case TraceDependency::kList:
      *text += r.list;
      break;
  }
  text->push_back('\n');
}

void AppendTraceNote(const std::string& note, std::string* text) {
  *text += "# ";
  for (const char c : note) {
    // A name may hold anything; a line may not.
    text->push_back(c >= ' ' && c <= '~' ? c : '?');
  }
  text->push_back('\n');
}

std::string TraceKeyNote(uint64_t index, uint64_t bytes, int priority, const std::string& name) {
  return "key " + std::to_string(index) + " bytes " + std::to_string(bytes) + " priority " +
         std::to_string(priority) + " name " + name;
}

std::string TraceWireNote(uint64_t index, const char* codec) {
  return "wire " + std::to_string(index) + " " + codec;
}

std::string TraceClockNote(int64_t time_us, int64_t add_us, int64_t within_us) {
  return "clock " + std::to_string(time_us / 1000000) + " " + std::to_string(time_us % 1000000) +
         " add_us " + std::to_string(add_us) + " within_us " + std::to_string(within_us);
}

std::string TraceFailedNote(const std::string& why) { return "failed " + why; }
std::string TraceLostNote(uint64_t records) { return "lost " + std::to_string(records); }
std::string TraceWithoutNote(const std::string& node, const std::string& why) {
  return "without " + node + ": " + why;
}
std::string TraceEndNote(int64_t records) { return "end " + std::to_string(records) + " records"; }
std::string TraceFromNote(int64_t step) { return "from step " + std::to_string(step); }
std::string TraceToNote(int64_t step) { return "to step " + std::to_string(step); }
std::string TraceLeaderNote(uint32_t worker) { return "leader worker " + std::to_string(worker); }

}  // namespace mercury
