#include "messages/prophet_queue.h"

#include <algorithm>

#include "policy/prophet/prophet_blocks.h"

namespace mercury {
namespace {

constexpr int64_t kLateUsMax = 5000;       // how long a late gradient is waited for
constexpr int64_t kBlockUsMax = 10000000;  // however slow the network seems to be

}  // namespace

void ProphetQueue::Ready(uint64_t id, uint64_t key, uint64_t bytes, int32_t priority,
                         int64_t now_us) {
  profile_.Ready(key, bytes, priority, now_us);
  waiting_[{-static_cast<int64_t>(priority), id}] = {key, bytes};
}

bool ProphetQueue::Busy(int64_t now_us) const {
  // A block of the backward pass is no longer waited for when that is over: nothing of it can be
  // called back, and gradient 0 goes at once.
  if (in_backward_ && !profile_.in_backward()) return false;
  return !block_.empty() && now_us >= block_started_us_ && now_us < block_ends_us_;
}

std::vector<uint64_t> ProphetQueue::Take(int64_t now_us) {
  wake_at_us_ = kNever;
  if (waiting_.empty()) return {};
  size_t count = waiting_.size();
  is_planned_ = false;
  if (Plans()) {
    if (Busy(now_us)) {
      wake_at_us_ = block_ends_us_;
      return {};
    }
    count = profile_.in_backward() ? BlockSize(now_us) : 1;
    if (count == 0) return {};
    in_backward_ = profile_.in_backward();
  }
  record_.EndHold(now_us);
  if (unconfirmed_.empty()) monitor_.Begin(now_us);
  std::vector<uint64_t> ids;
  uint64_t bytes = 0;
  block_.clear();
  for (; count != 0; --count) {
    const auto first = waiting_.begin();
    const uint64_t id = first->first.second;
    ids.push_back(id);
    bytes += first->second.bytes;
    handed_over_[id] = first->second;
    unconfirmed_.insert(id);
    block_.insert(id);
    waiting_.erase(first);
  }
  block_started_us_ = block_ends_us_ = now_us;
  if (Plans()) {
    // Afterwards, the startup of one transfer is hidden behind the one before.
    const double startup_us = is_planned_ ? monitor_.startup_us() : 0;
    const double us = startup_us + monitor_.WireUs(static_cast<double>(bytes));
    block_ends_us_ += std::min(static_cast<int64_t>(std::min(us, 1e15)), kBlockUsMax);
  }
  if (is_planned_) {
    record_.Began();
    record_.Sent(bytes);
  }
  return ids;
}

// How many of the waiting are the next block; 0: none now.
size_t ProphetQueue::BlockSize(int64_t now_us) {
  std::vector<BlockCandidate> candidates;
  double used_us = 0;
  for (const auto& [place, gradient] : waiting_) {
    const double room = profile_.RoomUs(static_cast<int32_t>(-place.first), now_us);
    candidates.push_back({monitor_.WireUs(static_cast<double>(gradient.bytes)), 1, room});
    used_us += candidates.back().unit_us;
    if (used_us > room) break;  // closes the block
  }
  const size_t count = AssembleBlock(candidates, monitor_.startup_us()).size();
  is_planned_ = count != 0;
  if (count != 0) return count;
  return OneOrHold(now_us, candidates[0].room_us, monitor_.startup_us() + candidates[0].unit_us);
}

// Nothing fits. What fits into no other gap of this backward pass either would only leave the link
// idle by waiting; anything else waits for the next gap.
size_t ProphetQueue::OneOrHold(int64_t now_us, double room_us, double transfer_us) {
  record_.Hold(now_us);
  if (transfer_us > static_cast<double>(profile_.LongestGapUs(now_us))) return 1;
  if (room_us <= -static_cast<double>(kLateUsMax)) return 1;
  wake_at_us_ = now_us + static_cast<int64_t>(room_us > 0 ? room_us : room_us + kLateUsMax) + 1;
  return 0;
}

void ProphetQueue::Confirmed(uint64_t id, int64_t now_us) {
  const auto it = handed_over_.find(id);
  if (it == handed_over_.end() || unconfirmed_.erase(id) == 0) return;
  monitor_.Carried(it->second.bytes, unconfirmed_.empty(), now_us);
  if (block_.erase(id) == 0 || !block_.empty() || block_ends_us_ == block_started_us_) return;
  record_.Ended(static_cast<double>(now_us - block_ends_us_));
}

void ProphetQueue::Done(uint64_t id, int64_t now_us) {
  Confirmed(id, now_us);
  const auto it = handed_over_.find(id);
  if (it == handed_over_.end()) return;
  profile_.Done(it->second.key, now_us);
  handed_over_.erase(it);
}

BlockFigures ProphetQueue::blocks() const { return record_.Figures(monitor_.bytes_per_second()); }

std::vector<std::string> ProphetQueue::TakeNotices() {
  std::vector<std::string> notices = profile_.TakeNotices();
  if (std::string notice = monitor_.TakeNotice(); !notice.empty()) {
    notices.push_back(std::move(notice));
  }
  return notices;
}

}  // namespace mercury
