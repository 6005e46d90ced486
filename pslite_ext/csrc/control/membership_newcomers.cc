// Workers and servers that come once the job has begun, as the scheduler sees them: see
// membership.h.
//
// A newcomer counts for nothing until it is in. While a worker is let in, some servers expect it
// and others do not yet: if the worker that lets it in is lost then, or a server, so is the
// newcomer; and no server is let in then.
#include <algorithm>
#include <utility>

#include "control/membership.h"

namespace mercury {
namespace {

// What comes after it, and who says so: the newcomer, or a worker that is in.
bool Follows(Admission now, Admission next) {
  return static_cast<int>(next) == static_cast<int>(now) + 1;
}
bool SaidByItself(Admission admission) {
  return admission == Admission::kReady || admission == Admission::kHas;
}

Action IsAsFarAs(int node, Admission admission, const Roster& roster) {
  return {Action::kAdmission, node, "", {}, Status::Ok(), admission, roster.ChangedAt(node)};
}

}  // namespace

// Why there is no place for it.
std::string SchedulerMembership::NoPlace(const Member& member, int64_t now_ms) const {
  if (roster_.places() == 0) {
    return "the job has begun, and nobody joins one that writes a trace (MERCURY_TRACE_DIR)";
  }
  const bool worker = member.role == Role::kWorker;
  if (!worker && !roster_.MayLoseServers()) return Refusal(member, now_ms);
  if (member.asynchronous) return "who trains asynchronously cannot join a job that has begun";
  const int hint = member.rank_hint;
  const int places = worker ? roster_.places() : servers_;
  if (hint >= places || (hint < 0 && roster_.PlaceFor(member.role, hint) < 0)) {
    return "the job has begun, and " +
           (worker ? "none of its " + std::to_string(places) +
                         " places for workers is free (MERCURY_MAX_WORKERS)"
                   : "has lost none of its " + std::to_string(places) + " servers");
  }
  if (roster_.PlaceFor(member.role, hint) >= 0) return Contradiction(member);
  const int node = NodeId(member.role, hint);
  return NodeName(node) + (roster_.HasLeft(node) ? " has finished" : " is still in the job") +
         ", and this node was started as that one (DMLC_TASK_ID=" + std::to_string(hint) + ")";
}

// Whoever has its place has not been heard of lately: it is lost soon, or is heard again.
bool SchedulerMembership::MayBeMissedSoon(const Member& member, int64_t now_ms) const {
  if (member.rank_hint < 0) return false;
  const int node = NodeId(member.role, member.rank_hint);
  const auto heard = heard_ms_.find(node);
  if (heard == heard_ms_.end() || roster_.IsOut(node)) return false;
  return suspect_ms_.count(node) + unheard_.count(node) != 0 ||
         now_ms - heard->second >= times_.suspicion_ms();
}

// Those before the job has begun, and those who come back before they were missed. One at a time:
// who is admitted is told of all that are there, and can be told of others only after that.
Actions SchedulerMembership::TakeThoseTooSoon(int64_t now_ms) {
  Actions actions;
  std::vector<Member> waiting = std::exchange(too_soon_, {});
  bool admitted = false;
  for (Member& member : waiting) {
    if (admitted) {
      too_soon_.push_back(std::move(member));
      continue;
    }
    for (Action& action : Register(member, now_ms)) {
      admitted = admitted || action.kind == Action::kAdmit;
      actions.push_back(std::move(action));
    }
  }
  return actions;
}

void SchedulerMembership::ForgetTooSoon(uint64_t life) {
  too_soon_.erase(std::remove_if(too_soon_.begin(), too_soon_.end(),
                                 [life](const Member& member) { return member.life == life; }),
                  too_soon_.end());
}

Actions SchedulerMembership::RejectThoseTooSoon(const std::string& why) {
  Actions actions;
  for (const Member& member : std::exchange(too_soon_, {})) {
    actions.push_back({Action::kReject, -1, why, member});
  }
  return actions;
}

Actions SchedulerMembership::Withdraw(uint64_t life, const std::string& why, int64_t now_ms) {
  ForgetTooSoon(life);
  for (size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].life != life) continue;
    const Member gone = members_[i];
    // It does not know yet that it has a rank.
    if (gone.id != -1) return Leave(gone.id, Status::PeerLost(why), now_ms);
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(i));
    return Fail(Status::PeerLost(std::string(Name(gone.role)) + " at " + At(gone) +
                                 " ended before the job had started: " + why));
  }
  return {};
}

Actions SchedulerMembership::Come(const Member& member, int64_t now_ms) {
  const std::string why = NoPlace(member, now_ms);
  if (!why.empty() && MayBeMissedSoon(member, now_ms)) {
    too_soon_.push_back(member);
    return {};
  }
  if (!why.empty()) return {{Action::kReject, -1, why, member}};
  const int node = NodeId(member.role, roster_.PlaceFor(member.role, member.rank_hint));
  const auto of_node = [node](const Member& m) { return m.id == node; };
  const auto before = std::find_if(members_.begin(), members_.end(), of_node);
  uint8_t& entry = entries_[node];
  if (before != members_.end()) {
    entry = static_cast<uint8_t>(before->entry + 1);
    members_.erase(before);
  }
  members_.push_back(member);
  members_.back().id = node;
  members_.back().entry = entry;
  members_.back().since_ms = now_ms;
  // What was said of who had the place before is not said of this one.
  accusations_.erase(
      std::remove_if(accusations_.begin(), accusations_.end(),
                     [node](const Accusation& a) { return a.node == node || a.reporter == node; }),
      accusations_.end());
  suspect_ms_.erase(node);
  heard_ms_[node] = now_ms;
  roster_.Expect(node);
  newcomers_[node] = Admitted();
  return {{Action::kAdmit, node, "", members_.back()}};
}

Actions SchedulerMembership::Admits(int sayer, int node, Admission admission) {
  const auto found = newcomers_.find(node);
  if (state_ != State::kRunning || found == newcomers_.end()) return {};  // it is lost
  if (RoleOf(node) == Role::kServer) return ServerAdmits(sayer, node, admission);
  Admitted& newcomer = found->second;
  const bool own = sayer == node, in = roster_.workers() != 0 && !roster_.IsOut(sayer);
  if (!Follows(newcomer.admission, admission) || own != SaidByItself(admission) || (!own && !in)) {
    return {};
  }
  if (admission == Admission::kIn && sayer != newcomer.by) return {};
  newcomer.admission = admission;
  if (!own) newcomer.by = sayer;
  if (admission == Admission::kIn) {
    newcomers_.erase(found);
    roster_.LetIn(node);
  }
  Actions actions{IsAsFarAs(node, admission, roster_)};
  for (Action& action : LetServersIn()) actions.push_back(std::move(action));
  return actions;
}

// It is ready, says itself; or another that it may have the slots that are summed there.
Actions SchedulerMembership::ServerAdmits(int sayer, int node, Admission admission) {
  Admitted& newcomer = newcomers_[node];
  if (sayer == node && admission == Admission::kReady) newcomer.admission = admission;
  if (sayer != node && admission == Admission::kTakes) newcomer.give_it_up.insert(sayer);
  return LetServersIn();
}

// Those that are ready, unless a worker is being let in.
Actions SchedulerMembership::LetServersIn() {
  Actions actions;
  std::vector<int> ready;
  for (const auto& [node, newcomer] : newcomers_) {
    if (newcomer.admission == Admission::kTakes || newcomer.admission == Admission::kHas) return {};
    const bool gives = newcomer.give_it_up.count(roster_.StandIn(RankOf(node))) != 0;
    if (gives && newcomer.admission == Admission::kReady) ready.push_back(node);
  }
  for (const int node : ready) {
    // One that is in now may be the one whose slots the next one takes.
    if (newcomers_[node].give_it_up.count(roster_.StandIn(RankOf(node))) == 0) continue;
    newcomers_.erase(node);
    roster_.LetIn(node);
    actions.push_back(IsAsFarAs(node, Admission::kIn, roster_));
  }
  return actions;
}

// Newcomers that are lost with these nodes.
std::set<int> SchedulerMembership::LostWith(const std::set<int>& nodes) const {
  std::set<int> with;
  for (const auto& [node, newcomer] : newcomers_) {
    if (newcomer.admission != Admission::kTakes && newcomer.admission != Admission::kHas) continue;
    const int by = newcomer.by;
    const bool goes = std::any_of(nodes.begin(), nodes.end(), [&](int lost) {
      return !roster_.IsOut(lost) && (lost == by || RoleOf(lost) == Role::kServer);
    });
    if (goes) with.insert(node);
  }
  return with;
}

}  // namespace mercury
