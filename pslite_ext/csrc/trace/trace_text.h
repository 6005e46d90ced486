// The text form of a trace, byte for byte as docs/trace-format.md defines it and
// tracer/format/header.py and tracer/format/writer.py write it.
//
// Thread-safety: pure functions. Invariant: all text is whole lines.
#pragma once

#include <cstdint>
#include <string>

#include "trace/trace_numbering.h"

namespace mercury {

const char* TraceRoleName(TraceRole role);
const char* TraceModeName(const TraceIdentity& identity);
const char* TraceTrainingName(const TraceIdentity& identity);
// trace_worker_0, or trace_sch_worker_0 for the traffic with the scheduler; without an ending.
std::string TraceFileName(const TraceIdentity& identity, bool scheduler_traffic);

std::string TraceHeaderText(const TraceIdentity& identity);
void AppendTraceRecord(int64_t id, const TraceRecord& record, std::string* text);
void AppendTraceNote(const std::string& note, std::string* text);

// What the notes of docs/trace-format.md say, without the "# " in front.
std::string TraceKeyNote(uint64_t index, uint64_t bytes, int priority, const std::string& name);
// From here on, gradients of that index travel as that.
std::string TraceWireNote(uint64_t index, const char* codec);
std::string TraceClockNote(int64_t time_us, int64_t add_us, int64_t within_us);
std::string TraceFailedNote(const std::string& why);
std::string TraceLostNote(uint64_t records);
// The job goes on without that node.
std::string TraceWithoutNote(const std::string& node, const std::string& why);
std::string TraceEndNote(int64_t records);
std::string TraceFromNote(int64_t step);
std::string TraceToNote(int64_t step);
// This server is the sums of a host's workers, made by that one of them.
std::string TraceLeaderNote(uint32_t worker);

}  // namespace mercury
