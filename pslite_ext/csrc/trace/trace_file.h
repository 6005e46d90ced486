// One trace file, text or binary: buffers whole lines (or pieces) and writes them when told.
//
// Thread-safety: none; the thread that writes the trace owns it. Ownership: the descriptor.
// Invariants: what is on disk is a valid prefix, also after a write that failed half way; a file
// that is there already is never touched.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "trace/trace_binary.h"
#include "trace/trace_numbering.h"

namespace mercury {

class TraceFile {
 public:
  TraceFile() = default;
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // `scheduler_traffic`: trace_sch_..., the node's traffic with the scheduler.
  Status Open(const std::string& directory, const TraceIdentity& identity, bool scheduler_traffic,
              bool binary);
  bool is_open() const { return fd_ >= 0; }
  void Add(TraceRecord record);
  void Note(const std::string& note);
  Status Flush();
  // Says that this is all, and closes.
  Status End();
  const std::string& path() const { return path_; }

 private:
  void EndBlock();

  std::string path_;
  int fd_ = -1;
  bool binary_ = false;
  int64_t records_ = 0;
  int64_t bytes_ = 0;  // that are good on disk
  std::string buffer_;
  TraceBlocks blocks_;
  std::vector<TraceRecord> pending_;  // binary: of the block that is not full yet
};

}  // namespace mercury
