// Whom the scheduler hears, who accuses whom, and who is lost for it: see membership.h.
#include <utility>

#include "control/membership.h"

namespace mercury {

void SchedulerMembership::Heard(int node, int64_t now_ms) {
  const auto it = heard_ms_.find(node);
  if (it == heard_ms_.end()) return;
  it->second = now_ms;
  const auto suspect = suspect_ms_.find(node);
  if (suspect == suspect_ms_.end()) return;
  if (now_ms - suspect->second >= times_.afterlife_ms()) suspect_ms_.erase(suspect);
}

Actions SchedulerMembership::Suspect(int node, int64_t now_ms) {
  if (state_ != State::kRunning || heard_ms_.count(node) == 0) return {};
  suspect_ms_.emplace(node, now_ms);
  return Judge(now_ms);
}

std::vector<Party> SchedulerMembership::Losses() const {
  std::vector<Party> losses;
  for (const Member& m : members_) {
    if (lost_.count(m.id) != 0) losses.push_back({RoleOf(m.id), RankOf(m.id), At(m)});
  }
  return losses;
}

Actions SchedulerMembership::Accuse(int reporter, int node, const std::string& how,
                                    int64_t now_ms) {
  if (state_ != State::kRunning || heard_ms_.count(node) == 0) return {};
  accusations_.push_back({reporter, node, how, now_ms});
  return Judge(now_ms);
}

// Two processes have lost each other. If one of them died, that is whom to name: its connection to
// the scheduler breaks as well, or it falls silent. If both are heard again, it was the link.
Actions SchedulerMembership::Judge(int64_t now_ms) {
  std::set<std::pair<int, int>> links;
  std::string why;
  for (const Accusation& a : accusations_) {
    if (left_.count(a.node) != 0) continue;
    const bool heard = heard_ms_[a.node] - a.since_ms >= times_.afterlife_ms();
    const bool late = now_ms - a.since_ms >= times_.suspicion_ms();
    if (a.node == a.reporter || suspect_ms_.count(a.node) != 0 || (late && !heard)) {
      lost_.insert(a.node);
      why = a.how;
    } else if (heard && suspect_ms_.count(a.reporter) == 0) {
      // Workers first, whoever of the two has said so.
      const bool in_order = RoleOf(a.reporter) == Role::kWorker;
      links.emplace(in_order ? a.reporter : a.node, in_order ? a.node : a.reporter);
      if (lost_.empty()) why = a.how;
    }
  }
  if (!lost_.empty()) return Fail(Status::PeerLost(why).By({Blame::kLost, Losses()}));
  if (links.empty()) return {};
  std::vector<Party> parties;
  for (const auto& [one, other] : links) {
    for (const int id : {one, other}) parties.push_back({RoleOf(id), RankOf(id), ""});
  }
  return Fail(Status::PeerLost(why).By({Blame::kApart, std::move(parties)}));
}

}  // namespace mercury
