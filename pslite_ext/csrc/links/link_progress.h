// Whether what one end of a data link sends arrives at the other: TCP's confirmations may come from
// something in between that swallows the bytes, so each end reports how many it has received.
//
//   idle --something sent or received--> in use: a tick every `interval`
//     tick: bytes have come since the last report     -> a report is due
//           some of ours are not reported, and nothing -> silent; for `timeout`: the peer is lost
//           has come since the last tick
//           a packet has begun and nothing of it came  -> stuck; for `timeout`: the peer is lost
//           none of these                              -> idle
//
// Reports are bytes of the link, too, and are counted, but never reported for their own sake: an
// idle link is silent. Whatever arrives excuses a report that has not: it may be queued behind a
// packet on a slow link. Silence is counted by ticks, none of them for more than two intervals, so
// that a process that was itself stopped does not blame its peers.
//
// Thread-safety: none. No I/O, no clock. Invariants: a link that is not used is never silent; one
// whose bytes and reports move, however slowly, never lost.
#pragma once

#include <cstdint>

#include "base/never.h"
#include "base/status.h"

namespace mercury {

class LinkProgress {
 public:
  explicit LinkProgress(int64_t timeout_us);

  // The kernel has taken `bytes`.
  void Sent(uint64_t bytes, int64_t now_us);
  // `bytes` have arrived; `news`: not all of them were reports.
  void Received(uint64_t bytes, bool news, int64_t now_us);
  // The peer's report: how many bytes have reached it, in all.
  Status Heard(uint64_t count);

  // When Tick has something to do; kNever while the link is idle.
  int64_t tick_at_us() const { return tick_at_us_; }
  // `in_packet`: a packet has begun to arrive and has not ended.
  Status Tick(int64_t now_us, bool in_packet);

  bool report_due() const { return report_due_; }
  // What to report. The report is the next thing that is sent, and has `bytes`.
  uint64_t TakeReport(uint64_t bytes);

 private:
  void Use(int64_t now_us);
  bool under_way() const { return heard_ < owed_; }

  const int64_t timeout_us_, interval_us_;
  int64_t tick_at_us_ = kNever, ticked_at_us_ = 0;
  // Sent: in all, up to where the peer owes a report, up to where it has reported.
  uint64_t sent_ = 0, owed_ = 0, heard_ = 0;
  uint64_t report_left_ = 0;  // of a report that is being sent
  uint64_t received_ = 0;
  bool news_ = false, report_due_ = false;
  bool came_ = false;  // something has, since the last tick
  int64_t silent_us_ = 0, stuck_us_ = 0;
};

}  // namespace mercury
