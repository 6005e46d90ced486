// Whether this node is in the job, and hears its scheduler: a node's view of membership.h's.
//
//   joining --assigned--> running --told so--> ended | failed
//       \___start timeout, lost scheduler, failed job__/--> failed
//
// Thread-safety: none; owned by the van's I/O loop. No I/O, no clock (`now_ms` is passed in).
// Invariant: after a kFail action there is no other.
#pragma once

#include <cstdint>
#include <string>

#include "control/membership.h"

namespace mercury {

class NodeMembership {
 public:
  NodeMembership(std::string scheduler_address, const MembershipTimes& times, int64_t now_ms);

  void Assigned(int64_t now_ms);
  void Heard(int64_t now_ms) { heard_ms_ = now_ms; }
  void Suspect(int64_t now_ms);
  // While joining: the scheduler says more to this node, of which the first message never came. It
  // may be for who was here before, and this one is refused; else that message is lost.
  void HeardLate(int64_t now_ms) {
    if (late_since_ms_ < 0) late_since_ms_ = now_ms;
  }
  int64_t waited_ms(int64_t now_ms) const { return now_ms - started_ms_; }
  void End() { state_ = State::kEnded; }
  Actions Tick(int64_t now_ms);

 private:
  enum class State { kJoining, kRunning, kEnded };
  Actions GiveUp(const Status& why);
  const std::string scheduler_address_;
  const MembershipTimes times_;
  State state_ = State::kJoining;
  int64_t started_ms_, next_warn_ms_, last_tick_ms_, next_heartbeat_ms_, heard_ms_;
  int64_t late_since_ms_ = -1;
};

}  // namespace mercury
