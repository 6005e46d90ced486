// This process's trace: taps add events to a ring, one thread numbers them and writes them down.
//
// Who has something to tell asks Active() first: null costs one load. The thread wakes up twice a
// second, or when the ring is half full, and leaves whole lines on disk once a second. Events are
// put into the order of their times, which is why the last quarter of a second waits for the next
// turn.
//
// Thread-safety: Active, ring, Note, Switch from any thread; Start, Open, Close from one. Lifetime:
// the process's; once started it is never destroyed, so that a tap may hold the ring. Invariants:
// tracing never stops, delays or fails the job: what cannot be written ends the trace with one
// warning; what the ring had no room for is counted in the file.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "trace/trace_file.h"
#include "trace/trace_numbering.h"
#include "trace/trace_ring.h"
#include "trace/trace_window.h"

namespace mercury {

struct TraceOptions {
  std::string directory;  // empty: nothing is traced
  bool binary = false;
  bool mercury = false;  // what the records mean
  int64_t from_step = 0, to_step = TraceWindow::kNoEnd;
  // Between the threads that see events and the one that writes them; what exceeds that is lost,
  // and counted in the trace.
  size_t ring_events = 65536;
};

class TraceLog {
 public:
  // Null: this process traces nothing (or nothing any more).
  static TraceLog* Active() { return active_.load(std::memory_order_acquire); }
  // From now on events are kept, to be written once the node has its rank.
  static void Start(const TraceOptions& options);
  // The one that was started, traced or not any more; null: none.
  static TraceLog* Started() { return started_.load(std::memory_order_acquire); }

  // `host_sums`: this worker sums for its host, and that is a server of its own in traces.
  void Open(TraceIdentity identity, std::optional<TraceIdentity> host_sums = std::nullopt);
  // Writes what is left and ends the files.
  void Close();

  TraceRing* ring() { return &ring_; }
  // A line "# ..." in this node's file: of any thread, at any time; it may allocate.
  void Note(std::string note) { Note(std::move(note), kAlways); }
  // One that is left out with the records of this iteration.
  void Note(std::string note, int64_t iteration);
  // Records from the next iteration on, or no more.
  void Switch(bool on);

 private:
  explicit TraceLog(const TraceOptions& options);
  void Run();
  void Turn(bool last);
  void Write(const TraceEvent& event);
  void Place(const TraceNumbering& numbering, TraceFile* data);
  void Finish();
  bool IsOffByFile() const;
  void CheckSwitches(const std::vector<std::pair<int64_t, bool>>& asked, int64_t now_us);
  void CarryOutSwitches(int64_t until_us);
  void NoteWindow(bool from);
  void Stop(const Status& status);
  TraceFile* notes_file() { return data_.is_open() ? &data_ : &scheduler_; }

  static constexpr int64_t kAlways = std::numeric_limits<int64_t>::min();
  static std::atomic<TraceLog*> active_, started_;

  const TraceOptions options_;
  TraceRing ring_;
  // The thread's own:
  std::unique_ptr<TraceNumbering> numbering_, host_numbering_;  // the second: of its host's sums
  TraceWindow window_;
  TraceFile data_, host_data_, scheduler_;
  struct Seen {
    TraceEvent event;
    uint64_t order;  // in which they were taken
  };
  std::vector<Seen> events_;  // too young to be sure of their order in time
  uint64_t taken_ = 0;
  std::deque<std::pair<int64_t, bool>> switches_;  // when, and to what: to be carried out
  std::vector<TraceRecord> records_;
  uint64_t lost_ = 0;
  int64_t wall_offset_us_ = 0;
  int64_t flush_at_us_ = 0;
  bool wanted_ = true, off_by_file_ = false;
  bool broken_ = false;

  std::thread thread_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool stopping_ = false;
  std::vector<std::pair<int64_t, std::string>> notes_;  // by iteration
  std::vector<std::pair<int64_t, bool>> asked_;         // when, and to what
};

// TraceLog::Note, if there is a trace.
void NoteInTrace(int64_t iteration, std::string note);

}  // namespace mercury
