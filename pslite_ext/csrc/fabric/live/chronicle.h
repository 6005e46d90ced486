// The scheduler's record of a job, one line of JSON per event: requests, plans, hops, commits, what
// became of updates, what links have carried (docs/fabric.md has the format).
//
// Thread-safety: none, one owner; `now_s` is passed in, by the scheduler's clock. No I/O: the owner
// takes the lines and writes them. Invariants: lines are in the order of events; at most
// `most_bytes` wait to be taken, and a line counts those that were lost for lack of room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "fabric/live/collector.h"
#include "fabric/live/letters.h"
#include "fabric/live/model_daemon.h"
#include "fabric/live/orders.h"

namespace mercury::fabric {

class Chronicle {
 public:
  explicit Chronicle(size_t most_bytes) : most_bytes_(most_bytes) {}

  void Asked(const Request& request, double now_s);
  void Told(const News& news, int node, double now_s);
  // Plans, hops, fates and whole models; what else is ordered follows from these.
  void Ordered(const Order& order, double now_s);
  // Of a model, to those who have asked for it.
  void Grew(const Tree& tree, double now_s);
  // The orders of the last plan are on their way; a worker has heard its own.
  void SentOut(double now_s);
  void Heard(const Hearing& hearing, double now_s);
  void Carried(const Carriage& run, double now_s);
  void Gone(int node, double now_s);

  // What was written since it was asked last.
  std::string Take();

 private:
  void Write(const char* event, double now_s, const std::string& members);

  const size_t most_bytes_;
  std::string lines_;
  int64_t missed_ = 0;
};

}  // namespace mercury::fabric
