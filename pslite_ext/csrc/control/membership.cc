#include "control/membership.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace mercury {
std::string Seconds(int64_t ms) {
  const int64_t tenths = ms / 100;
  return std::to_string(tenths / 10) + (tenths % 10 != 0 ? "." + std::to_string(tenths % 10) : "") +
         " s";
}

std::string At(const Member& m) { return m.host + ":" + std::to_string(m.port); }

namespace {

// Before ranks are given.
std::string Guest(const Member& m) {
  const std::string task =
      m.rank_hint >= 0 ? " (DMLC_TASK_ID=" + std::to_string(m.rank_hint) + ")" : "";
  return Name(m.role) + task + " at " + At(m);
}

bool SameTask(const Member& a, const Member& b) {
  return a.role == b.role && a.rank_hint >= 0 && a.rank_hint == b.rank_hint;
}

bool SamePlace(const Member& a, const Member& b) {
  return SameTask(a, b) || (a.host == b.host && a.port == b.port);
}

constexpr int kFirstGuest = -2;  // below kNoNode

Status StatusOf(const Exit& exit, const std::string& when) {
  return Status::PeerLost(NodeName(exit.role, exit.rank_hint) + " " + exit.how + when)
      .By({Blame::kNamed, Party{exit.role, exit.rank_hint, ""}});
}

}  // namespace

SchedulerMembership::SchedulerMembership(int workers, int servers, const MembershipTimes& times,
                                         int64_t now_ms, SharedSettings settings)
    : workers_(workers),
      servers_(servers),
      times_(times),
      settings_(std::move(settings)),
      roster_(workers),
      started_ms_(now_ms),
      next_warn_ms_(now_ms + times.start_warn_ms),
      last_tick_ms_(now_ms),
      next_heartbeat_ms_(now_ms) {}

int SchedulerMembership::Count(Role role) const {
  return static_cast<int>(std::count_if(members_.begin(), members_.end(),
                                        [role](const Member& m) { return m.role == role; }));
}

std::string SchedulerMembership::Missing() const {
  std::string text;
  for (Role role : {Role::kWorker, Role::kServer}) {
    const auto here = std::count_if(members_.begin(), members_.end(),
                                    [role](const Member& m) { return m.role == role && m.here(); });
    const int64_t missing = Expected(role) - here;
    if (missing == 0) continue;
    text += (text.empty() ? "" : " and ") + std::to_string(missing) + " of " +
            std::to_string(Expected(role)) + " " + Name(role) + "s";
  }
  text += "; registered:";
  if (members_.empty()) text += " nobody";
  for (size_t i = 0; i < members_.size(); ++i) {
    const Member& m = members_[i];
    text += (i != 0 ? ", " : " ") + std::string(Name(m.role)) + " at " + At(m);
    if (m.rank_hint >= 0) text += " (task " + std::to_string(m.rank_hint) + ")";
    if (!m.reached) {
      text += ", which has not been reached yet";
    } else if (m.broken_ms >= 0) {
      text += ", whose connection is broken";
    }
  }
  return text;
}

// Whose place a new node takes, or would take; members_.end(): nobody's.
std::vector<Member>::iterator SchedulerMembership::Place(const Member& member) {
  const auto find = [this](auto&& fits) {
    return std::find_if(members_.begin(), members_.end(), fits);
  };
  const auto same =
      find([&](const Member& m) { return m.role == member.role && SamePlace(m, member); });
  if (same != members_.end()) return same;
  // One of the other role that is lost is still missed, whoever has its address now.
  const auto other = find([&](const Member& m) { return SamePlace(m, member) && m.broken_ms < 0; });
  if (other != members_.end() || Count(member.role) < Expected(member.role)) return other;
  // Without numbers, any of them may have been started again somewhere else.
  return find([&](const Member& m) {
    return m.role == member.role && m.broken_ms >= 0 && m.rank_hint < 0 && member.rank_hint < 0;
  });
}

// Why nobody can join any more.
std::string SchedulerMembership::Refusal(const Member& member, int64_t now_ms) const {
  std::string text = "the job has its " + std::to_string(Expected(member.role)) + " " +
                     Name(member.role) + "s already; ";
  for (const Member& m : members_) {
    if (m.id < 0 || !SamePlace(m, member)) continue;
    text += NodeName(m.id) + " was registered from " + At(m) + " " + Seconds(now_ms - m.since_ms) +
            " ago; ";
  }
  return text + "a node that was restarted cannot join a job that has begun";
}

Actions SchedulerMembership::Register(const Member& member, int64_t now_ms) {
  const auto reject = [&](const std::string& why) {
    return Actions{{Action::kReject, -1, why, member}};
  };
  if (member.role == Role::kScheduler) return reject("this job has its scheduler");
  ForgetTooSoon(member.life);  // it is said again
  const auto same = [&member](const Member& m) { return m.life == member.life; };
  if (std::any_of(members_.begin(), members_.end(), same)) return {};
  if (member.rank_hint == kJoins && state_ == State::kGathering) {
    too_soon_.push_back(member);
    return {};
  }
  if (state_ == State::kRunning && roster_.elastic()) return Come(member, now_ms);
  if (state_ != State::kGathering) return reject(Refusal(member, now_ms));
  const std::string why = Contradiction(member);
  if (!why.empty()) return reject(why);
  const auto place = Place(member);
  const bool held = place != members_.end();
  if (held && place->broken_ms < 0) {
    return reject(SameTask(*place, member)
                      ? Guest(*place) + " is registered already, and " + At(member) +
                            " has the same number: give each node one of its own"
                      : At(member) + " is registered already, as " + Guest(*place));
  }
  if (Count(member.role) - (held ? 1 : 0) == Expected(member.role)) {
    return reject("this job has all of its " + std::to_string(Expected(member.role)) + " " +
                  Name(member.role) + "s (DMLC_NUM_" +
                  (member.role == Role::kWorker ? "WORKER" : "SERVER") + ")");
  }
  Actions actions;
  if (held) {
    actions.push_back(
        {Action::kWarn, -1, Guest(member) + " takes the place of " + Guest(*place), {}});
    members_.erase(place);
  }
  members_.push_back(member);
  members_.back().guest = kFirstGuest - guests_++;
  members_.back().since_ms = now_ms;
  MERCURY_CHECK(Count(member.role) <= Expected(member.role));
  // Whose patience ends first hears from the scheduler who is missing, and not from its own clock.
  const int64_t waited_ms = std::clamp<int64_t>(member.waited_ms, 0, times_.start_timeout_ms);
  started_ms_ = std::min(started_ms_, now_ms - waited_ms);
  for (Action& action : CheckGone()) actions.push_back(std::move(action));
  return actions;
}

Actions SchedulerMembership::Ended(const Exit& exit) {
  if (!begun_ && gone_.emplace(exit.role, exit.rank_hint).second && !first_gone_) {
    first_gone_ = exit;
  }
  if (!exit.failed) return CheckGone();
  const auto member = std::find_if(members_.begin(), members_.end(), [&exit](const Member& m) {
    return m.role == exit.role && m.rank_hint == exit.rank_hint;
  });
  if (!roster_.elastic() || state_ != State::kRunning) return Fail(StatusOf(exit, ""));
  if (member == members_.end()) return {};  // another has had its place since
  return Lose({member->id}, StatusOf(exit, ""));
}

Actions SchedulerMembership::CheckGone() {
  if (state_ != State::kGathering || !first_gone_) return {};
  const bool waits = std::any_of(members_.begin(), members_.end(), [this](const Member& m) {
    return m.role == Role::kWorker && !IsGone(m);
  });
  const auto workers_gone =
      std::count_if(gone_.begin(), gone_.end(),
                    [](const std::pair<Role, int>& g) { return g.first == Role::kWorker; });
  if (!waits && workers_gone < workers_) return {};
  return Fail(
      StatusOf(*first_gone_, waits ? " before the job had begun"
                                   : " before the job had begun, and no worker has joined it: does "
                                     "the script create a store?"));
}

bool SchedulerMembership::AwaitsLate() const {
  if (state_ != State::kFailed || begun_) return false;
  const auto here = std::count_if(members_.begin(), members_.end(),
                                  [this](const Member& m) { return !IsGone(m); });
  return here + static_cast<std::ptrdiff_t>(gone_.size()) < workers_ + servers_;
}

bool SchedulerMembership::ComesLate(const Member& member) {
  if (!AwaitsLate()) return false;
  for (const Member& m : members_) {
    if (m.life == member.life) return false;
  }
  members_.push_back(member);
  return true;
}

bool SchedulerMembership::Complete() const {
  return Count(Role::kWorker) == workers_ && Count(Role::kServer) == servers_ &&
         std::all_of(members_.begin(), members_.end(), [](const Member& m) { return m.here(); });
}

void SchedulerMembership::GuestBroke(int guest, int64_t now_ms) {
  for (Member& m : members_) {
    if (m.guest == guest && m.broken_ms < 0) m.broken_ms = now_ms;
  }
}

Actions SchedulerMembership::GuestIsThere(int guest, int64_t now_ms) {
  if (state_ != State::kGathering) return {};
  bool was_away = false;
  for (Member& m : members_) {
    if (m.guest != guest || m.here()) continue;
    was_away = true;
    m.reached = true;
    m.broken_ms = -1;
    m.named_lost = false;
  }
  return was_away && Complete() ? Assign(now_ms) : Actions{};
}

// While not all are here.
Actions SchedulerMembership::Await(int64_t now_ms, int64_t pause_ms) {
  if (now_ms - started_ms_ >= times_.start_timeout_ms) {
    return Fail(Status::Timeout("not everybody registered within " +
                                Seconds(times_.start_timeout_ms) + "; missing: " + Missing()));
  }
  Actions actions;
  for (Member& m : members_) {
    if (m.here()) continue;
    int64_t& since_ms = m.broken_ms < 0 ? m.since_ms : m.broken_ms;
    since_ms += pause_ms;
    const int64_t away_ms = now_ms - since_ms;
    if (m.broken_ms < 0 && away_ms >= times_.suspicion_ms()) m.broken_ms = m.since_ms;
    const std::string lost =
        "lost " + Guest(m) + " before the job had begun: " +
        (m.reached ? "its connection broke" : "the scheduler cannot connect to it there");
    if (away_ms >= times_.suspicion_ms() + times_.replacement_ms()) {
      return Fail(Status::PeerLost(lost + ", and no other took its place within " +
                                   Seconds(times_.replacement_ms())));
    }
    if (away_ms < times_.suspicion_ms() || m.named_lost) continue;
    m.named_lost = true;
    actions.push_back({Action::kWarn, -1, lost + "; waiting for another in its place", {}});
  }
  if (now_ms < next_warn_ms_) return actions;
  next_warn_ms_ = now_ms + times_.start_warn_ms;
  actions.push_back({Action::kWarn, -1, "waiting for " + Missing(), {}});
  return actions;
}

// Where the scheduler was told otherwise than a node; empty: nowhere.
std::string SchedulerMembership::Contradiction(const Member& member) const {
  for (const SharedSetting& theirs : member.told) {
    const std::string has = "it has " + theirs.name + "=" + theirs.value + ", ";
    const SharedSetting* ours = Find(settings_, theirs.name);
    if (ours == nullptr) return has + "which the scheduler does not know";
    if (ours->told && ours->value != theirs.value) return has + "the scheduler " + ours->value;
  }
  return "";
}

// Settles what the scheduler was not told; `ids` are those that the members will have. Not ok where
// two were told otherwise.
Status SchedulerMembership::Settle(const std::vector<int>& ids) {
  const auto first = std::find_if(members_.begin(), members_.end(),
                                  [](const Member& m) { return m.role == Role::kWorker; });
  for (SharedSetting& setting : settings_) {
    const SharedSetting* decides =
        first == members_.end() ? nullptr : Find(first->told, setting.name);
    if (!setting.told && decides != nullptr) setting = *decides;
    for (size_t i = 0; i < members_.size(); ++i) {
      const SharedSetting* theirs = Find(members_[i].told, setting.name);
      if (theirs == nullptr || theirs->value == setting.value) continue;
      return Status::InvalidArgument(NodeName(ids[i]) + " has " + setting.name + "=" +
                                     theirs->value + ", " + NodeName(Role::kWorker, 0) + " " +
                                     setting.value + (setting.told ? "" : " (the default)"))
          .By({Blame::kNamed, ids[i]});
    }
  }
  return Status::Ok();
}

// Ranks in one total order that does not depend on who came first.
Actions SchedulerMembership::Assign(int64_t now_ms) {
  MERCURY_CHECK(state_ == State::kGathering && !begun_);
  std::sort(members_.begin(), members_.end(), [](const Member& a, const Member& b) {
    const auto order = [](const Member& m) {
      return std::make_tuple(m.role, m.rank_hint < 0, m.rank_hint, std::cref(m.host), m.port);
    };
    return order(a) < order(b);
  });
  std::vector<int> ids;
  ids.reserve(members_.size());
  int next_rank[2] = {0, 0};
  for (const Member& m : members_) {
    ids.push_back(NodeId(m.role, next_rank[m.role == Role::kWorker ? 1 : 0]++));
  }
  const Status disagreement = Settle(ids);
  if (!disagreement.ok()) {
    state_ = State::kFailed;
    Actions actions = RejectThoseTooSoon("the job has failed: " + disagreement.text());
    actions.push_back({Action::kDisagree, -1, "", {}, disagreement});
    return actions;
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    members_[i].id = ids[i];
    heard_ms_[ids[i]] = now_ms;
  }
  MERCURY_CHECK(heard_ms_.size() == members_.size());  // each has a rank of its own
  state_ = State::kRunning;
  begun_ = true;
  next_heartbeat_ms_ = now_ms + times_.heartbeat_interval_ms;
  return {{Action::kAssign, -1, "", {}}};
}

Actions SchedulerMembership::Leave(int node, const Status& why, int64_t now_ms) {
  if (state_ != State::kRunning || heard_ms_.count(node) == 0) return {};
  if (roster_.IsNew(node)) {
    const Status ended = why.ok() ? Status::PeerLost("it ended before it was let in") : why;
    return Lose({node}, Status::PeerLost(ended.text()).By({Blame::kEnded, node}));
  }
  if (roster_.IsOut(node)) return {};
  Heard(node, now_ms);
  if (!why.ok()) {
    Subject subject = why.subject();
    subject.label.clear();  // its own text has it
    const Status ended = Status::PeerLost(why.text())
                             .By({Blame::kEnded, node})
                             .About(std::move(subject))
                             .Of(why.cause());
    // What the job refuses of one, it refuses of all, but for those who came to it later.
    const bool refused = why.cause() == Code::kInvalidArgument && entries_.count(node) == 0;
    if (!refused && roster_.CanLose({node})) return Lose({node}, ended);
    roster_.Leave(node);
    return Fail(ended);
  }
  if (RoleOf(node) != Role::kWorker) {
    return Fail(Status::PeerLost(NodeName(node) + " left before the workers did")
                    .By({Blame::kNamed, node}));
  }
  const std::set<int> with = LostWith({node});
  roster_.Leave(node);
  at_barrier_.erase(node);
  Actions actions{{Action::kDeparted, node, "", {}}};
  GoOnWithout(with, &actions);
  return actions;
}

// After a worker is out: the job may be over, or the others' barrier complete.
Actions SchedulerMembership::CheckOver() {
  if (roster_.workers() != 0) return CheckBarrier();
  state_ = State::kEnded;
  Actions actions = RejectThoseTooSoon("the job has ended");
  actions.push_back({Action::kEnd, -1, "", {}});
  return actions;
}

Actions SchedulerMembership::Barrier(int node, uint64_t passed) {
  if (state_ != State::kRunning || heard_ms_.count(node) == 0) return {};
  if (RoleOf(node) != Role::kWorker || roster_.IsOut(node)) return {};
  // The scheduler that let the others pass was lost before this one heard it.
  if (passed < releases_) return {{Action::kRelease, node, "", {}}};
  at_barrier_.insert(node);
  return CheckBarrier();
}

Actions SchedulerMembership::CheckBarrier() {
  if (at_barrier_.empty()) return {};
  for (const Member& m : members_) {
    if (!roster_.elastic() && roster_.HasLeft(m.id)) {
      return Fail(Status::PeerLost(NodeName(m.id) + " has finished, but " +
                                   NodeName(*at_barrier_.begin()) + " waits for it at a barrier")
                      .By({Blame::kNamed, m.id}));
    }
  }
  if (static_cast<int>(at_barrier_.size()) != roster_.workers()) return {};
  at_barrier_.clear();
  ++releases_;
  return {{Action::kRelease, -1, "", {}}};
}

Actions SchedulerMembership::Fail(const Status& status) {
  if (state_ == State::kFailed || state_ == State::kEnded) return {};
  state_ = State::kFailed;
  Actions actions = RejectThoseTooSoon("the job has failed: " + status.text());
  actions.push_back({Action::kFail, -1, "", {}, status});
  return actions;
}

Actions SchedulerMembership::Tick(int64_t now_ms, const std::string& starved) {
  if (state_ == State::kEnded || state_ == State::kFailed) return {};
  const int64_t pause =
      starved.empty() ? times_.own_pause_ms(now_ms, last_tick_ms_) : now_ms - last_tick_ms_;
  last_tick_ms_ = now_ms;
  starved_ms_ = starved.empty() ? kNever : std::min(starved_ms_, now_ms);
  if (state_ == State::kGathering) {
    const bool late = now_ms >= start_by_ms() || now_ms - starved_ms_ >= times_.suspicion_ms();
    return !starved.empty() && late
               ? Fail(Status::PeerLost(starved).By({Blame::kNamed, kSchedulerId}))
               : Await(now_ms, pause);
  }
  for (auto& [id, since] : suspect_ms_) MembershipTimes::LeaveOut(pause, now_ms, &since);
  for (Accusation& a : accusations_) MembershipTimes::LeaveOut(pause, now_ms, &a.since_ms);
  for (auto& [id, heard] : heard_ms_) MembershipTimes::LeaveOut(pause, now_ms, &heard);
  Actions actions = Judge(now_ms);
  std::set<int> silent;
  for (const auto& [id, heard] : heard_ms_) {
    if (roster_.IsOut(id) && !roster_.IsNew(id)) continue;
    const auto suspect = suspect_ms_.find(id);
    const bool missed =
        suspect != suspect_ms_.end() && now_ms - suspect->second >= times_.suspicion_ms();
    if (missed || now_ms - heard >= times_.heartbeat_timeout_ms) silent.insert(id);
  }
  if (state_ == State::kRunning && !silent.empty() && unanswered_) {
    const Status why = Status::PeerLost("it goes on with a job of which nobody is there any more");
    Actions ends = Fail(why.By({Blame::kNamed, kSchedulerId}));
    ends.back().kind = Action::kNobody;
    return ends;
  }
  if (state_ == State::kRunning && !silent.empty()) {
    const Status why = Status::PeerLost("it fell silent").By({Blame::kLost, Losses(silent)});
    for (Action& action : Lose(silent, why)) actions.push_back(std::move(action));
  }
  if (state_ != State::kRunning) return actions;
  for (Action& action : TakeThoseTooSoon(now_ms)) actions.push_back(std::move(action));
  if (state_ != State::kRunning || now_ms < next_heartbeat_ms_) return actions;
  next_heartbeat_ms_ = now_ms + times_.heartbeat_interval_ms;
  actions.push_back({Action::kHeartbeat, -1, "", {}});
  return actions;
}

}  // namespace mercury
