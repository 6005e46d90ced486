// Who belongs to the job, who is late, who is lost, when it is over: the scheduler's view, as a
// state machine without sockets, threads or clocks (`now_ms` is passed in). A node's own view is in
// node_membership.h.
//
//   gathering --all are here--> running --all workers are out--> ended
//       \___start timeout, lost node, a node that fails,______/--> failed
//           nodes that were told different settings
//
// A job that goes on without those it loses (roster.h) stays running as long as it may, and others
// may come:
//
//   newcomer:  registers--> kComes --is ready--> kReady --a worker lets it in--> kTakes
//              --has what that one gave it--> kHas --the servers expect it--> kIn
//
//   server:    registers--> kComes --is ready, whose slots it takes gives them up--> kIn
//
// The same in all nodes: each step is said to everybody, in one order.
//
// Thread-safety: none; owned by the van's I/O loop. Invariants: the first failure sticks; ranks are
// assigned once, in one total order; no node is assigned a rank in a job whose settings it
// contradicts; an action list is in the order in which it must be carried out.
//
// The job may outlive its scheduler: another goes on from what that one has written down
// (job_record.h), but for newcomers on their way, which are lost with it.
//
// Of a setting on which all nodes must agree, the scheduler's value counts if it was told one, else
// worker 0's, else the default.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/never.h"
#include "base/status.h"
#include "control/job_record.h"
#include "control/member.h"
#include "control/roster.h"
#include "control/shared_settings.h"

namespace mercury {

struct MembershipTimes {
  int64_t heartbeat_interval_ms = 1000;
  int64_t heartbeat_timeout_ms = 10000;
  int64_t start_warn_ms = 10000;
  int64_t start_timeout_ms = 600000;

  // How long this process itself did not run (a suspended machine): nobody else is to blame.
  int64_t own_pause_ms(int64_t now_ms, int64_t last_tick_ms) const {
    const int64_t gap = now_ms - last_tick_ms;
    return gap > heartbeat_timeout_ms / 2 ? gap : 0;
  }
  // Leaves a pause out. What came as it ended is no later than now.
  static void LeaveOut(int64_t pause_ms, int64_t now_ms, int64_t* at_ms) {
    if (pause_ms != 0) *at_ms = std::min(now_ms, *at_ms + pause_ms);
  }
  // What is heard of a node sooner than this may have been on its way before it died.
  int64_t afterlife_ms() const { return heartbeat_interval_ms / 2; }
  // A node gives up the start later than the scheduler, which can say who is missing.
  int64_t node_start_timeout_ms() const { return start_timeout_ms + 5000; }
  // How long another may take the place of a node that was lost before the job has begun.
  int64_t replacement_ms() const { return heartbeat_timeout_ms; }
  // How long a node whose connection broke may stay silent.
  int64_t suspicion_ms() const { return std::min(3 * heartbeat_interval_ms, heartbeat_timeout_ms); }
};

// How far a newcomer is.
enum class Admission : uint8_t { kComes, kReady, kTakes, kHas, kIn };
constexpr int kAdmissions = 5;
// Why one ends that is on its way then.
constexpr char kLostWithScheduler[] = "the scheduler was lost while it was let in; start it again";

struct Action {
  enum Kind {
    kAssign,     // everybody is here: send the table to all members
    kAdmit,      // send the table to the newcomer `node`; tell all others that it comes
    kAdmission,  // tell all that the newcomer `node` is as far as `admission`
    kReject,     // tell `member` that it cannot join: `text`
    kDisagree,   // tell all members that there can be no job with these settings: `status`
    kHeartbeat,  // send a heartbeat (scheduler: to all members that have not left)
    kRelease,    // the workers' barrier is complete: tell all workers; or `node` alone, late
    kDeparted,   // tell all members that `node` has left in good order
    kLost,       // tell all members that the job goes on without `node`, lost for `status`; and it
    kAlone,   // of a node: the scheduler is lost, for `status`, and the job goes on; ok: it is back
    kWarn,    // log `text`
    kFail,    // the job has failed of `status`; tell everybody who can still hear it
    kNobody,  // nobody of the job is there, for all that is known: end with `status`, tell nobody
    kEnd,     // the job is over: tell the servers, stop
  };
  Kind kind;
  int node = -1;
  std::string text;
  Member member;
  Status status = {};
  Admission admission = Admission::kComes;
  uint64_t generation = 0;  // that begins with it: where one is lost, or is in

  // That what the scheduler writes down changes with it.
  bool IsKept() const {
    return kind == kAdmit || kind == kAdmission || kind == kRelease || kind == kDeparted ||
           kind == kLost;
  }
};
using Actions = std::vector<Action>;

std::string Seconds(int64_t ms);
std::string At(const Member& member);  // "10.0.0.5:40123"

// Of a process that was started for the job.
struct Exit {
  Role role = Role::kWorker;
  int rank_hint = 0;
  std::string how;      // "ended with exit code 3"
  bool failed = false;  // that fails the job
};

class SchedulerMembership {
 public:
  // `settings`: all on which nodes must agree, with the scheduler's values.
  SchedulerMembership(int workers, int servers, const MembershipTimes& times, int64_t now_ms,
                      SharedSettings settings = {});

  // With how many workers the job goes on (0: only with all of them), and whether with any server;
  // and for how many workers there are places (0: nobody comes).
  void GoOnWith(int least, bool servers_may_go, int places = 0) {
    roster_.GoOnWith(least, servers_may_go ? servers_ : 0, places);
  }
  // Of a job that has begun: what another needs to go on with it; that other, what it is told
  // first, and then, once GoOnWith has been, what becomes of newcomers.
  JobRecord Record() const;
  void GoOnFrom(const JobRecord& record, int64_t now_ms);
  Actions LoseNewcomers();
  Actions Register(const Member& member, int64_t now_ms);
  void Heard(int node, int64_t now_ms);
  // Its connection broke: it is lost unless it is heard again soon.
  Actions Suspect(int node, int64_t now_ms);
  // `why` ok: the node has done its work. Otherwise it fails the job.
  Actions Leave(int node, const Status& why, int64_t now_ms);
  // A member that ends before it knows its rank.
  Actions Withdraw(uint64_t life, const std::string& why, int64_t now_ms);
  // While gathering: the connection to `guest` broke or could not be made, or is there. Who stays
  // away is lost, and fails the job unless another takes its place: a process that was started
  // again, say.
  void GuestBroke(int guest, int64_t now_ms);
  Actions GuestIsThere(int guest, int64_t now_ms);
  // `reporter` cannot reach `node` any more, for what `how` says. Fails the job, unless the node
  // has left: once it is clear whether the node is lost, or only the link between the two.
  Actions Accuse(int reporter, int node, const std::string& how, int64_t now_ms);
  // Whether the member that it was said of has its place still. What is said of a node may be late,
  // and another be there by now.
  bool HasPlace(const Member& member) const;
  // The others cannot go on with that worker: they have waited for it for longer than the job's
  // patience, or need what it has not got; `how` says which.
  Actions DoWithout(int node, const Status& how);
  // What a node says has failed: another, or itself, which is lost alone then. A newcomer is
  // believed only that it cannot reach another: what it waits for, the others may not miss.
  Actions Reported(int reporter, int node, const Status& how, int64_t now_ms);
  // The launcher saw a process exit. Before the job begins, that fails it only if a worker is
  // waiting or none can come.
  Actions Ended(const Exit& exit);
  // The start has failed, and some may still come who do not know.
  bool AwaitsLate() const;
  // One of them has; false: it has been told already.
  bool ComesLate(const Member& member);
  // The newcomer `node` is that far, says itself, or the worker that lets it in; of a server, also
  // the one that has done its work.
  Actions Admits(int sayer, int node, Admission admission);
  // It waits at a barrier, and has passed so many of which this or an earlier scheduler told it.
  Actions Barrier(int node, uint64_t passed);
  Actions Fail(const Status& status);
  // `starved`: why the scheduler can connect to nobody now, which is no fault of theirs; empty: it
  // can.
  Actions Tick(int64_t now_ms, const std::string& starved = "");

  bool running() const { return state_ == State::kRunning; }
  // When the start times out; kNever once it is over.
  int64_t start_by_ms() const {
    return state_ == State::kGathering ? started_ms_ + times_.start_timeout_ms : kNever;
  }
  const std::vector<Member>& members() const { return members_; }
  // Once running: what everybody uses.
  const SharedSettings& settings() const { return settings_; }
  const Roster& roster() const { return roster_; }
  uint64_t releases() const { return releases_; }

 private:
  enum class State { kGathering, kRunning, kEnded, kFailed };
  struct Accusation {
    int reporter, node;
    std::string how;
    int64_t since_ms;
  };
  int Count(Role role) const;
  int Expected(Role role) const { return role == Role::kWorker ? workers_ : servers_; }
  std::string Missing() const;
  std::string Refusal(const Member& member, int64_t now_ms) const;
  Actions Come(const Member& member, int64_t now_ms);
  Actions TakeThoseTooSoon(int64_t now_ms);
  Actions RejectThoseTooSoon(const std::string& why);
  void ForgetTooSoon(uint64_t life);
  std::string NoPlace(const Member& member, int64_t now_ms) const;
  bool MayBeMissedSoon(const Member& member, int64_t now_ms) const;
  std::set<int> LostWith(const std::set<int>& nodes) const;
  Actions ServerAdmits(int sayer, int node, Admission admission);
  Actions LetServersIn();
  std::vector<Member>::iterator Place(const Member& member);
  bool Complete() const;
  Actions Await(int64_t now_ms, int64_t pause_ms);
  std::vector<Party> Losses(const std::set<int>& nodes) const;
  Actions Lose(const std::set<int>& nodes, const Status& why);
  void GoOnWithout(const std::set<int>& newcomers, Actions* actions);
  Actions CutOff(const std::set<std::pair<int, int>>& links, const std::string& why,
                 int64_t now_ms);
  Actions CheckOver();
  Actions Judge(int64_t now_ms);
  std::string Contradiction(const Member& member) const;
  Status Settle(const std::vector<int>& ids);
  Actions Assign(int64_t now_ms);
  Actions CheckBarrier();
  Actions CheckGone();
  bool IsGone(const Member& m) const { return gone_.count({m.role, m.rank_hint}) != 0; }

  const int workers_, servers_;
  const MembershipTimes times_;
  SharedSettings settings_;
  State state_ = State::kGathering;
  std::vector<Member> members_;
  int guests_ = 0;  // that have ever registered
  std::map<int, int64_t> heard_ms_;
  std::map<int, int64_t> suspect_ms_;  // since when, of those that were not heard again
  std::vector<Accusation> accusations_;
  std::multimap<int, int64_t> cut_at_ms_;  // when links failed, by node that is still in
  Roster roster_;
  struct Admitted {
    Admission admission = Admission::kComes;
    int by = -1;               // who lets it in
    std::set<int> give_it_up;  // of a server: who would give up its slots
  };
  std::map<int, Admitted> newcomers_;
  std::vector<Member> too_soon_;    // that wait until the job has begun, or their places are free
  std::map<int, uint8_t> entries_;  // of those who came later: how many had their places before
  std::set<int> at_barrier_;
  uint64_t releases_ = 0;  // barriers that all have passed
  bool begun_ = false;
  // It goes on for another: who has not been heard yet, and whether nobody has.
  std::set<int> unheard_;
  bool unanswered_ = false;
  std::set<std::pair<Role, int>> gone_;  // that ended before the job had begun, by their hints
  std::optional<Exit> first_gone_;
  int64_t started_ms_, next_warn_ms_, last_tick_ms_, next_heartbeat_ms_;
  int64_t starved_ms_ = kNever;  // since when, while gathering
};

}  // namespace mercury
