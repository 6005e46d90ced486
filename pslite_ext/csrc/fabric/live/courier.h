// A node sends nothing of its own accord: only the hops that it was told to send, each from its
// time on, and at the pace of the plan.
//
// A hop starts when its time has come and its data is in memory; if that is later than planned, its
// whole pace is shifted. It may be ahead of the plan by a quarter, so that a link that has become
// faster shows it, and by one packet. After its planned end, and within a
// host, it is not slowed down. Hops that
// were planned to start earlier go first.
//
// Thread-safety: none, one owner; `now_s` is passed in, by the scheduler's clock. Invariants: no
// byte is allowed before a hop's time, or before it is there; each hop is over once, with exactly
// its bytes; if something is left to send that is there, either something is allowed now or
// `WakeAt` says when.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "fabric/live/orders.h"

namespace mercury::fabric {

constexpr double kPaceHeadroom = 1.25;
constexpr int64_t kPaceQuantum_bytes = 64 << 10;

// So much of a hop may go now.
struct Allowance {
  int64_t number = 0;
  int64_t bytes = 0;
  int64_t through = 0;  // of the whole hop, with those that have gone
};

class Courier {
 public:
  // A hop to come, and the number that it has from now on.
  int64_t Take(const Hop& hop);
  // What it carries is there: so many bytes, fewer than planned if a group has lost members.
  void Ready(int64_t number, int64_t bytes, double now_s);
  // Only so many of its bytes are there yet; without this, all are.
  void Reach(int64_t number, int64_t bytes);
  // It will not be sent to its end. Whether there was one.
  bool Cancel(int64_t number) { return trips_.erase(number) != 0; }

  // What may be sent now, those that were planned first in front.
  std::vector<Allowance> Due(double now_s) const;
  // It was; the hop, if that was the last of it.
  std::optional<Hop> Sent(int64_t number, int64_t bytes);
  // When more will be allowed; infinity: not by time alone. `next`: so many bytes of a hop are
  // waited for, in all; 0: one more than have been sent; nothing: that hop does not matter.
  using NextOf = std::function<std::optional<int64_t>(int64_t number, const Hop&)>;
  double WakeAt(double now_s, const NextOf& next = nullptr) const;

  const Hop* Find(int64_t number) const;

 private:
  struct Trip {
    Hop hop;
    int64_t bytes = -1;                                   // below 0: it is not there yet
    int64_t there = std::numeric_limits<int64_t>::max();  // bytes that can be sent
    int64_t sent = 0;
    double delay_s = 0;  // behind the plan, from its start on
  };
  static double PlannedBytes(const Trip& trip, double now_s);
  static int64_t Allowed(const Trip& trip, double now_s);
  static double AllowedAt(const Trip& trip, int64_t bytes, double now_s);

  int64_t next_ = 1;
  std::map<int64_t, Trip> trips_;
};

}  // namespace mercury::fabric
