// Whom the scheduler hears, who accuses whom, and who is lost for it: see membership.h.
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "control/membership.h"

namespace mercury {
namespace {

Status NotLetIn(int node) {
  return Status::PeerLost("another node went while it was let in; start it again")
      .By({Blame::kNamed, node});
}

}  // namespace

void SchedulerMembership::Heard(int node, int64_t now_ms) {
  const auto it = heard_ms_.find(node);
  if (it == heard_ms_.end()) return;
  it->second = now_ms;
  unheard_.erase(node);
  unanswered_ = false;
  const auto suspect = suspect_ms_.find(node);
  if (suspect == suspect_ms_.end()) return;
  if (now_ms - suspect->second >= times_.afterlife_ms()) suspect_ms_.erase(suspect);
}

Actions SchedulerMembership::Suspect(int node, int64_t now_ms) {
  if (state_ != State::kRunning || heard_ms_.count(node) == 0) return {};
  suspect_ms_.emplace(node, now_ms);
  return Judge(now_ms);
}

std::vector<Party> SchedulerMembership::Losses(const std::set<int>& nodes) const {
  std::vector<Party> losses;
  for (const Member& m : members_) {
    if (nodes.count(m.id) != 0) losses.push_back({RoleOf(m.id), RankOf(m.id), At(m)});
  }
  return losses;
}

// The job goes on without them, or fails.
Actions SchedulerMembership::Lose(const std::set<int>& nodes, const Status& why) {
  const bool goes_on = roster_.CanLose(nodes);
  const std::set<int> with = LostWith(nodes);
  std::map<int, uint64_t> fresh;  // and the generation that begins with it
  for (const int node : nodes) {
    // Nobody has heard of it that it was in.
    if (roster_.IsNew(node) && RoleOf(node) == Role::kServer) entries_.erase(node);
    if (roster_.Lose(node)) fresh[node] = roster_.ChangedAt(node);
  }
  if (fresh.empty()) return {};
  if (!goes_on)
    return Fail(roster_.elastic() ? why.Saying(why.detail() + roster_.Shortage()) : why);
  Actions actions;
  for (const auto& [node, generation] : fresh) {
    cut_at_ms_.erase(node);
    at_barrier_.erase(node);
    suspect_ms_.erase(node);
    newcomers_.erase(node);
    actions.push_back({Action::kLost, node, "", {}, why, Admission::kComes, generation});
  }
  GoOnWithout(with, &actions);
  return actions;
}

// Somebody is out, and with it these, whom it was letting in.
void SchedulerMembership::GoOnWithout(const std::set<int>& newcomers, Actions* actions) {
  for (const int node : newcomers) {
    if (!roster_.Lose(node)) continue;
    newcomers_.erase(node);
    actions->push_back(
        {Action::kLost, node, "", {}, NotLetIn(node), Admission::kComes, roster_.ChangedAt(node)});
  }
  for (Action& action : CheckOver()) actions->push_back(std::move(action));
  if (state_ != State::kRunning) return;
  for (Action& action : LetServersIn()) actions->push_back(std::move(action));
}

Actions SchedulerMembership::Accuse(int reporter, int node, const std::string& how,
                                    int64_t now_ms) {
  if (state_ != State::kRunning || heard_ms_.count(node) == 0) return {};
  accusations_.push_back({reporter, node, how, now_ms});
  return Judge(now_ms);
}

bool SchedulerMembership::HasPlace(const Member& member) const {
  return std::any_of(members_.begin(), members_.end(), [&member](const Member& m) {
    return m.id == member.id && m.entry == member.entry;
  });
}

Actions SchedulerMembership::DoWithout(int node, const Status& how) {
  if (state_ != State::kRunning || heard_ms_.count(node) == 0) return {};
  // A server that is in has been agreed to meanwhile, by whose slots it has.
  const bool refused = RoleOf(node) == Role::kServer && how.code() == Code::kClosed;
  if (refused && !roster_.IsNew(node)) return {};
  return roster_.CanLose({node}) ? Lose({node}, how) : Fail(how);
}

Actions SchedulerMembership::Reported(int reporter, int node, const Status& how, int64_t now_ms) {
  if (how.code() == Code::kPeerLost) return Accuse(reporter, node, how.detail(), now_ms);
  if (reporter == node || roster_.IsNew(reporter)) return DoWithout(reporter, how);
  const bool without = how.code() == Code::kTimeout || how.code() == Code::kClosed;
  return without ? DoWithout(node, how) : Fail(how);
}

// Two processes have lost each other. If one of them died, that is whom to name: its connection to
// the scheduler breaks as well, or it falls silent. If both are heard again, it was the link.
Actions SchedulerMembership::Judge(int64_t now_ms) {
  std::set<std::pair<int, int>> links;
  std::set<int> lost;
  std::string why;
  for (const Accusation& a : accusations_) {
    if ((roster_.IsOut(a.node) && !roster_.IsNew(a.node)) || roster_.IsLost(a.reporter)) continue;
    const bool heard = heard_ms_[a.node] - a.since_ms >= times_.afterlife_ms();
    const bool late = now_ms - a.since_ms >= times_.suspicion_ms();
    if (a.node == a.reporter || suspect_ms_.count(a.node) != 0 || (late && !heard)) {
      lost.insert(a.node);
      why = a.how;
    } else if (heard && suspect_ms_.count(a.reporter) == 0) {
      // Workers first, whoever of the two has said so.
      const bool in_order = RoleOf(a.reporter) == Role::kWorker;
      links.emplace(in_order ? a.reporter : a.node, in_order ? a.node : a.reporter);
      if (lost.empty()) why = a.how;
    }
  }
  if (!lost.empty()) {
    return Lose(lost, Status::PeerLost(why).By({Blame::kLost, Losses(lost)}));
  }
  return links.empty() ? Actions() : CutOff(links, why, now_ms);
}

// Both ends of each link are there. A job that can does without the one that more links have failed
// of, lately; if there is none, without the worker. So a server that nobody reaches, but the
// scheduler, costs one worker at most. Whom a newcomer cannot reach, others do.
Actions SchedulerMembership::CutOff(const std::set<std::pair<int, int>>& links,
                                    const std::string& why, int64_t now_ms) {
  std::vector<Party> parties;
  std::map<int, int> failed;  // links, by node
  const int64_t lately_ms = now_ms - 2 * times_.heartbeat_timeout_ms;
  for (auto it = cut_at_ms_.begin(); it != cut_at_ms_.end();) {
    const bool lately = it->second > lately_ms;
    if (lately) ++failed[it->first];
    it = lately ? std::next(it) : cut_at_ms_.erase(it);
  }
  for (const auto& [worker, other] : links) {
    const bool fresh = roster_.IsNew(worker) || roster_.IsNew(other);
    for (const int id : {worker, other}) {
      parties.push_back({RoleOf(id), RankOf(id), ""});
      if (fresh) continue;
      ++failed[id];
      cut_at_ms_.emplace(id, now_ms);
    }
  }
  std::set<int> nodes, workers;
  for (const auto& [worker, other] : links) {
    const bool more = failed[other] > failed[worker] && roster_.CanLose({other});
    const bool others = !roster_.IsNew(worker) && (roster_.IsNew(other) || more);
    nodes.insert(others ? other : worker);
    workers.insert(worker);
  }
  if (!roster_.CanLose(nodes)) nodes = std::move(workers);
  const Status status = Status::PeerLost(why).By({Blame::kApart, std::move(parties)});
  return roster_.CanLose(nodes) ? Lose(nodes, status) : Fail(status);
}

}  // namespace mercury
