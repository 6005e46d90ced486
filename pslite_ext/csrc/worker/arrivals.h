// Which chunks of sums are in, for somebody who takes them as they come, whichever sum they are of.
//
// Thread-safety: all functions from any thread. Ownership: sums under way share the queue.
// Invariant: each chunk of a sum that ends well comes out once, and the end of each sum once.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace mercury {

class ArrivalQueue {
 public:
  static constexpr uint64_t kOver = ~uint64_t{0};  // instead of a chunk: the sum is, well or not
  struct Item {
    uint64_t sum = 0, chunk = 0;
  };

  void Push(const Item& item) {
    const std::lock_guard<std::mutex> lock(mutex_);
    items_.push_back(item);
    changed_.notify_one();
  }
  // At most so long; false: there is none.
  bool Pop(int slice_ms, Item* item) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto slice = std::chrono::milliseconds(slice_ms);
    if (!changed_.wait_for(lock, slice, [this] { return !items_.empty(); })) return false;
    *item = items_.front();
    items_.pop_front();
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
};

// Of one sum, in chunks of so many elements; the last one may be shorter.
class Arrivals {
 public:
  Arrivals(uint64_t elements, uint64_t chunk_elements, std::shared_ptr<ArrivalQueue> queue,
           uint64_t sum)
      : elements_(elements),
        chunk_(std::max<uint64_t>(chunk_elements, 1)),
        queue_(std::move(queue)),
        sum_(sum),
        missing_((elements + chunk_ - 1) / chunk_, chunk_) {
    if (elements % chunk_ != 0) missing_.back() = elements % chunk_;
  }

  // Elements that had not been in.
  void Arrived(uint64_t begin, uint64_t count) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t end = std::min(begin + count, elements_);
    for (uint64_t at = begin; at < end;) {
      const uint64_t chunk = at / chunk_;
      const uint64_t here = std::min(end, (chunk + 1) * chunk_) - at;
      at += here;
      missing_[chunk] -= here;
      if (missing_[chunk] == 0) queue_->Push({sum_, chunk});
      if (missing_[chunk] == 0 && ++in_ == missing_.size() && ended_) queue_->Push({sum_, kOver});
    }
  }
  // Nothing more comes, but what another lane brings just now if `all` is to come.
  void End(bool all) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    if (!all || in_ == missing_.size()) queue_->Push({sum_, kOver});
  }

 private:
  static constexpr uint64_t kOver = ArrivalQueue::kOver;
  const uint64_t elements_, chunk_;
  const std::shared_ptr<ArrivalQueue> queue_;
  const uint64_t sum_;
  std::mutex mutex_;
  std::vector<uint64_t> missing_;  // elements, by chunk
  size_t in_ = 0;
  bool ended_ = false;
};

}  // namespace mercury
