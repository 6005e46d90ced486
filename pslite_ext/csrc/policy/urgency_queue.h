// What waits to be sent: one FIFO for each priority, and the most urgent non-empty one found in
// constant time through a bit map of bit maps.
//
// Priorities are MXNet's: any int32, larger is more urgent. They are mapped, in order, to at most
// `levels_max` levels as they are first seen (that once costs time proportional to the levels and
// to what waits); when there are more priorities than levels, neighbours share one, first come,
// first served. When there are more than can be remembered, those that differ in their last bit
// alone are one from then on, then in the last two, and so on: what has been seen is never new
// again.
//
// Thread-safety: none. Invariants: Front is the oldest item of the most urgent non-empty level;
// items of one priority keep their order; of two levels, the more urgent one has the larger
// priorities.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace mercury {

// With more priorities than that, neighbours share a queue. Two words of bits find the first.
constexpr size_t kPriorityLevelsMax = 4096;

template <typename Item>
class UrgencyQueue {
 public:
  explicit UrgencyQueue(size_t levels_max = kPriorityLevelsMax)
      : levels_max_(std::clamp<size_t>(levels_max, 1, kPriorityLevelsMax)) {}

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  void Push(int32_t priority, Item item) {
    const size_t level = Learn(priority);
    levels_[level].push_back({priority, std::move(item)});
    Mark(level);
    ++size_;
    MERCURY_CHECK(levels_.size() <= levels_max_);
  }

  // Neither may be called when empty.
  Item& Front() { return levels_[First()].front().second; }
  int32_t FrontPriority() { return levels_[First()].front().first; }
  Item Pop() {
    const size_t level = First();
    Item item = std::move(levels_[level].front().second);
    levels_[level].pop_front();
    --size_;
    if (levels_[level].empty()) Unmark(level);
    MERCURY_CHECK((size_ == 0) == (summary_ == 0));
    return item;
  }

  // Where the first item is, in the order of Front, that `may` be taken; false: none is.
  struct Position {
    size_t level = 0, index = 0;
  };
  template <typename Predicate>
  bool Find(Predicate may, Position* at) const {
    if (size_ == 0) return false;
    for (size_t level = First(); level < levels_.size(); ++level) {
      for (size_t index = 0; index < levels_[level].size(); ++index) {
        *at = {level, index};
        if (may(levels_[level][index].second)) return true;
      }
    }
    return false;
  }
  Item& At(Position at) { return levels_[at.level][at.index].second; }
  void Erase(Position at) {
    levels_[at.level].erase(levels_[at.level].begin() + static_cast<std::ptrdiff_t>(at.index));
    --size_;
    if (levels_[at.level].empty()) Unmark(at.level);
  }

  // Removes what `is` says; the order of the rest stays.
  template <typename Predicate>
  void Remove(Predicate is) {
    std::vector<std::pair<int32_t, Item>> rest;
    Drain(&rest);
    for (auto& [priority, item] : rest) {
      if (!is(item)) Push(priority, std::move(item));
    }
  }

  // How many wait, by priority, the most urgent first; empty ones are left out.
  std::vector<std::pair<int32_t, size_t>> Depths() const {
    std::vector<std::pair<int32_t, size_t>> depths;
    for (const auto& level : levels_) {
      for (const auto& entry : level) {
        auto at = std::find_if(depths.begin(), depths.end(),
                               [&](const auto& d) { return d.first == entry.first; });
        if (at == depths.end()) at = depths.insert(at, {entry.first, 0});
        ++at->second;
      }
    }
    std::sort(depths.begin(), depths.end(), [](auto& a, auto& b) { return a.first > b.first; });
    return depths;
  }

 private:
  static constexpr size_t kKnownMax = 4096;
  static uint64_t Bit(size_t i) { return uint64_t{1} << i; }
  size_t First() const {
    MERCURY_CHECK(size_ != 0);
    const auto group = static_cast<size_t>(__builtin_ctzll(summary_));
    const size_t level = group * 64 + static_cast<size_t>(__builtin_ctzll(groups_[group]));
    MERCURY_CHECK(!levels_[level].empty());
    return level;
  }
  void Mark(size_t level) {
    groups_[level / 64] |= Bit(level % 64);
    summary_ |= Bit(level / 64);
  }

  void Unmark(size_t level) {
    groups_[level / 64] &= ~Bit(level % 64);
    if (groups_[level / 64] == 0) summary_ &= ~Bit(level / 64);
  }

  size_t LevelAt(size_t index) const {
    return known_.size() <= levels_max_ ? index : index * levels_max_ / known_.size();
  }
  // The level of a priority; makes room for one that is new.
  size_t Learn(int32_t priority) {
    const int32_t group = priority >> shift_;  // rounded down
    const auto at = std::lower_bound(known_.begin(), known_.end(), group, std::greater<>());
    const auto index = static_cast<size_t>(at - known_.begin());
    if (at != known_.end() && *at == group) return LevelAt(index);
    std::vector<std::pair<int32_t, Item>> waiting;
    Drain(&waiting);
    known_.insert(at, group);
    while (known_.size() > kKnownMax) {
      ++shift_;
      for (int32_t& each : known_) each >>= 1;
      known_.erase(std::unique(known_.begin(), known_.end()), known_.end());
    }
    MERCURY_CHECK(std::is_sorted(known_.begin(), known_.end(), std::greater<>()));
    levels_.resize(std::min(known_.size(), levels_max_));
    groups_.resize((levels_.size() + 63) / 64, 0);
    for (auto& [old, item] : waiting) Push(old, std::move(item));
    return Learn(priority);
  }
  void Drain(std::vector<std::pair<int32_t, Item>>* out) {
    for (auto& level : levels_) {
      for (auto& entry : level) out->push_back(std::move(entry));
      level.clear();
    }
    std::fill(groups_.begin(), groups_.end(), 0);
    summary_ = 0;
    size_ = 0;
  }

  const size_t levels_max_;
  int shift_ = 0;               // bits in which priorities are not told apart
  std::vector<int32_t> known_;  // without those, descending
  std::vector<std::deque<std::pair<int32_t, Item>>> levels_;
  std::vector<uint64_t> groups_;
  uint64_t summary_ = 0;
  size_t size_ = 0;
};

}  // namespace mercury
