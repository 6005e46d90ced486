#include "links/link_progress.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace mercury {
namespace {

constexpr int64_t kIntervalMaxUs = 1000000;
constexpr int64_t kIntervalsInTimeout = 10;

std::string Seconds(int64_t us) {
  return us < 1000000 ? std::to_string(us / 1000) + " ms" : std::to_string(us / 1000000) + " s";
}

}  // namespace

LinkProgress::LinkProgress(int64_t timeout_us)
    : timeout_us_(timeout_us),
      interval_us_(std::clamp<int64_t>(timeout_us / kIntervalsInTimeout, 1, kIntervalMaxUs)) {}

void LinkProgress::Use(int64_t now_us) {
  if (tick_at_us_ != kNever) return;
  ticked_at_us_ = now_us;
  tick_at_us_ = now_us + interval_us_;
  silent_us_ = stuck_us_ = 0;
}

void LinkProgress::Sent(uint64_t bytes, int64_t now_us) {
  const uint64_t of_report = std::min(bytes, report_left_);
  report_left_ -= of_report;
  sent_ += bytes;
  MERCURY_CHECK(heard_ <= sent_ && owed_ <= sent_);
  if (bytes == of_report) return;
  owed_ = sent_;
  Use(now_us);
}

void LinkProgress::Received(uint64_t bytes, bool news, int64_t now_us) {
  received_ += bytes;
  came_ = true;
  if (!news) return;
  news_ = true;
  Use(now_us);
}

Status LinkProgress::Heard(uint64_t count) {
  if (count < heard_ || count > sent_) {
    return Status::Corrupt("it says that " + std::to_string(count) + " bytes have reached it, of " +
                           std::to_string(sent_) + " that were sent, and " +
                           std::to_string(heard_) + " before");
  }
  heard_ = count;
  return Status::Ok();
}

Status LinkProgress::Tick(int64_t now_us, bool in_packet) {
  if (now_us < tick_at_us_) return Status::Ok();
  MERCURY_CHECK(tick_at_us_ != kNever && ticked_at_us_ <= now_us);
  const int64_t elapsed_us = std::min(now_us - ticked_at_us_, 2 * interval_us_);
  silent_us_ = under_way() && !came_ ? silent_us_ + elapsed_us : 0;
  stuck_us_ = in_packet && !came_ ? stuck_us_ + elapsed_us : 0;
  came_ = false;
  report_due_ = report_due_ || news_;
  news_ = false;
  if (silent_us_ >= timeout_us_) {
    return Status::PeerLost("its connection stands, but of what was sent to it " +
                            std::to_string(owed_ - heard_) + " bytes have not arrived, and for " +
                            Seconds(timeout_us_) +
                            " nothing has come from it: bytes vanish on the way, or it hangs");
  }
  if (stuck_us_ >= timeout_us_) {
    return Status::PeerLost("its connection stands, but for " + Seconds(timeout_us_) +
                            " nothing has come of a packet that had begun: bytes vanish on the "
                            "way, or it hangs");
  }
  ticked_at_us_ = now_us;
  tick_at_us_ = under_way() || in_packet ? now_us + interval_us_ : kNever;
  return Status::Ok();
}

uint64_t LinkProgress::TakeReport(uint64_t bytes) {
  report_due_ = false;
  report_left_ += bytes;
  return received_;
}

}  // namespace mercury
