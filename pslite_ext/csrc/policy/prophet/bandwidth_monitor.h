// What a link carries, from what it has carried: the time of a transfer as a function of its size,
// startup + bytes / bandwidth. Nothing is sent to find out.
//
// A *stretch* is a time in which the link was busy, and the bytes that it carried meanwhile. Some
// are too slow for reasons that are not the link's (another worker was late), so mostly the better
// quarter of the last seconds' counts. Estimates fall at once and rise slowly: to expect too much
// makes what is urgent wait, to expect too little only leaves a gap.
//
// Thread-safety: none; no clock. Invariant: known() means that the bandwidth is above zero.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

namespace mercury {

class BandwidthMonitor {
 public:
  // Which stretches count for the bandwidth: the better quarter, or all on average. Where bytes
  // come to be known of late and many at once, the best stretches are too good; the average rather
  // is too low, as it holds the startups and what other workers were late.
  enum class Basis { kBest, kAll };
  explicit BandwidthMonitor(Basis basis = Basis::kBest) : basis_(basis) {}

  // The link begins to be busy.
  void Begin(int64_t now_us);
  // It has carried so much; `idle`: nothing is under way any more.
  void Carried(uint64_t bytes, bool idle, int64_t now_us);
  // A stretch that has ended.
  void Add(uint64_t bytes, int64_t us, int64_t now_us);

  bool known() const { return bytes_per_us_ > 0; }
  // What the user should know: said once when the link comes to a standstill.
  std::string TakeNotice() { return std::exchange(notice_, {}); }
  double bytes_per_second() const { return bytes_per_us_ * 1e6; }
  double startup_us() const { return startup_us_; }
  // Of so many bytes among others, without the startup; only if known().
  double WireUs(double bytes) const { return bytes / bytes_per_us_; }

 private:
  struct BusyStretch {
    int64_t at_us;
    double bytes, us;
  };
  void Estimate();
  double AverageRate() const;
  double BestRate(double middle) const;

  const Basis basis_;
  int64_t stretch_start_us_ = -1;  // of the one that is under way; -1: none is
  uint64_t stretch_bytes_ = 0;
  std::deque<BusyStretch> stretches_;
  int64_t estimate_at_us_ = -1;  // -1: there was none yet
  double bytes_per_us_ = 0;
  double startup_us_ = 0;
  bool stands_ = false;
  std::string notice_;
};

}  // namespace mercury
