#include "control/node_membership.h"

#include <algorithm>
#include <utility>

namespace mercury {

NodeMembership::NodeMembership(std::string scheduler_address, const MembershipTimes& times,
                               int64_t now_ms)
    : scheduler_address_(std::move(scheduler_address)),
      times_(times),
      started_ms_(now_ms),
      next_warn_ms_(now_ms + times.start_warn_ms),
      last_tick_ms_(now_ms),
      next_heartbeat_ms_(now_ms),
      heard_ms_(now_ms) {}

void NodeMembership::Suspect(int64_t now_ms) {
  suspected_ = true;
  if (may_be_alone_) return;
  heard_ms_ = std::min(heard_ms_, now_ms - times_.heartbeat_timeout_ms + times_.suspicion_ms());
}

void NodeMembership::Assigned(int64_t now_ms) {
  state_ = State::kRunning;
  heard_ms_ = now_ms;
  next_heartbeat_ms_ = now_ms;
}

Actions NodeMembership::Heard(int64_t now_ms) {
  heard_ms_ = now_ms;
  suspected_ = false;
  if (state_ != State::kAlone) return {};
  state_ = State::kRunning;
  return {{Action::kAlone, kSchedulerId, "", {}, Status::Ok()}};
}

bool NodeMembership::DoesWithout(int node) const {
  const auto heard = heard_of_.find(node);
  if (!alone() || heard == heard_of_.end() || heard->second.second == Admission::kIn) return false;
  const auto let_in = let_in_.find(node);
  return let_in == let_in_.end() || let_in->second != heard->second.first;
}

bool NodeMembership::IsNews(const Member& newcomer, Admission admission) {
  const auto [known, first] = heard_of_.try_emplace(newcomer.id, newcomer.entry, admission);
  auto& [entry, is_at] = known->second;
  if (!first && entry == newcomer.entry && admission <= is_at) return false;
  entry = newcomer.entry;
  is_at = admission;
  return true;
}

Actions NodeMembership::GiveUp(const Status& why) {
  state_ = State::kEnded;
  return {{Action::kFail, kSchedulerId, "", {}, why}};
}

Actions NodeMembership::Tick(int64_t now_ms) {
  if (state_ == State::kEnded) return {};
  const int64_t pause = times_.own_pause_ms(now_ms, last_tick_ms_);
  last_tick_ms_ = now_ms;
  MembershipTimes::LeaveOut(pause, now_ms, &heard_ms_);
  if (state_ == State::kJoining) {
    if (late_since_ms_ >= 0) late_since_ms_ += pause;
    if (late_since_ms_ >= 0 && now_ms - late_since_ms_ >= times_.suspicion_ms()) {
      return GiveUp(Status::PeerLost("this node and the scheduler (" + scheduler_address_ +
                                     ") cannot reach each other: messages were lost on the way"));
    }
    if (now_ms - started_ms_ >= times_.node_start_timeout_ms()) {
      return GiveUp(Status::Timeout(
          "the scheduler at " + scheduler_address_ + " did not start the job within " +
          Seconds(times_.start_timeout_ms) +
          ": is it running, is the address right, have all nodes the same job token?"));
    }
    if (now_ms < next_warn_ms_) return {};
    next_warn_ms_ = now_ms + times_.start_warn_ms;
    return {{Action::kWarn,
             -1,
             "waiting for the scheduler at " + scheduler_address_ + " to start the job",
             {}}};
  }
  if (state_ == State::kRunning && now_ms - heard_ms_ >= times_.heartbeat_timeout_ms) {
    const Status lost =
        Status::PeerLost("it fell silent")
            .By({Blame::kLost, Party{Role::kScheduler, kOnlyOne, scheduler_address_}});
    if (!may_be_alone_) return GiveUp(lost);
    state_ = State::kAlone;
    return {{Action::kAlone, kSchedulerId, "", {}, lost}};
  }
  if (now_ms < next_heartbeat_ms_) return {};
  next_heartbeat_ms_ = now_ms + times_.heartbeat_interval_ms;
  return {{Action::kHeartbeat, -1, "", {}}};
}

}  // namespace mercury
