#include "packets/awaited.h"

#include <algorithm>
#include <utility>

namespace mercury {

Awaited::Awaited(int workers, Says says)
    : says_(std::move(says)), workers_(static_cast<size_t>(workers)) {}

void Awaited::Came(int worker, int64_t others_us, int64_t before_us, int64_t now_us) {
  if (workers_.size() < 2 || before_us == 0) return;
  if (began_us_ == 0) began_us_ = now_us;
  // What others were late for, too, nobody is waited for alone.
  workers_[static_cast<size_t>(worker)].waited_us += now_us - std::max(others_us, before_us);
  took_us_ += now_us - before_us;
  ++sums_;
  if (now_us - began_us_ < kWindowUs) return;
  if (sums_ >= kLeast) EndWindow();
  began_us_ = now_us;
}

void Awaited::EndWindow() {
  for (size_t w = 0; w < workers_.size(); ++w) {
    Record& worker = workers_[w];
    worker.permille = static_cast<int>(worker.waited_us * 1000 / std::max<int64_t>(took_us_, 1));
    worker.waited_us = 0;
    worker.slow_windows = worker.permille >= kSlowPermille ? worker.slow_windows + 1 : 0;
    const bool slow =
        worker.slow ? worker.permille >= kFinePermille : worker.slow_windows >= kWindows;
    if (slow != worker.slow && says_) says_(static_cast<int>(w), slow ? worker.permille : 0);
    worker.slow = slow;
  }
  took_us_ = 0;
  sums_ = 0;
}

}  // namespace mercury
