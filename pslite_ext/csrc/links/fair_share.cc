#include "links/fair_share.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"

namespace mercury {
namespace {

// How long the first stretches after a pause are, and all that follow. The very first is not
// measured; the next is short, since there may soon be a pause again.
constexpr int64_t kStretchesUs[] = {5000, 10000, 25000};
constexpr int64_t kBreakUs = 8000;      // a stretch has no pause as long as this
constexpr int64_t kMemoryUs = 2000000;  // the best stretch of so long counts
constexpr int64_t kIdleUs = 1000000;    // then a link is not used
// What an interface counts beyond our bytes, if there are no others': headers, acknowledgements.
constexpr double kOverhead = 1.25;
constexpr double kDelayUs = 1000, kSpareUs = 20000, kQueueUsMax = 6000;
// Multiples of it, less whole ones, are spread evenly however many there are: the golden ratio.
constexpr double kTurn = 0.6180339887;

}  // namespace

void FairShare::Add(int link) { used_at_us_.emplace(link, -kIdleUs); }

void FairShare::Remove(int link) {
  used_at_us_.erase(link);
  count_at_us_ = 0;
}

// While none is used, all of them may be at any moment.
int FairShare::links() const {
  const int all = used_ != 0 ? used_ : static_cast<int>(used_at_us_.size());
  const int own = limits_.take_turns ? 1 : all;
  return std::max(own + (shared_ ? limits_.links_beside : 0), 1);
}

void FairShare::CountUsed(int64_t now_us) {
  used_ = 0;
  count_at_us_ = now_us + kIdleUs;
  for (const auto& [link, at_us] : used_at_us_) {
    if (at_us <= now_us - kIdleUs) continue;
    ++used_;
    count_at_us_ = std::min(count_at_us_, at_us + kIdleUs);
  }
  MERCURY_CHECK(used_ <= static_cast<int>(used_at_us_.size()));
}

void FairShare::Carried(int link, uint64_t bytes, int64_t now_us) {
  if (bytes == 0) return;
  const auto it = used_at_us_.find(link);
  if (it == used_at_us_.end()) return;
  MERCURY_CHECK(it->second <= now_us);
  const bool fresh = it->second <= now_us - kIdleUs;
  it->second = now_us;
  if (fresh || now_us >= count_at_us_) CountUsed(now_us);
  Measure(bytes, now_us);
}

void FairShare::Begin(int64_t now_us, uint64_t host_bytes) {
  start_us_ = now_us;
  bytes_ = 0;
  host_start_ = host_bytes;
}

// What all lanes of the job may have carried for each byte of ours: twice as much as if they were
// even. The rest is of others, such as a disk's over the network.
double FairShare::OfTheJob() const {
  const int own = std::max(used_, 1);
  return 2.0 * (own + limits_.links_beside) / own;
}

void FairShare::Measure(uint64_t bytes, int64_t now_us) {
  const auto host_bytes = [this] {
    return limits_.links_beside > 0 && host_bytes_ ? host_bytes_() : 0;
  };
  const bool paused = start_us_ < 0 || now_us - last_us_ > kBreakUs;
  last_us_ = now_us;
  if (paused) {
    stretch_ = 0;
    return Begin(now_us, host_bytes());
  }
  bytes_ += bytes;
  const int64_t us = now_us - start_us_;
  if (us < kStretchesUs[stretch_]) return;
  const uint64_t host = host_bytes();
  if (stretch_ != 0) {
    auto carried = static_cast<double>(bytes_);
    const auto whole = static_cast<double>(host > host_start_ ? host - host_start_ : 0);
    if (host_start_ != 0 && whole > kOverhead * carried) {
      shared_until_us_ = now_us + kIdleUs;
      carried = std::min(whole, carried * OfTheJob());
    }
    shared_ = now_us < shared_until_us_;
    stretches_.push_back({now_us, carried * 1e6 / static_cast<double>(us)});
    while (stretches_.front().end_us < now_us - kMemoryUs) stretches_.pop_front();
    rate_ = 0;
    for (const Stretch& stretch : stretches_) rate_ = std::max(rate_, stretch.rate);
  }
  stretch_ = std::min(stretch_ + 1, std::size(kStretchesUs) - 1);
  Begin(now_us, host);
}

void FairShare::NextTurn() { turn_ = std::fmod(turn_ + kTurn, 1.0); }

uint64_t FairShare::carries_bytes(double seconds, uint64_t least, uint64_t segment_bytes) const {
  const auto bytes = static_cast<uint64_t>(rate_ * seconds / links());
  return std::max({bytes, least, 2 * segment_bytes});
}

uint64_t FairShare::window_bytes(int64_t round_trip_us, uint64_t segment_bytes) const {
  const double n = links();
  double bytes = static_cast<double>(limits_.first_bytes) / n;
  if (rate_ != 0) {
    const double queue_us = std::min(kDelayUs + kSpareUs / n, kQueueUsMax);
    const double us = 1.25 * static_cast<double>(round_trip_us) + queue_us;
    bytes = rate_ * us * 1e-6 / n;
  }
  // Of a segment that does not fit, nothing is sent.
  bytes += (0.5 + turn_) * static_cast<double>(segment_bytes);
  auto whole = static_cast<uint64_t>(std::min(bytes, static_cast<double>(limits_.bytes_max)));
  if (segment_bytes != 0) whole -= whole % segment_bytes;
  return std::clamp(whole, std::min(limits_.segments_min * segment_bytes, limits_.bytes_max),
                    limits_.bytes_max);
}

}  // namespace mercury
