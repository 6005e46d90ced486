#include "trace/trace_numbering.h"

#include <algorithm>
#include <utility>

namespace mercury {
namespace {

constexpr int64_t kInitialNumPp = -15;
// What a slot's record depends on.
constexpr uint8_t kDepTypes[kTraceSlots] = {4, 1, 2, 3};

constexpr uint8_t Bit(int slot) { return static_cast<uint8_t>(1U << static_cast<unsigned>(slot)); }

bool Sends(uint8_t operation) {
  if (operation >= kTraceCommand) return operation % 2 == 0;
  const bool even = operation % 2 == 0;
  return operation < kTraceSlots ? even : !even;
}

void Remember(std::map<int32_t, int64_t>* times, int32_t number, int64_t time) {
  const auto [it, fresh] = times->emplace(number, time);
  if (!fresh) it->second = std::max(it->second, time);
  // Two sets back nobody looks.
  times->erase(times->begin(), times->lower_bound(number - 2 * kTraceSlots + 1));
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
  return (record.op_num - first) / kTraceSlots;
}

// Whether a record is stamped with the first of its events, or with the last.
bool TraceNumbering::ByFirst(int slot) const {
  const bool opens = slot == kTracePush || slot == kTraceRequest;
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

TraceNumbering::Share& TraceNumbering::ShareOf(const TraceEvent& event) {
  return shares_[uint64_t{event.key} << 32 | event.node];
}

// The first of all lanes', of a push that is in the trace.
void TraceNumbering::FirstPacket(const TraceEvent& event, std::vector<TraceRecord>* out) {
  Share& share = ShareOf(event);
  const bool pushed =
      (share.filled & Bit(kTracePush)) != 0 && share.part_of[kTracePush] == event.number;
  if (!pushed || share.packet_of == event.number) return;
  share.packet_of = event.number;
  TraceRecord record;
  record.operation = event.operation;
  record.src = identity_.RankId(identity_.node());
  record.dst = identity_.RankId(event.node);
  record.num_pp = event.number;
  record.key = record.dep_key = event.key;
  record.op_num = record.dep_num = share.base;
  record.node = record.dep_node = event.node;
  record.time = event.time_us;
  record.dep_type = kDepTypes[kTraceConfirm];
  record.dep_kind = TraceDependency::kOne;
  record.d_time = event.time_us - share.time[kTracePush];
  out->push_back(std::move(record));
}

void TraceNumbering::Add(const TraceEvent& event, std::vector<TraceRecord>* out) {
  if (event.operation == kTraceFirstPacket) return FirstPacket(event, out);
  if (event.operation >= kTraceSlots) return Control(event, out);
  const int slot = event.operation;
  Share& share = ShareOf(event);
  if (share.parts[slot] == 0 || share.part_of[slot] != event.number) {
    share.parts[slot] = 0;
    share.bytes[slot] = 0;
    share.part_of[slot] = event.number;
    if (share.held[slot]) Release(&share.held[slot], out);
  }
  ++share.parts[slot];
  share.bytes[slot] += event.length;
  const bool whole = share.parts[slot] >= event.parts;
  if (ByFirst(slot)) {
    if (share.parts[slot] == 1) share.held[slot] = Made(event, &share);
  } else if (whole) {
    share.held[slot] = Made(event, &share);
  }
  if (!whole) return;
  share.parts[slot] = 0;
  // A push in packets ends with its last one, which knows how long it was.
  if (identity_.mercury && slot == kTracePush) return;
  if (identity_.mercury && slot == kTraceConfirm) {
    if (share.held[kTracePush]) {
      share.held[kTracePush]->length = share.bytes[slot];
      Release(&share.held[kTracePush], out);
    }
    share.bytes[slot] = 0;
  }
  if (!share.held[slot]) return;
  share.held[slot]->length = share.bytes[slot];
  Release(&share.held[slot], out);
}

void TraceNumbering::Finish(std::vector<TraceRecord>* out) {
  for (auto& [place, share] : shares_) {
    for (int slot = 0; slot < kTraceSlots; ++slot) {
      if (!share.held[slot]) continue;
      share.held[slot]->length = share.bytes[slot];
      Release(&share.held[slot], out);
    }
  }
}

std::unique_ptr<TraceRecord> TraceNumbering::Made(const TraceEvent& event, Share* share) {
  const int slot = event.operation;
  bool initial = event.initial;
  share->asynchronous |= event.asynchronous;
  if (slot >= kTraceRequest && !share->trained) {
    // The first pull of a key that its worker has never pushed fetches the initial value.
    const bool answered = (share->known & Bit(kTraceAnswer)) != 0;
    if (slot == kTraceRequest && !share->pulled) share->initial_pull = true;
    if (slot == kTraceRequest && share->pulled) share->initial_pull = false;
    share->pulled = true;
    initial = share->initial_pull && !answered;
  }
  TraceRecord record;
  record.op_num = Number(event, initial, share);
  record.operation = static_cast<uint8_t>(slot + (on_server_ ? kTraceSlots : 0));
  const uint32_t here = identity_.RankId(identity_.node());
  const uint32_t there = identity_.RankId(event.node);
  const bool sends = Sends(record.operation);
  record.src = sends ? here : there;
  record.dst = sends ? there : here;
  record.num_pp = initial && slot < kTraceRequest ? kInitialNumPp : event.number;
  record.key = event.key;
  record.node = event.node;
  record.time = event.time_us;
  Depends depends = DependsOn(event, initial, record.op_num, *share);
  record.dep_type = depends.type;
  record.dep_kind = depends.kind;
  if (depends.kind == TraceDependency::kOne) {
    record.dep_key = event.key;
    record.dep_num = record.op_num - depends.back;
    record.dep_node = event.node;
  }
  record.list = std::move(depends.list);
  if (depends.since) record.d_time = event.time_us - *depends.since;

  share->time[slot] = event.time_us;
  share->known |= Bit(slot);
  if (slot == kTraceAnswer) share->answered_number = record.op_num;
  if (slot == kTracePush || slot == kTraceAnswer) {
    if (on_server_) Remember(&latest_[event.key], record.op_num, event.time_us);
    if (!on_server_ && slot == kTraceAnswer) {
      Remember(&answered_[event.node], record.op_num, event.time_us);
    }
  }
  latest_iteration_ = std::max(latest_iteration_, IterationOf(record));
  return std::make_unique<TraceRecord>(std::move(record));
}

// Four numbers to a set. A push opens one, and so does a pull without a push.
int32_t TraceNumbering::Number(const TraceEvent& event, bool initial, Share* share) {
  const int slot = event.operation;
  const int first = identity_.first_number();
  if (initial) return first - kTraceSlots + slot;
  if (!share->trained) {
    share->trained = true;
    share->base = first;
    share->filled = 0;
  } else if ((slot == kTracePush && share->filled != 0) || (share->filled & Bit(slot)) != 0) {
    share->base += kTraceSlots;
    share->filled = 0;
  }
  share->filled |= Bit(slot);
  return share->base + slot;
}

std::string TraceNumbering::Workers(int32_t number) const {
  std::string list = "(";
  for (uint32_t w = 0; w < identity_.workers; ++w) {
    list += std::to_string(number) + "-w" + std::to_string(w) + ".";
  }
  return list + ")";
}

TraceNumbering::Depends TraceNumbering::DependsOn(const TraceEvent& event, bool initial,
                                                  int32_t number, const Share& share) {
  const int slot = event.operation;
  const bool together = on_server_ && !identity_.asynchronous && !share.asynchronous && !initial;
  Depends depends;
  const auto one = [&](int back) {
    depends.type = kDepTypes[slot];
    depends.kind = TraceDependency::kOne;
    depends.back = back;
    if ((share.known & Bit(slot - back)) != 0) depends.since = share.time[slot - back];
    return depends;
  };
  const auto all_workers = [&](int32_t at) {
    depends.type = kDepTypes[slot];
    depends.kind = TraceDependency::kList;
    depends.list = Workers(at);
    const auto key = latest_.find(event.key);
    if (key != latest_.end()) {
      const auto it = key->second.find(at);
      if (it != key->second.end()) depends.since = it->second;
    }
    return depends;
  };
  if (slot == kTracePush) {
    if (initial) return depends;
    if (on_server_) {
      // Without an answer to this worker before, there is nothing to wait for.
      if (share.answered_number != number - 1) return depends;
      if (together) return all_workers(number - 1);
      depends.type = kDepTypes[slot];
      depends.kind = TraceDependency::kList;
      depends.list =
          "(" + std::to_string(number - 1) + "-w" + std::to_string(TraceRankOf(event.node)) + ".)";
      depends.since = share.time[kTraceAnswer];
      return depends;
    }
    for (const auto& [server, times] : answered_) {
      const auto it = times.find(number - 1);
      if (it == times.end()) continue;
      depends.list += std::to_string(number - 1) + "-s" + std::to_string(TraceRankOf(server)) + ".";
      depends.since = std::max(depends.since.value_or(it->second), it->second);
    }
    if (depends.list.empty()) return depends;
    depends.type = kDepTypes[slot];
    depends.kind = TraceDependency::kList;
    depends.list = "(" + depends.list + ")";
    return depends;
  }
  if (slot == kTraceConfirm) {
    return together && !identity_.mercury ? all_workers(number - slot) : one(1);
  }
  if (slot == kTraceAnswer) return one(1);
  const bool pushed =
      initial ? (share.known & Bit(kTracePush)) != 0 : (share.filled & Bit(kTracePush)) != 0;
  if (!pushed) return depends;
  if (identity_.mercury && together) return all_workers(number - slot);
  return one(identity_.mercury || event.ahead ? 2 : 1);
}

}  // namespace mercury
