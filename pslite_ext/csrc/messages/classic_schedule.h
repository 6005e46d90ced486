// Runs a ProphetQueue: one thread that hands gradients over to the classic path when the queue says
// so.
//
// Thread-safety: all functions from any thread; gradients are handed over on the schedule's own, in
// the queue's order. Invariant: what was added is handed over exactly once; after Flush at once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "messages/prophet_queue.h"
#include "policy/prophet/prophet_notes.h"

namespace mercury {

class ClassicSchedule {
 public:
  using HandOver = std::function<void()>;

  ClassicSchedule(int profile_steps, const std::string& profile_text);
  ~ClassicSchedule();

  uint64_t NewId();
  void Add(uint64_t id, uint64_t key, uint64_t bytes, int32_t priority, HandOver hand_over);
  void Confirmed(uint64_t id);
  void Done(uint64_t id);
  // Nothing waits any more: there is no job.
  void Flush();

  ProphetFigures profile_figures();
  BlockFigures blocks();
  std::string Profile(const ProphetProfile::NameOf& name_of);

 private:
  void Run();

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  ProphetQueue queue_;
  ProphetNotes notes_;
  uint64_t next_id_ = 1;
  std::unordered_map<uint64_t, HandOver> waiting_;
  bool flushed_ = false, stopping_ = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace mercury
