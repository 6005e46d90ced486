#include "policy/prophet/bandwidth_monitor.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace mercury {
namespace {

constexpr int64_t kStretchUs = 50000;   // at most
constexpr int64_t kEveryUs = 1000000;   // between estimates
constexpr int64_t kMemoryUs = 4000000;  // older stretches say nothing of the link as it is now
constexpr size_t kStretchesMax = 64;    // of which the best count
constexpr size_t kAllMax = 4096;
constexpr size_t kStretchesMin = 8;
constexpr size_t kSmallOnesMin = 4;
constexpr double kLeast = 1e-3;   // bytes a microsecond: below, the link stands still
constexpr double kStillUs = 1e6;  // unless there is just little to carry, and others are late
constexpr double kRise = 0.25;    // of the way to a better estimate

double Quantile(std::vector<double> values, double share) {
  const double place = std::ceil(share * static_cast<double>(values.size() - 1));
  const auto at = static_cast<size_t>(place);
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(at), values.end());
  return values[at];
}

}  // namespace

void BandwidthMonitor::Begin(int64_t now_us) {
  stretch_start_us_ = now_us;
  stretch_bytes_ = 0;
}

void BandwidthMonitor::Carried(uint64_t bytes, bool idle, int64_t now_us) {
  if (stretch_start_us_ < 0) return;
  stretch_bytes_ += bytes;
  if (!idle && now_us - stretch_start_us_ < kStretchUs) return;
  Add(stretch_bytes_, now_us - stretch_start_us_, now_us);
  Begin(idle ? -1 : now_us);
}

void BandwidthMonitor::Add(uint64_t bytes, int64_t us, int64_t now_us) {
  if (us <= 0) return;  // the clock's doing
  // Behind a clock that has jumped, nothing would grow old.
  if (!stretches_.empty() && now_us < stretches_.back().at_us) {
    stretches_.clear();
    estimate_at_us_ = now_us;
  }
  stretches_.push_back({now_us, static_cast<double>(bytes), static_cast<double>(us)});
  const auto old = [&] { return stretches_.front().at_us < now_us - kMemoryUs; };
  const size_t most = basis_ == Basis::kAll ? kAllMax : kStretchesMax;
  while (stretches_.size() > most || (stretches_.size() > kStretchesMin && old())) {
    stretches_.pop_front();
  }
  if (stretches_.size() < kStretchesMin) return;
  if (estimate_at_us_ >= 0 && now_us - estimate_at_us_ < kEveryUs) return;
  estimate_at_us_ = now_us;
  Estimate();
}

double BandwidthMonitor::AverageRate() const {
  double bytes = 0, us = 0;
  for (const BusyStretch& s : stretches_) {
    bytes += s.bytes;
    us += s.us;
  }
  return bytes / us;
}

// The larger ones say how fast the link is.
double BandwidthMonitor::BestRate(double middle) const {
  std::vector<double> rates;
  for (const BusyStretch& s : stretches_) {
    if (s.bytes >= middle) rates.push_back(s.bytes / s.us);
  }
  return Quantile(rates, 0.75);
}

// What the smaller half of the stretches took beyond their bytes' time is the startup.
void BandwidthMonitor::Estimate() {
  std::vector<double> sizes, times, startups;
  for (const BusyStretch& s : stretches_) {
    sizes.push_back(s.bytes);
    times.push_back(s.us);
  }
  const double middle = Quantile(sizes, 0.5);
  const double rate = basis_ == Basis::kAll ? AverageRate() : BestRate(middle);
  const bool stands = rate < kLeast && Quantile(times, 0.5) >= kStillUs;
  if (stands && !stands_) {
    notice_ =
        "next to nothing comes through: Prophet has no bandwidth to plan blocks with, and until "
        "it has, tensors go by priority alone";
  }
  stands_ = stands;
  if (rate < kLeast) {
    bytes_per_us_ = 0;
    return;
  }
  const bool rises = bytes_per_us_ > 0 && rate > bytes_per_us_;
  bytes_per_us_ = rises ? bytes_per_us_ + kRise * (rate - bytes_per_us_) : rate;
  for (const BusyStretch& s : stretches_) {
    if (s.bytes < middle / 2) startups.push_back(std::max(s.us - s.bytes / rate, 0.0));
  }
  if (startups.size() >= kSmallOnesMin) startup_us_ = Quantile(startups, 0.25);
}

}  // namespace mercury
