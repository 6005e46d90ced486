#include "fabric/live/group_order.h"

#include <algorithm>

#include "base/check.h"

namespace mercury::fabric {

bool GroupOrder::Awaits(int64_t place) const {
  const auto member = std::lower_bound(places_.begin(), places_.end(), place);
  return member != places_.end() && *member == place &&
         static_cast<size_t>(member - places_.begin()) >= next_ && here_.count(place) == 0 &&
         absent_.count(place) == 0;
}

std::vector<int64_t> GroupOrder::Arrive(int64_t place) {
  if (!Awaits(place)) return {};
  here_.insert(place);
  return Advance();
}

std::vector<int64_t> GroupOrder::Skip(int64_t place) {
  if (!Awaits(place)) return {};
  absent_.insert(place);
  return Advance();
}

std::vector<int64_t> GroupOrder::Advance() {
  std::vector<int64_t> now;
  for (; next_ < places_.size(); ++next_) {
    const int64_t place = places_[next_];
    if (here_.erase(place) != 0) {
      added_.push_back(place);
      now.push_back(place);
    } else if (absent_.erase(place) != 0) {
      skipped_.push_back(place);
    } else {
      break;
    }
  }
  MERCURY_CHECK(added_.size() + skipped_.size() == next_);
  return now;
}

}  // namespace mercury::fabric
