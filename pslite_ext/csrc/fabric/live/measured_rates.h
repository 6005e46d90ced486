// How fast links are, measured from the transfers that go over them.
//
// A transfer shows what its whole path carries: the limit may be the sender's outgoing or the
// receiver's incoming link. Time is cut into slots of `lag_s`, and slots into stretches in which
// the same transfers were under way. At the end of a slot, a direction is believed to be at least
// as fast as in its best stretch. If it was slower there than believed, and the other ends do not
// explain it (they carried all they are believed to), it has become slower. What was passed on as
// it came, and came no faster, explains itself: its sender had nothing to send. The direction with
// the most peers is suspected first, then the one already believed to be the slowest.
//
// Thread-safety: none, one owner; times are passed in. Invariants: nothing is known of a direction
// that was idle for `kForget_s`, so a slow link that nobody uses gets another chance; beliefs
// change only at the ends of slots.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "fabric/live/monitor.h"

namespace mercury::fabric {

constexpr double kForget_s = 5;

class MeasuredRates : public RateSource {
 public:
  // `lag_s`: above 0, how long it takes until a change is seen.
  MeasuredRates(const std::vector<HostRates>& nominal, double lag_s);

  // A transfer has moved so many bits without a pause. Stretches are told soon after they end;
  // those of a host with itself say nothing. `passed_on`: while it came to `from`.
  void Carried(size_t from, size_t to, double bits, double start_s, double end_s,
               bool passed_on = false);
  // Time goes on: ends the slots that are over. To be called before `Of`.
  void Advance(double now_s);
  std::optional<HostRates> Of(size_t host, double now_s) const override;

 private:
  struct Direction {
    double believed = 0;
    double seen_s = -1;  // when it was last busy; below 0: never
  };
  // What all directions carried while the same transfers were under way.
  using Rates = std::map<size_t, double>;
  // What a direction has shown in a slot.
  struct Shown {
    double best = 0;
    const Rates* when = nullptr;  // it was
    std::set<size_t> at_best;     // the other ends then
    bool starved = false;         // a part of it was passed on, and came no faster
    std::set<size_t> peers;       // in the whole slot
  };
  struct Run {
    size_t out = 0;
    size_t in = 0;
    double bits = 0;
    double start_s = 0;
    double end_s = 0;
    bool passed_on = false;

    double rate() const { return bits / (end_s - start_s); }
    bool covers(double from_s, double to_s) const { return start_s <= from_s && end_s >= to_s; }
  };
  bool Starved(const Run& run, double start_s, double end_s) const;
  static size_t In(size_t host) { return 2 * host; }
  static size_t Out(size_t host) { return 2 * host + 1; }
  void EndSlot();
  // `kept` is what the result points into.
  std::map<size_t, Shown> Look(std::vector<Rates>* kept) const;
  bool Full(size_t direction, double rate) const;

  const double lag_s_;
  std::vector<Direction> directions_;
  std::vector<double> nominal_;
  std::vector<Run> runs_;  // of this slot and later
  double slot_start_s_ = 0;
};

}  // namespace mercury::fabric
