// Heartbeats: that a node is there, and, of one that traces, what time it is by the scheduler's
// clock. Runs on the I/O thread; see zmq_van.h.
#include "base/clock.h"
#include "control/zmq_van.h"
#include "trace/trace_text.h"

namespace mercury {
namespace {

constexpr int kClockSamples = 8;
constexpr int64_t kClockNoteUs = 10000000;

}  // namespace

// A node that traces asks for the time along with it: `key` is when, by its own clock.
void ZmqVan::SendHeartbeat(int receiver) {
  ps::Meta meta;
  meta.control.cmd = ps::Control::HEARTBEAT;
  if (!is_scheduler_ && TraceLog::Active() != nullptr) {
    meta.key = static_cast<uint64_t>(NowUs() + WallOffsetUs());
  }
  SendControl(receiver, meta);
}

void ZmqVan::OnHeartbeat(const ps::Message& message, int64_t now_ms) {
  const ps::Meta& heard = message.meta;
  const int64_t now_us = NowUs();
  const auto wall = static_cast<uint64_t>(now_us + WallOffsetUs());
  if (is_scheduler_) {
    if (heard.key == 0 || !ready_) return;
    ps::Meta answer;
    answer.control.cmd = ps::Control::HEARTBEAT;
    answer.key = heard.key;
    answer.addr = wall;
    answer.recv_key = static_cast<uint64_t>(NowUs() + WallOffsetUs());
    return SendControl(heard.sender, answer);
  }
  if (heard.sender != kSchedulerId) return;
  CarryOut(node_membership_->Heard(now_ms));
  TraceLog* log = TraceLog::Active();
  if (heard.key == 0 || log == nullptr) return;
  const auto signed_of = [](uint64_t time) { return static_cast<int64_t>(time); };
  clock_offset_.Sample(signed_of(heard.key), signed_of(heard.addr), signed_of(heard.recv_key),
                       signed_of(wall));
  // A few at once for a first estimate, then one with each heartbeat.
  if (clock_offset_.samples() < kClockSamples) return SendHeartbeat(kSchedulerId);
  if (now_us < clock_note_at_us_) return;
  clock_note_at_us_ = now_us + kClockNoteUs;
  if (const auto estimate = clock_offset_.Take()) {
    log->Note(TraceClockNote(estimate->time_us, estimate->add_us, estimate->within_us));
  }
}

}  // namespace mercury
