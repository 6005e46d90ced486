// Events on their way from the threads that see them to the one that writes them down.
//
// A bounded queue of many producers and one consumer, without locks: a producer takes a place with
// one compare-and-swap and never waits. If there is no place, the event is lost and counted.
//
// Thread-safety: Add and lost from any thread; Take from one. Ownership: its memory is allocated
// once. Invariants: what is taken was added, once, in an order in which each thread's events keep
// theirs; added = taken + lost + still inside. `wake` is called when the ring becomes half full,
// once until the next Rearm.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "trace/trace_event.h"

namespace mercury {

class TraceRing {
 public:
  // `capacity` is rounded up to a power of two.
  explicit TraceRing(size_t capacity, std::function<void()> wake = nullptr);

  // False: there was no room.
  bool Add(const TraceEvent& event);
  // False: there is nothing (or the next event is just being written).
  bool Take(TraceEvent* event);
  void Rearm() { woken_.store(false, std::memory_order_relaxed); }
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }
  size_t capacity() const { return mask_ + 1; }

 private:
  struct Cell {
    // Its turn: equal to a position when free for it, one more when it holds that event.
    std::atomic<uint64_t> turn{0};
    TraceEvent event;
  };

  const uint64_t mask_;
  const std::function<void()> wake_;
  const std::unique_ptr<Cell[]> places_;
  std::atomic<uint64_t> tail_{0};  // where the next event goes
  std::atomic<uint64_t> head_{0};  // which is taken next; written by the consumer
  std::atomic<uint64_t> lost_{0};
  std::atomic<bool> woken_{false};
};

}  // namespace mercury
