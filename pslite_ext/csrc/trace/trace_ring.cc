#include "trace/trace_ring.h"

#include <utility>

#include "base/check.h"

namespace mercury {
namespace {

uint64_t PowerOfTwo(size_t least) {
  uint64_t power = 2;
  while (power < least) power *= 2;
  return power;
}

}  // namespace

TraceRing::TraceRing(size_t capacity, std::function<void()> wake)
    : mask_(PowerOfTwo(capacity) - 1), wake_(std::move(wake)), places_(new Cell[mask_ + 1]) {
  for (uint64_t i = 0; i <= mask_; ++i) places_[i].turn.store(i, std::memory_order_relaxed);
}

bool TraceRing::Add(const TraceEvent& event) {
  uint64_t at = tail_.load(std::memory_order_relaxed);
  Cell* place;
  while (true) {
    place = &places_[at & mask_];
    const uint64_t turn = place->turn.load(std::memory_order_acquire);
    if (turn == at) {
      if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) break;
    } else if (turn < at) {  // still holds an event of the round before
      lost_.fetch_add(1, std::memory_order_relaxed);
      return false;
    } else {  // somebody else was faster
      at = tail_.load(std::memory_order_relaxed);
    }
  }
  place->event = event;
  place->turn.store(at + 1, std::memory_order_release);
  const bool half = at - head_.load(std::memory_order_relaxed) > mask_ / 2;
  if (half && wake_ && !woken_.exchange(true, std::memory_order_relaxed)) wake_();
  return true;
}

bool TraceRing::Take(TraceEvent* event) {
  const uint64_t at = head_.load(std::memory_order_relaxed);
  Cell& place = places_[at & mask_];
  if (place.turn.load(std::memory_order_acquire) != at + 1) return false;
  MERCURY_CHECK(at < tail_.load(std::memory_order_relaxed));
  *event = place.event;
  place.turn.store(at + mask_ + 1, std::memory_order_release);
  head_.store(at + 1, std::memory_order_relaxed);
  return true;
}

}  // namespace mercury
