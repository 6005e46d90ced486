// How one scheduler goes on where another was lost: see membership.h, and job_record.h.
#include <map>
#include <utility>

#include "control/membership.h"

namespace mercury {

JobRecord SchedulerMembership::Record() const {
  JobRecord record;
  record.generation = roster_.generation();
  record.releases = releases_;
  record.settings = settings_;
  for (const Member& m : members_) {
    record.placed.push_back(
        {m, roster_.PresenceOf(m.id), entries_.count(m.id) != 0, roster_.ChangedAt(m.id)});
  }
  return record;
}

void SchedulerMembership::GoOnFrom(const JobRecord& record, int64_t now_ms) {
  std::map<int, Roster::Place> nodes;
  members_.clear();
  for (const PlaceRecord& placed : record.placed) {
    const Member& m = placed.member;
    members_.push_back(m);
    members_.back().since_ms = now_ms;
    heard_ms_[m.id] = now_ms;
    nodes[m.id] = {placed.presence, placed.changed};
    unheard_.insert(m.id);
    if (placed.late) entries_[m.id] = m.entry;
    if (placed.presence == Presence::kNew) newcomers_[m.id] = Admitted();
  }
  roster_.Restore(record.generation, nodes);
  settings_ = record.settings;
  releases_ = record.releases;
  state_ = State::kRunning;
  begun_ = unanswered_ = true;
  next_heartbeat_ms_ = now_ms + times_.heartbeat_interval_ms;
}

Actions SchedulerMembership::LoseNewcomers() {
  Actions actions;
  for (const auto& [node, newcomer] : std::map<int, Admitted>(newcomers_)) {
    const Status why = Status::PeerLost(kLostWithScheduler);
    for (Action& action : Lose({node}, why.By({Blame::kNamed, node}))) {
      actions.push_back(std::move(action));
    }
  }
  return actions;
}

}  // namespace mercury
