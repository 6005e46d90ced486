// How much may be under way on one link: sent and not yet returned as a sum.
//
// What is under way lies in queues of the kernel and of the network, where nothing can overtake
// it. So it is bounded, by an estimate of what the link carries in a round trip. A packet is held
// back only by what is under way with the same or higher urgency; and what has been away for much
// longer than a round trip is parked on the server, waiting for another worker: it fills no queue
// and does not count any more. Hence nothing can be held back forever, whatever order the workers
// send in; while nothing returns at all, the bound doubles with each time.
//
// Thread-safety: none; no clock, `now_us` never goes back. Invariant: counted bytes are those of
// packets that were sent, have not returned and are not parked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <unordered_map>

#include "base/never.h"

namespace mercury {

struct CreditLimits {
  uint64_t fixed_bytes = 0;  // 0: follow the link
  uint64_t bytes_min = 48 << 10;
  uint64_t bytes_max = 8 << 20;
};

class Credit {
 public:
  explicit Credit(const CreditLimits& limits) : limits_(limits) {}

  // Whether a packet of this urgency (larger is more urgent) may go now. With less than `least`
  // under way, it may in any case.
  bool MaySend(int32_t urgency, uint64_t least, int64_t now_us);
  void Sent(uint64_t portion, int32_t urgency, uint64_t bytes, int64_t now_us);
  void Returned(uint64_t portion, uint64_t bytes, int64_t now_us);
  // The portion is over, well or not. Its number is not used again.
  void Forget(uint64_t portion);
  // When MaySend may change its mind by time alone.
  int64_t WakeAt() const;

  uint64_t window_bytes() const;
  uint64_t counted_bytes() const { return counted_; }
  // The network's, without queues.
  void SetRoundTrip(int64_t us) { round_trip_us_ = us; }
  double bytes_per_second() const { return rate_; }  // 0: not known yet
  int64_t round_trip_us() const { return round_trip_us_; }

 private:
  struct Account {
    int32_t urgency = 0;
    uint64_t sent = 0, returned = 0, parked = 0;
    uint64_t counted() const { return sent - std::max(returned, parked); }
  };
  struct Departure {
    int64_t at_us;
    uint64_t portion;
    uint64_t sent;  // of the portion, with this packet
  };
  using Portions = std::unordered_map<uint64_t, Account>;

  void Recount(Portions::iterator it, uint64_t before);
  bool IsCounted() const;
  void Park(int64_t now_us);
  int64_t ParkAfterUs() const;
  void Measure(uint64_t bytes, int64_t now_us);

  const CreditLimits limits_;
  Portions portions_;
  std::map<int32_t, uint64_t, std::greater<>> by_urgency_;  // counted bytes, none is 0
  std::deque<Departure> departures_;
  uint64_t counted_ = 0;
  int doublings_ = 0;  // since anything returned

  // The link: the best rate of the last periods, and what the shell says of its round trip. A
  // period ends when nothing is under way any more.
  double rate_ = 0;
  int64_t period_start_us_ = -1;  // none begins before something is sent
  uint64_t period_bytes_ = 0;
  bool from_idle_ = false;  // nothing was under way when it began
  std::deque<double> rates_;
  int64_t round_trip_us_ = 0;
};

}  // namespace mercury
