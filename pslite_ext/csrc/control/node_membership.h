// Whether this node is in the job, and hears its scheduler: a node's view of membership.h's.
//
//   joining --assigned--> running --told so--> ended | failed
//       \___start timeout, lost scheduler, failed job__/--> failed
//   running --lost scheduler--> alone --heard again--> running       if the job may lose nodes
//
// Alone, nodes train on; but nobody is there who could say that they go on without another. They
// take their time to find themselves alone, since another scheduler may go on in the first one's
// place; that one may tell them again what they know.
//
// Thread-safety: none; owned by the van's I/O loop. No I/O, no clock (`now_ms` is passed in).
// Invariant: after a kFail action there is no other.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "control/membership.h"

namespace mercury {

class NodeMembership {
 public:
  NodeMembership(std::string scheduler_address, const MembershipTimes& times, int64_t now_ms);

  void Assigned(int64_t now_ms);
  // A job that may lose nodes may lose its scheduler, too.
  void GoOnAlone() { may_be_alone_ = true; }
  bool alone() const { return state_ == State::kAlone; }
  // That the scheduler may be lost, or be heard again soon: what waits for its word waits longer.
  bool MayBeAloneSoon(int64_t now_ms) const {
    return may_be_alone_ && state_ == State::kRunning &&
           (suspected_ || now_ms - heard_ms_ >= times_.suspicion_ms());
  }
  // A worker has let it in, as this node knows before it hears so from the scheduler.
  void IsLetIn(int node, uint8_t entry) { let_in_[node] = entry; }
  // That the job goes on without the scheduler and without that node, a newcomer that is not in.
  bool DoesWithout(int node) const;
  // That no verdict on that node is to be expected now.
  bool WaitsForWordOf(int node, int64_t now_ms) const {
    return MayBeAloneSoon(now_ms) || DoesWithout(node);
  }
  // Whether that is news of who comes in that place: nothing is taken back.
  bool IsNews(const Member& newcomer, Admission admission);
  Actions Heard(int64_t now_ms);
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
  enum class State { kJoining, kRunning, kAlone, kEnded };
  Actions GiveUp(const Status& why);
  const std::string scheduler_address_;
  const MembershipTimes times_;
  State state_ = State::kJoining;
  int64_t started_ms_, next_warn_ms_, last_tick_ms_, next_heartbeat_ms_, heard_ms_;
  int64_t late_since_ms_ = -1;
  bool may_be_alone_ = false, suspected_ = false;
  std::map<int, std::pair<uint8_t, Admission>> heard_of_;  // by node: which entry is how far
  std::map<int, uint8_t> let_in_;                          // by node: which entry
};

}  // namespace mercury
