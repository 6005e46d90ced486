#include "policy/credit.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace mercury {
namespace {

constexpr int64_t kPeriodUs = 10000;     // over which the rate is measured
constexpr int64_t kBurstUsLeast = 1000;  // if all that was sent from its beginning on is back
constexpr size_t kPeriods = 16;          // of which the best counts
constexpr uint64_t kFirstWindow = 256 << 10;
// What a window holds beyond the network's round trip: packets at both ends, and enough that the
// link does not run dry while a process waits for its processor. Workers are never quite level: the
// more each has under way, the more packets wait on servers for their partners.
constexpr double kWindowUs = 2000;
constexpr int64_t kParkAfterUsMin = 20000, kParkAfterUsMax = 1000000;
constexpr int kDoublingsMax = 20;

}  // namespace

uint64_t Credit::window_bytes() const {
  uint64_t window = limits_.fixed_bytes;
  if (window == 0 && rate_ == 0) window = kFirstWindow;
  if (window == 0) {
    const double us = 1.25 * static_cast<double>(round_trip_us_) + kWindowUs;
    window = static_cast<uint64_t>(rate_ * us * 1e-6);
    window = std::clamp(window, limits_.bytes_min, limits_.bytes_max);
  }
  return window << doublings_;
}

// Four times what a full window needs at the measured rate.
int64_t Credit::ParkAfterUs() const {
  if (rate_ == 0) return 4 * kParkAfterUsMin;
  const double window = static_cast<double>(window_bytes() >> doublings_);
  const auto us = static_cast<int64_t>(4e6 * window / rate_);
  return std::clamp(us, kParkAfterUsMin, kParkAfterUsMax);
}

bool Credit::MaySend(int32_t urgency, uint64_t least, int64_t now_us) {
  if (counted_ < std::max(window_bytes(), least)) return true;
  Park(now_us);
  const uint64_t window = std::max(window_bytes(), least);
  uint64_t ahead = 0;
  for (const auto& [other, bytes] : by_urgency_) {
    if (other < urgency) break;
    ahead += bytes;
    if (ahead >= window) return false;
  }
  return true;
}

void Credit::Recount(Portions::iterator it, uint64_t before) {
  const Account& portion = it->second;
  const uint64_t after = portion.counted();
  counted_ += after - before;
  const auto sum = by_urgency_.emplace(portion.urgency, 0).first;
  sum->second += after - before;
  if (sum->second == 0) by_urgency_.erase(sum);
  MERCURY_CHECK(std::max(portion.returned, portion.parked) <= portion.sent);
  MERCURY_CHECK(IsCounted());
}

// Whether what is counted by urgency is all that is counted.
bool Credit::IsCounted() const {
  uint64_t sum = 0;
  for (const auto& [urgency, bytes] : by_urgency_) {
    if (bytes == 0) return false;
    sum += bytes;
  }
  return sum == counted_;
}

void Credit::Sent(uint64_t id, int32_t urgency, uint64_t bytes, int64_t now_us) {
  const auto it = portions_.emplace(id, Account{}).first;
  const uint64_t before = it->second.counted();
  MERCURY_CHECK(before == 0 || it->second.urgency == urgency);
  it->second.urgency = urgency;
  it->second.sent += bytes;
  Recount(it, before);
  departures_.push_back({now_us, id, it->second.sent});
  if (period_start_us_ < 0) {
    period_start_us_ = now_us;
    period_bytes_ = 0;
    from_idle_ = true;
  }
}

void Credit::Returned(uint64_t id, uint64_t bytes, int64_t now_us) {
  const auto it = portions_.find(id);
  if (it == portions_.end()) return;
  Account& portion = it->second;
  const uint64_t before = portion.counted();
  portion.returned = std::min(portion.returned + bytes, portion.sent);
  Recount(it, before);
  Park(now_us);  // so that what is parked for long does not pile up either
  doublings_ = 0;
  Measure(bytes, now_us);
  while (!departures_.empty()) {
    const auto oldest = portions_.find(departures_.front().portion);
    if (oldest != portions_.end() && oldest->second.returned < departures_.front().sent) break;
    departures_.pop_front();
  }
}

// An idle link says nothing of its rate.
void Credit::Measure(uint64_t bytes, int64_t now_us) {
  if (period_start_us_ < 0) return;
  period_bytes_ += bytes;
  const bool idle = counted_ == 0;
  const int64_t us = now_us - period_start_us_;
  if (!idle && us < kPeriodUs) return;
  period_start_us_ = idle ? -1 : now_us;
  const auto measured = static_cast<double>(std::exchange(period_bytes_, 0));
  const int64_t least = std::exchange(from_idle_, false) ? kBurstUsLeast : kPeriodUs;
  if (us < least) return;
  rates_.push_back(measured * 1e6 / static_cast<double>(us));
  if (rates_.size() > kPeriods) rates_.pop_front();
  rate_ = *std::max_element(rates_.begin(), rates_.end());
}

void Credit::Park(int64_t now_us) {
  const int64_t limit = now_us - ParkAfterUs();
  bool parked = false;
  while (!departures_.empty() && departures_.front().at_us <= limit) {
    const auto it = portions_.find(departures_.front().portion);
    if (it != portions_.end()) {
      const uint64_t before = it->second.counted();
      it->second.parked = std::max(it->second.parked, departures_.front().sent);
      Recount(it, before);
      parked = parked || it->second.counted() != before;
    }
    departures_.pop_front();
  }
  if (parked && doublings_ < kDoublingsMax) ++doublings_;
}

void Credit::Forget(uint64_t id) {
  const auto it = portions_.find(id);
  if (it == portions_.end()) return;
  const uint64_t before = it->second.counted();
  it->second.returned = it->second.sent;
  Recount(it, before);
  if (counted_ == 0) period_start_us_ = -1;
  portions_.erase(it);
  while (!departures_.empty() && portions_.count(departures_.front().portion) == 0)
    departures_.pop_front();
}

int64_t Credit::WakeAt() const {
  return departures_.empty() ? kNever : departures_.front().at_us + ParkAfterUs();
}

}  // namespace mercury
