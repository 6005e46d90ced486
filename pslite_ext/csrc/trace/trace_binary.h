// The binary form of a trace (.dlc): the pieces of one protobuf message, docs/trace.proto.
//
// Thread-safety: TraceBlocks has one owner; the rest are pure functions. Invariants: each piece is
// complete in itself, so that the file is good up to its last whole piece; memory is bounded,
// whatever the length of the run.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "trace/trace_numbering.h"

namespace mercury {

constexpr size_t kTraceBlockRecords = 16384;

std::string TraceHeaderPiece(const TraceIdentity& identity);
std::string TraceNotePiece(const std::string& note);

// Turns records into blocks; lists are numbered through the whole file.
class TraceBlocks {
 public:
  // At most kTraceBlockRecords records, whose ids are first_id, first_id + 1, ...
  std::string Encode(int64_t first_id, const std::vector<TraceRecord>& records);

 private:
  std::unordered_map<std::string, int64_t> lists_;  // the latest ones
  int64_t lists_written_ = 0;
};

}  // namespace mercury
