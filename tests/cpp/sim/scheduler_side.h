// The scheduler of a simulated job: its membership, and what that decides, carried out as ZmqVan
// does. Whatever it is told comes by letters, as what it tells does.
//
// Thread-safety: none. Time is the network's. Invariant: nobody is heard in the name of another who
// has, or had, the same place.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/control_wires.h"
#include "sim/node_hearings.h"

namespace mercury::testing {

class SchedulerSide {
 public:
  using Node = std::shared_ptr<Process>;
  using Notes = std::function<void(const std::string& what)>;

  SchedulerSide(Network* network, Random* random, NodeHearings* nodes, int workers, int servers,
                Notes notes)
      : network_(network),
        nodes_(nodes),
        notes_(std::move(notes)),
        wires_(network, random),
        workers_(workers),
        servers_(servers),
        membership_(Membership()) {}

  static MembershipTimes Times() { return {20, 200, 1000, 2000}; }

  // Before the job begins, which it does with the last of them.
  void Register(const Node& node) {
    membership_->Register(Registered(*node), NowMs());
    membership_->GuestIsThere(membership_->members().back().guest, NowMs());
    life_of_[node->id()] = node->life;
    process_of_[node->life] = node;
    node->membership.Assigned(NowMs());
  }
  void GoOnWith(int least, bool servers_may_go, int places) {
    go_on_ = [=] { membership_->GoOnWith(least, servers_may_go, places); };
    go_on_();
    record_ = membership_->Record();
    KeepTicking();
  }

  bool alive() const { return alive_; }
  bool HasLost(const Process& process) const {
    return HasPlace(process) && lost_.count(process.id()) != 0;
  }
  bool works() const { return alive_ && !over_; }
  // It has said that the job is over, and was lost before all had heard it, perhaps.
  bool EndedUnheard() const { return over_ && !alive_; }
  void Kill() {
    alive_ = false;
    wires_.LoseSome();
  }
  // Another goes on from what it has written down, unless the job was over.
  void Return() {
    if (alive_ || over_) return;
    notes_("a scheduler goes on");
    alive_ = true;
    ++returns_;
    membership_ = Membership();
    membership_->GoOnFrom(record_, NowMs());
    go_on_();
    lost_.clear();
    life_of_.clear();
    for (const PlaceRecord& placed : record_.placed) {
      life_of_[placed.member.id] = placed.member.life;
      if (placed.presence == Presence::kLost) lost_.insert(placed.member.id);
    }
    TellAgain();
    KeepTicking();
  }
  void Stop(bool stopped) {
    stopped_ = stopped;
    wires_.Stop(stopped);
  }
  ControlWires& wires() { return wires_; }

  // From a node, if it is one of the job's still, as far as the scheduler knows.
  using Tells = std::function<Actions(SchedulerMembership* membership, int64_t now_ms)>;
  void Tell(const Node& node, Tells tells) {
    wires_.Send(node->id(), true, [this, node, to = node->returns, tells = std::move(tells)] {
      if (!works() || !IsKnown(*node) || to != returns_) return;
      membership_->Heard(node->id(), NowMs());
      CarryOut(tells(membership_.get(), NowMs()));
    });
  }
  // Of one that has no place yet.
  void Ask(const Node& newcomer) {
    process_of_[newcomer->life] = newcomer;
    if (!alive_) return;
    if (over_) return nodes_->HearEnd(newcomer, Status::PeerLost("it came too late"));
    CarryOut(membership_->Register(Registered(*newcomer), NowMs()));
  }
  // What it sees by itself: a process of the launcher's, or a connection that broke.
  void SeeEnd(const Node& node, bool by_launcher) {
    if (!works() || !IsKnown(*node)) return;
    CarryOut(by_launcher
                 ? membership_->Ended({node->role, node->hint, "was killed by signal 9", true})
                 : membership_->Suspect(node->id(), NowMs()));
  }

 private:
  using Hears = std::function<void(const Node& node)>;

  int64_t NowMs() const { return network_->now_us() / 1000; }
  // As long as this one works.
  void KeepTicking() {
    network_->After(10000, [this, its = returns_] {
      if (!works() || returns_ != its) return;
      if (!stopped_) CarryOut(membership_->Tick(NowMs()));
      KeepTicking();
    });
  }
  std::unique_ptr<SchedulerMembership> Membership() const {
    return std::make_unique<SchedulerMembership>(workers_, servers_, Times(), NowMs());
  }
  static Member Registered(const Process& process) {
    Member member;
    member.role = process.role;
    member.host = "host";
    member.port = static_cast<int>(process.life);
    member.rank_hint = process.hint;
    member.life = process.life;
    return member;
  }
  bool HasPlace(const Process& process) const {
    if (process.rank < 0) return false;
    const auto life = life_of_.find(process.id());
    return life != life_of_.end() && life->second == process.life;
  }
  bool IsKnown(const Process& process) const {
    return HasPlace(process) && lost_.count(process.id()) == 0;
  }
  void Say(int node, const Hears& hears) {
    const Node to = process_of_[life_of_[node]];
    wires_.Send(node, false, [to, hears] {
      if (to->runs() && to->told) hears(to);
    });
  }
  void Broadcast(const Hears& hears) {
    for (const Member& m : membership_->members()) {
      const bool there = !membership_->roster().HasLeft(m.id) && lost_.count(m.id) == 0;
      if (m.id != -1 && there) Say(m.id, hears);
    }
  }
  void CarryOut(const Actions& actions) {
    NodeHearings* const nodes = nodes_;
    const auto kept = [](const Action& action) { return action.IsKept(); };
    if (std::any_of(actions.begin(), actions.end(), kept)) record_ = membership_->Record();
    for (const Action& action : actions) {
      const int node = action.node;
      const Status why = action.status;
      switch (action.kind) {
        case Action::kAdmit:
          Admit(action.member);
          break;
        case Action::kAdmission:
          Admits(node, action.admission, action.generation);
          break;
        case Action::kReject:
          nodes->HearEnd(process_of_[action.member.life], Status::PeerLost(action.text));
          break;
        case Action::kHeartbeat:
          Broadcast([nodes](const Node& to) { nodes->HearHeartbeat(to); });
          break;
        case Action::kRelease:
          Broadcast([=, releases = membership_->releases()](const Node& to) {
            const bool hears = node == -1 || node == to->id();
            if (hears && to->role == Role::kWorker) nodes->HearRelease(to, releases);
          });
          break;
        case Action::kDeparted:
          Broadcast([nodes, node](const Node& to) { nodes->HearDeparture(to, node); });
          break;
        case Action::kLost:
          notes_("the scheduler: " + NodeName(node) + " is lost: " + why.text());
          Broadcast([=, generation = action.generation](const Node& to) {
            nodes->HearLoss(to, node, why, generation);
          });
          lost_.insert(node);
          break;
        case Action::kNobody:
          over_ = true;
          return;
        case Action::kFail:
        case Action::kEnd:
          if (!why.ok()) notes_("the scheduler: it fails: " + why.text());
          Broadcast([nodes, why](const Node& to) { nodes->HearEnd(to, why); });
          over_ = true;
          return;
        default:
          break;
      }
    }
  }
  void TellAgain() {
    NodeHearings* const nodes = nodes_;
    Broadcast([nodes, returns = returns_](const Node& to) { nodes->HearBack(to, returns); });
    for (const PlaceRecord& placed : record_.placed) {
      const Member m = placed.member;
      Broadcast([=](const Node& to) {
        const bool was_in = placed.presence == Presence::kIn ||
                            (placed.presence == Presence::kLost && m.role == Role::kServer);
        const uint64_t before = placed.presence == Presence::kLost ? 1 : 0;
        if (was_in && placed.late) {
          nodes->HearAdmission(to, m, Admission::kIn, placed.changed - before);
        }
        if (placed.presence == Presence::kLost) {
          const Status why = Status::PeerLost("it was lost before the scheduler was");
          nodes->HearLoss(to, m.id, why, placed.changed);
        } else if (placed.presence == Presence::kLeft) {
          nodes->HearDeparture(to, m.id);
        }
      });
    }
    CarryOut(membership_->LoseNewcomers());
  }
  void Admits(int node, Admission admission, uint64_t generation) {
    notes_("the scheduler: " + NodeName(node) + " is as far as " +
           std::to_string(static_cast<int>(admission)));
    for (const Member& m : membership_->members()) {
      if (m.id != node) continue;
      Broadcast([=, nodes = nodes_](const Node& to) {
        nodes->HearAdmission(to, m, admission, generation);
      });
    }
  }
  void Admit(const Member& member) {
    notes_("the scheduler: " + NodeName(member.id) + " comes");
    lost_.erase(member.id);
    life_of_[member.id] = member.life;
    process_of_[member.life]->rank = RankOf(member.id);
    wires_.Renew(member.id);
    NodeHearings::Table table;
    table.itself = member;
    const Roster& roster = membership_->roster();
    table.generation = roster.generation();
    for (const Member& m : membership_->members()) {
      const bool in = !roster.IsOut(m.id), worker = m.role == Role::kWorker;
      if (worker) table.entries[RankOf(m.id)] = m.entry;
      if (worker && in) table.workers.insert(RankOf(m.id));
      if (!worker && (in || m.id == member.id)) table.servers[RankOf(m.id)] = m;
    }
    const Node newcomer = process_of_[member.life];
    wires_.Send(member.id, false,
                [=, nodes = nodes_, returns = returns_, passed = membership_->releases()] {
                  if (!newcomer->runs()) return;
                  newcomer->told = true;
                  newcomer->returns = returns;
                  if (const auto worker = AsWorker(newcomer)) worker->passed = passed;
                  nodes->HearTable(newcomer, table);
                });
    for (const Member& m : membership_->members()) {
      const bool awaits = member.role == Role::kServer && m.id != member.id && roster.IsNew(m.id);
      if (!awaits) continue;
      Say(member.id, [nodes = nodes_, m, at = table.generation](const Node& to) {
        nodes->HearAdmission(to, m, Admission::kComes, at);
      });
    }
    Broadcast([nodes = nodes_, member, at = table.generation](const Node& to) {
      if (to->life != member.life) nodes->HearAdmission(to, member, Admission::kComes, at);
    });
  }

  Network* const network_;
  NodeHearings* const nodes_;
  const Notes notes_;
  ControlWires wires_;
  const int workers_, servers_;
  std::unique_ptr<SchedulerMembership> membership_;
  std::function<void()> go_on_;
  JobRecord record_;      // as it is written down
  uint64_t returns_ = 0;  // of schedulers that go on where others were lost
  bool alive_ = true, over_ = false, stopped_ = false;
  std::map<int, uint64_t> life_of_;      // of members
  std::map<uint64_t, Node> process_of_;  // by life
  std::set<int> lost_;                   // members
};

}  // namespace mercury::testing
