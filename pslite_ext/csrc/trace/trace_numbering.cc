#include "trace/trace_numbering.h"

#include <algorithm>
#include <utility>

namespace mercury {
namespace {

constexpr int64_t kInitialNumPp = -15;
// What a stage's record depends on.
constexpr uint8_t kDepTypes[kTraceStages] = {4, 1, 2, 3};

constexpr uint8_t Bit(int stage) {
  return static_cast<uint8_t>(1U << static_cast<unsigned>(stage));
}

bool Sends(uint8_t operation) {
  if (operation >= kTraceCommand) return operation % 2 == 0;
  const bool even = operation % 2 == 0;
  return operation < kTraceStages ? even : !even;
}

void Remember(std::map<int32_t, int64_t>* times, int32_t number, int64_t time) {
  const auto [it, fresh] = times->emplace(number, time);
  if (!fresh) it->second = std::max(it->second, time);
  // Two sets back nobody looks.
  times->erase(times->begin(), times->lower_bound(number - 2 * kTraceStages + 1));
}

void Release(std::unique_ptr<TraceRecord>* held, std::vector<TraceRecord>* out) {
  const std::unique_ptr<TraceRecord> record = std::move(*held);
  out->push_back(std::move(*record));
}

}  // namespace

uint32_t TraceIdentity::RankId(uint32_t node) const {
  switch (TraceRoleOf(node)) {
    case TraceRole::kWorker:
      return TraceRankOf(node);
    case TraceRole::kServer:
      return workers + TraceRankOf(node);
    case TraceRole::kScheduler:
      break;
  }
  return workers + servers;
}

TraceNumbering::TraceNumbering(TraceIdentity identity)
    : identity_(std::move(identity)), on_server_(identity_.role == TraceRole::kServer) {}

int64_t TraceNumbering::IterationOf(const TraceRecord& record) const {
  const int first = identity_.first_number();
  const bool packet = record.operation == kTraceFirstPacket;
  if ((record.operation >= kTraceCommand && !packet) || record.op_num < first) return -1;
  return (record.op_num - first) / kTraceStages;
}

// Whether a record is stamped with the first of its events, or with the last.
bool TraceNumbering::ByFirst(int stage) const {
  const bool opens = stage == kTracePush || stage == kTraceRequest;
  return opens && (identity_.mercury || !on_server_);
}

void TraceNumbering::Control(const TraceEvent& event, std::vector<TraceRecord>* out) {
  TraceRecord record;
  record.operation = event.operation;
  record.length = event.length;
  record.node = event.node;
  const uint32_t here = identity_.RankId(identity_.node());
  const uint32_t there = identity_.RankId(event.node);
  record.src = Sends(event.operation) ? here : there;
  record.dst = Sends(event.operation) ? there : here;
  if (event.operation >= kTraceRegister) {
    record.time = event.time_us;
    record.op_num = control_count_[event.operation]++;
  }
  out->push_back(std::move(record));
}

TraceNumbering::Exchange& TraceNumbering::ExchangeOf(const TraceEvent& event) {
  return exchanges_[uint64_t{event.key} << 32 | event.node];
}

// The first of all lanes', of a push that is in the trace.
void TraceNumbering::FirstPacket(const TraceEvent& event, std::vector<TraceRecord>* out) {
  Exchange& exchange = ExchangeOf(event);
  const bool pushed =
      (exchange.filled & Bit(kTracePush)) != 0 && exchange.part_of[kTracePush] == event.number;
  if (!pushed || exchange.packet_of == event.number) return;
  exchange.packet_of = event.number;
  TraceRecord record;
  record.operation = event.operation;
  record.src = identity_.RankId(identity_.node());
  record.dst = identity_.RankId(event.node);
  record.num_pp = event.number;
  record.key = record.dep_key = event.key;
  record.op_num = record.dep_num = exchange.base;
  record.node = record.dep_node = event.node;
  record.time = event.time_us;
  record.dep_type = kDepTypes[kTraceConfirm];
  record.dep_kind = TraceDependency::kOne;
  record.d_time = event.time_us - exchange.time[kTracePush];
  out->push_back(std::move(record));
}

void TraceNumbering::Add(const TraceEvent& event, std::vector<TraceRecord>* out) {
  if (event.operation == kTraceFirstPacket) return FirstPacket(event, out);
  if (event.operation >= kTraceStages) return Control(event, out);
  const int stage = event.operation;
  Exchange& exchange = ExchangeOf(event);
  if (exchange.parts[stage] == 0 || exchange.part_of[stage] != event.number) {
    exchange.parts[stage] = 0;
    exchange.bytes[stage] = 0;
    exchange.part_of[stage] = event.number;
    if (exchange.held[stage]) Release(&exchange.held[stage], out);
  }
  ++exchange.parts[stage];
  exchange.bytes[stage] += event.length;
  const bool whole = exchange.parts[stage] >= event.parts;
  if (ByFirst(stage)) {
    if (exchange.parts[stage] == 1) exchange.held[stage] = Made(event, &exchange);
  } else if (whole) {
    exchange.held[stage] = Made(event, &exchange);
  }
  if (!whole) return;
  exchange.parts[stage] = 0;
  // A push in packets ends with its last one, which knows how long it was.
  if (identity_.mercury && stage == kTracePush) return;
  if (identity_.mercury && stage == kTraceConfirm) {
    if (exchange.held[kTracePush]) {
      exchange.held[kTracePush]->length = exchange.bytes[stage];
      Release(&exchange.held[kTracePush], out);
    }
    exchange.bytes[stage] = 0;
  }
  if (!exchange.held[stage]) return;
  exchange.held[stage]->length = exchange.bytes[stage];
  Release(&exchange.held[stage], out);
}

void TraceNumbering::Finish(std::vector<TraceRecord>* out) {
  for (auto& [place, exchange] : exchanges_) {
    for (int stage = 0; stage < kTraceStages; ++stage) {
      if (!exchange.held[stage]) continue;
      exchange.held[stage]->length = exchange.bytes[stage];
      Release(&exchange.held[stage], out);
    }
  }
}

std::unique_ptr<TraceRecord> TraceNumbering::Made(const TraceEvent& event, Exchange* exchange) {
  const int stage = event.operation;
  bool initial = event.initial;
  exchange->asynchronous |= event.asynchronous;
  if (stage >= kTraceRequest && !exchange->trained) {
    // The first pull of a key that its worker has never pushed fetches the initial value.
    const bool answered = (exchange->known & Bit(kTraceAnswer)) != 0;
    if (stage == kTraceRequest && !exchange->pulled) exchange->initial_pull = true;
    if (stage == kTraceRequest && exchange->pulled) exchange->initial_pull = false;
    exchange->pulled = true;
    initial = exchange->initial_pull && !answered;
  }
  TraceRecord record;
  record.op_num = Number(event, initial, exchange);
  record.operation = static_cast<uint8_t>(stage + (on_server_ ? kTraceStages : 0));
  const uint32_t here = identity_.RankId(identity_.node());
  const uint32_t there = identity_.RankId(event.node);
  const bool sends = Sends(record.operation);
  record.src = sends ? here : there;
  record.dst = sends ? there : here;
  record.num_pp = initial && stage < kTraceRequest ? kInitialNumPp : event.number;
  record.key = event.key;
  record.node = event.node;
  record.time = event.time_us;
  Depends depends = DependsOn(event, initial, record.op_num, *exchange);
  record.dep_type = depends.type;
  record.dep_kind = depends.kind;
  if (depends.kind == TraceDependency::kOne) {
    record.dep_key = event.key;
    record.dep_num = record.op_num - depends.back;
    record.dep_node = event.node;
  }
  record.list = std::move(depends.list);
  if (depends.since) record.d_time = event.time_us - *depends.since;

  exchange->time[stage] = event.time_us;
  exchange->known |= Bit(stage);
  if (stage == kTraceAnswer) exchange->answered_number = record.op_num;
  if (stage == kTracePush || stage == kTraceAnswer) {
    if (on_server_) Remember(&latest_[event.key], record.op_num, event.time_us);
    if (!on_server_ && stage == kTraceAnswer) {
      Remember(&answered_[event.node], record.op_num, event.time_us);
    }
  }
  latest_iteration_ = std::max(latest_iteration_, IterationOf(record));
  return std::make_unique<TraceRecord>(std::move(record));
}

// Four numbers to a set. A push opens one, and so does a pull without a push.
int32_t TraceNumbering::Number(const TraceEvent& event, bool initial, Exchange* exchange) {
  const int stage = event.operation;
  const int first = identity_.first_number();
  if (initial) return first - kTraceStages + stage;
  if (!exchange->trained) {
    exchange->trained = true;
    exchange->base = first;
    exchange->filled = 0;
  } else if ((stage == kTracePush && exchange->filled != 0) ||
             (exchange->filled & Bit(stage)) != 0) {
    exchange->base += kTraceStages;
    exchange->filled = 0;
  }
  exchange->filled |= Bit(stage);
  return exchange->base + stage;
}

std::string TraceNumbering::Workers(int32_t number) const {
  std::string list = "(";
  const auto add = [&](uint32_t worker) {
    list += std::to_string(number) + "-w" + std::to_string(worker) + ".";
  };
  if (identity_.senders.empty()) {
    for (uint32_t w = 0; w < identity_.workers; ++w) add(w);
  } else {
    for (const uint32_t w : identity_.senders) add(w);
  }
  return list + ")";
}

TraceNumbering::Depends TraceNumbering::DependsOn(const TraceEvent& event, bool initial,
                                                  int32_t number, const Exchange& exchange) {
  const int stage = event.operation;
  const bool together = on_server_ && !identity_.asynchronous && !exchange.asynchronous && !initial;
  Depends depends;
  const auto one = [&](int back) {
    depends.type = kDepTypes[stage];
    depends.kind = TraceDependency::kOne;
    depends.back = back;
    if ((exchange.known & Bit(stage - back)) != 0) depends.since = exchange.time[stage - back];
    return depends;
  };
  const auto all_workers = [&](int32_t at) {
    depends.type = kDepTypes[stage];
    depends.kind = TraceDependency::kList;
    depends.list = Workers(at);
    const auto key = latest_.find(event.key);
    if (key != latest_.end()) {
      const auto it = key->second.find(at);
      if (it != key->second.end()) depends.since = it->second;
    }
    return depends;
  };
  if (stage == kTracePush) {
    if (initial) return depends;
    if (on_server_) {
      // Without an answer to this worker before, there is nothing to wait for.
      if (exchange.answered_number != number - 1) return depends;
      if (together) return all_workers(number - 1);
      depends.type = kDepTypes[stage];
      depends.kind = TraceDependency::kList;
      depends.list =
          "(" + std::to_string(number - 1) + "-w" + std::to_string(TraceRankOf(event.node)) + ".)";
      depends.since = exchange.time[kTraceAnswer];
      return depends;
    }
    for (const auto& [server, times] : answered_) {
      const auto it = times.find(number - 1);
      if (it == times.end()) continue;
      depends.list += std::to_string(number - 1) + "-s" + std::to_string(TraceRankOf(server)) + ".";
      depends.since = std::max(depends.since.value_or(it->second), it->second);
    }
    if (depends.list.empty()) return depends;
    depends.type = kDepTypes[stage];
    depends.kind = TraceDependency::kList;
    depends.list = "(" + depends.list + ")";
    return depends;
  }
  if (stage == kTraceConfirm) {
    return together && !identity_.mercury ? all_workers(number - stage) : one(1);
  }
  if (stage == kTraceAnswer) return one(1);
  const bool pushed =
      initial ? (exchange.known & Bit(kTracePush)) != 0 : (exchange.filled & Bit(kTracePush)) != 0;
  if (!pushed) return depends;
  if (identity_.mercury && together) return all_workers(number - stage);
  return one(identity_.mercury || event.ahead ? 2 : 1);
}

}  // namespace mercury
