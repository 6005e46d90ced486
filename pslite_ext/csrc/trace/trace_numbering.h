// How a node numbers what it sees: from events to records, as docs/trace-format.md says and
// tracer/synthetic/numbering.py does it, one event at a time.
//
// Several events may make one record (`parts`): messages of a part that is too long for one, or
// a tensor's lanes. What a worker sends is stamped with the first, all else with the last; in
// mercury mode the names' own meaning decides. A record whose length is known only later is held
// until then, so that records may come out in another order than their times.
//
// Thread-safety: none; the thread that writes the trace owns it. No I/O, no clock. Invariants:
// memory is bounded by keys times peers; a record names no record that was never made.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/trace_event.h"

namespace mercury {

// What the head of a file says.
struct TraceIdentity {
  TraceRole role = TraceRole::kWorker;
  uint32_t rank = 0;
  uint32_t workers = 1;
  uint32_t servers = 1;
  std::vector<uint32_t> senders;  // workers that push to this server; empty: all
  bool mercury = false;           // the mode
  bool asynchronous = false;      // the training
  std::string host;
  std::string run;

  // A node's number in the columns src and dst.
  uint32_t RankId(uint32_t node) const;
  uint32_t node() const { return TraceNode(role, rank); }
  // The operation_num with which training begins.
  int first_number() const { return role == TraceRole::kWorker && rank == 0 ? 4 : 2; }
};

enum class TraceDependency : uint8_t { kNone, kOne, kList };

struct TraceRecord {
  uint32_t src = 0, dst = 0;
  int64_t length = 0;
  int64_t num_pp = 0;
  uint8_t operation = 0;
  uint32_t key = 0;
  int32_t op_num = 0;
  uint32_t node = 0;
  uint8_t dep_type = 0;
  int64_t d_time = 0;
  int64_t time = 0;
  TraceDependency dep_kind = TraceDependency::kNone;
  uint32_t dep_key = 0;
  int32_t dep_num = 0;
  uint32_t dep_node = 0;
  std::string list;
};

class TraceNumbering {
 public:
  explicit TraceNumbering(TraceIdentity identity);

  // Appends the records that this event completes. Its time is taken as it is.
  void Add(const TraceEvent& event, std::vector<TraceRecord>* out);
  // What is still held, as far as it is known.
  void Finish(std::vector<TraceRecord>* out);
  // The training iteration of a record; -1: set-up and initial values.
  int64_t IterationOf(const TraceRecord& record) const;
  // The latest iteration that has begun; -1: none.
  int64_t latest_iteration() const { return latest_iteration_; }

 private:
  struct Exchange {  // a key and a peer
    int32_t base = 0;
    uint8_t filled = 0;  // bits of the stages of this set that are there
    bool asynchronous = false;
    bool trained = false, pulled = false, initial_pull = false;
    int32_t answered_number = INT32_MIN;  // of the last answer
    int64_t time[kTraceStages] = {};
    uint8_t known = 0;  // stages whose time was ever set
    // Of events that make up one record:
    int32_t packet_of = INT32_MIN;  // number of the push whose first packet is known
    int32_t part_of[kTraceStages] = {};
    uint16_t parts[kTraceStages] = {};
    int64_t bytes[kTraceStages] = {};
    std::unique_ptr<TraceRecord> held[kTraceStages];
  };
  struct Depends {
    uint8_t type = 0;
    TraceDependency kind = TraceDependency::kNone;
    int back = 0;
    std::string list;
    std::optional<int64_t> since;
  };

  Exchange& ExchangeOf(const TraceEvent& event);
  void FirstPacket(const TraceEvent& event, std::vector<TraceRecord>* out);
  bool ByFirst(int stage) const;
  std::unique_ptr<TraceRecord> Made(const TraceEvent& event, Exchange* exchange);
  int32_t Number(const TraceEvent& event, bool initial, Exchange* exchange);
  Depends DependsOn(const TraceEvent& event, bool initial, int32_t number,
                    const Exchange& exchange);
  std::string Workers(int32_t number) const;
  void Control(const TraceEvent& event, std::vector<TraceRecord>* out);

  const TraceIdentity identity_;
  const bool on_server_;
  std::unordered_map<uint64_t, Exchange> exchanges_;
  // When a key's pushes and answers of a number were last seen, by key (server).
  std::unordered_map<uint32_t, std::map<int32_t, int64_t>> latest_;
  // When any key's answers of a number were last seen, by server (worker).
  std::map<uint32_t, std::map<int32_t, int64_t>> answered_;
  int64_t latest_iteration_ = -1;
  int32_t control_count_[18] = {};
};

}  // namespace mercury
