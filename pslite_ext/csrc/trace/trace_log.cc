#include "trace/trace_log.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "trace/trace_text.h"

namespace mercury {
namespace {

constexpr auto kTurn = std::chrono::milliseconds(500);
constexpr int64_t kFlushUs = 900000;
// An event may be added this long after its time was taken, and still find its place.
// On a busy machine the thread that took it may be kept from adding it for quite a while.
constexpr int64_t kSettleUs = 250000;
constexpr char kOffFile[] = "/off";  // while it is there, nothing is recorded

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "unknown";
  return name;
}

}  // namespace

std::atomic<TraceLog*> TraceLog::active_{nullptr};
std::atomic<TraceLog*> TraceLog::started_{nullptr};

TraceLog::TraceLog(const TraceOptions& options)
    : options_(options),
      ring_(options.ring_events,
            [this] {
              // Without the lock: should the thread miss it, it wakes up by itself soon enough.
              changed_.notify_one();
            }),
      window_(options.from_step, options.to_step) {}

void TraceLog::Start(const TraceOptions& options) {
  if (options.directory.empty() || Started() != nullptr) return;
  auto* log = new TraceLog(options);  // the process's
  started_ = log;
  active_ = log;
}

void TraceLog::Open(TraceIdentity identity, std::optional<TraceIdentity> host_sums) {
  if (thread_.joinable()) return;
  identity.host = HostName();
  identity.mercury = options_.mercury;
  numbering_ = std::make_unique<TraceNumbering>(identity);
  wall_offset_us_ = WallOffsetUs();
  Status status;
  if (identity.role != TraceRole::kScheduler) {
    status = data_.Open(options_.directory, identity, false, options_.binary);
  }
  if (status.ok() && host_sums) {
    host_sums->host = identity.host;
    host_sums->mercury = identity.mercury;
    host_numbering_ = std::make_unique<TraceNumbering>(*host_sums);
    status = host_data_.Open(options_.directory, *host_sums, false, options_.binary);
    if (status.ok()) host_data_.Note(TraceLeaderNote(identity.rank));
  }
  if (status.ok()) status = scheduler_.Open(options_.directory, identity, true, options_.binary);
  if (!status.ok()) return Stop(status);
  off_by_file_ = IsOffByFile();
  if (off_by_file_) window_.Switch(false, -1);
  if (window_.from() > 0) NoteWindow(true);
  if (window_.from() == 0 && window_.to() != TraceWindow::kNoEnd) NoteWindow(false);
  flush_at_us_ = NowUs() + kFlushUs;
  thread_ = std::thread(&TraceLog::Run, this);
  pthread_setname_np(thread_.native_handle(), "mercury-trace");
}

void TraceLog::Close() {
  if (thread_.joinable()) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
      changed_.notify_one();
    }
    thread_.join();
  }
  active_ = nullptr;
}

void TraceLog::Note(std::string note, int64_t iteration) {
  const std::lock_guard<std::mutex> lock(mutex_);
  notes_.emplace_back(iteration, std::move(note));
}

void NoteInTrace(int64_t iteration, std::string note) {
  if (TraceLog* log = TraceLog::Active()) log->Note(std::move(note), iteration);
}

void TraceLog::Switch(bool on) {
  const std::lock_guard<std::mutex> lock(mutex_);
  asked_.emplace_back(NowUs(), on);
  changed_.notify_one();
}

void TraceLog::Run() {
  for (bool last = false; !last && !broken_;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (!stopping_) changed_.wait_for(lock, kTurn);
      last = stopping_;
    }
    try {
      Turn(last);
    } catch (const std::bad_alloc&) {
      Stop(Status::Exhausted("no memory to write it"));
    }
  }
}

void TraceLog::Stop(const Status& status) {
  broken_ = true;
  active_ = nullptr;
  Log(LogLevel::kWarning,
      "the trace of this node ends here: " + status.text() + "; training goes on without it");
}

bool TraceLog::IsOffByFile() const {
  return access((options_.directory + kOffFile).c_str(), F_OK) == 0;
}

// A call counts from when it was made, however late this thread is. By a file as well, because that
// works for all nodes that share the directory, whatever their script does.
void TraceLog::CheckSwitches(const std::vector<std::pair<int64_t, bool>>& asked, int64_t now_us) {
  const auto note = [this](int64_t at_us, bool on) {
    const bool before = switches_.empty() ? window_.on() : switches_.back().second;
    if (on != before) switches_.emplace_back(at_us, on);
  };
  for (const auto& [at_us, on] : asked) {
    wanted_ = on;
    note(at_us, wanted_ && !off_by_file_);
  }
  off_by_file_ = IsOffByFile();
  note(now_us, wanted_ && !off_by_file_);
}

// What has been asked for by this time, when all events before it have been numbered.
void TraceLog::CarryOutSwitches(int64_t until_us) {
  while (!switches_.empty() && switches_.front().first <= until_us) {
    const bool on = switches_.front().second;
    switches_.pop_front();
    window_.Switch(on, numbering_->latest_iteration());
    NoteWindow(on);
  }
}

// The range of steps that is recorded from here on; or its end alone, that of the range before.
void TraceLog::NoteWindow(bool from) {
  for (TraceFile* file : {&data_, &host_data_}) {
    if (!file->is_open()) continue;
    if (from) file->Note(TraceFromNote(window_.from()));
    if (window_.to() != TraceWindow::kNoEnd) file->Note(TraceToNote(window_.to()));
  }
}

void TraceLog::Turn(bool last) {
  ring_.Rearm();
  const int64_t now = NowUs();
  TraceEvent event;
  while (ring_.Take(&event)) events_.push_back({event, taken_++});
  std::vector<std::pair<int64_t, std::string>> notes;
  std::vector<std::pair<int64_t, bool>> asked;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    notes.swap(notes_);
    asked.swap(asked_);
  }
  for (const auto& [iteration, note] : notes) {
    if (iteration == kAlways || window_.Covers(iteration)) notes_file()->Note(note);
  }
  std::sort(events_.begin(), events_.end(), [](const Seen& a, const Seen& b) {
    return std::tie(a.event.time_us, a.order) < std::tie(b.event.time_us, b.order);
  });
  const auto young =
      last ? events_.end() : std::find_if(events_.begin(), events_.end(), [&](const Seen& seen) {
        return seen.event.time_us > now - kSettleUs;
      });
  CheckSwitches(asked, now);
  for (auto it = events_.begin(); it != young; ++it) {
    CarryOutSwitches(it->event.time_us);
    Write(it->event);
  }
  CarryOutSwitches(last ? now : now - kSettleUs);
  events_.erase(events_.begin(), young);
  if (const uint64_t lost = ring_.lost(); lost != lost_) {
    notes_file()->Note(TraceLostNote(lost - std::exchange(lost_, lost)));
  }
  if (last) {
    Finish();
    return;
  }
  if (now < flush_at_us_) return;
  flush_at_us_ = now + kFlushUs;
  for (TraceFile* file : {&data_, &host_data_, &scheduler_}) {
    const Status status = file->is_open() ? file->Flush() : Status::Ok();
    if (!status.ok()) return Stop(status);
  }
}

void TraceLog::Finish() {
  numbering_->Finish(&records_);
  Place(*numbering_, &data_);
  if (host_numbering_ != nullptr) {
    host_numbering_->Finish(&records_);
    Place(*host_numbering_, &host_data_);
  }
  Status status;
  for (TraceFile* file : {&data_, &host_data_, &scheduler_}) {
    const Status each = file->End();
    if (status.ok()) status = each;
  }
  if (!status.ok()) Stop(status);
}

void TraceLog::Write(const TraceEvent& event) {
  TraceEvent at_wall = event;
  at_wall.time_us += wall_offset_us_;
  const bool by_host = event.by_host && host_numbering_ != nullptr;
  TraceNumbering* numbering = by_host ? host_numbering_.get() : numbering_.get();
  numbering->Add(at_wall, &records_);
  Place(*numbering, by_host ? &host_data_ : &data_);
}

// The records that there are; where they belong.
void TraceLog::Place(const TraceNumbering& numbering, TraceFile* data) {
  for (const TraceRecord& record : records_) {
    if (IsSchedulerTraffic(record.operation)) {
      scheduler_.Add(record);
    } else if (data->is_open() && window_.Covers(numbering.IterationOf(record))) {
      data->Add(record);
    }
  }
  records_.clear();
}

}  // namespace mercury
