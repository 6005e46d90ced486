// What the nodes of a simulated job tell its scheduler, which hears it later, or not at all.
//
// Thread-safety: none.
#pragma once

#include <memory>
#include <string>

#include "sim/scheduler_side.h"

namespace mercury::testing {

class NodeSayings {
 public:
  using Node = std::shared_ptr<Process>;

  NodeSayings(Network* network, SchedulerSide* scheduler)
      : network_(network), scheduler_(scheduler) {}

  void Heartbeat(const Node& node) {
    scheduler_->Tell(node, [](SchedulerMembership*, int64_t) { return Actions(); });
  }
  void Barrier(const std::shared_ptr<WorkerProcess>& worker) {
    scheduler_->Tell(worker, [id = worker->id(), passed = worker->passed](
                                 SchedulerMembership* membership, int64_t) {
      return membership->Barrier(id, passed);
    });
  }
  void Admission(const Node& says, int newcomer, mercury::Admission admission) {
    OfNewcomer(says, AsKnown(*says, NodeId(Role::kWorker, newcomer)), admission);
  }
  void OfNewcomer(const Node& says, const Member& newcomer, mercury::Admission admission) {
    scheduler_->Tell(says, [=, id = says->id()](SchedulerMembership* membership, int64_t) {
      if (!membership->HasPlace(newcomer)) return Actions();
      return membership->Admits(id, newcomer.id, admission);
    });
  }
  void Report(const Node& node, int of) {
    Process::Reported& reported = node->reported[of];
    const auto now_ms = network_->now_us() / 1000;
    reported.verdict_by_ms = now_ms + 2 * SchedulerSide::Times().suspicion_ms();
    const Member member = AsKnown(*node, of);
    scheduler_->Tell(node, [member, why = reported.why, id = node->id()](
                               SchedulerMembership* membership, int64_t at_ms) {
      if (!membership->HasPlace(member)) return Actions();
      return membership->Reported(id, member.id, why, at_ms);
    });
  }
  // Of a server: that worker has done its work.
  void Finished(const Node& server, int rank) {
    const Member member = AsKnown(*server, NodeId(Role::kWorker, rank));
    scheduler_->Tell(server, [member](SchedulerMembership* membership, int64_t now_ms) {
      if (!membership->HasPlace(member)) return Actions();
      return membership->Leave(member.id, Status::Ok(), now_ms);
    });
  }
  void Leaves(const Node& node, const Status& why) {
    scheduler_->Tell(node, [why, id = node->id()](SchedulerMembership* membership, int64_t now_ms) {
      return membership->Leave(id, why, now_ms);
    });
  }

 private:
  // As far as it has heard who that is.
  static Member AsKnown(const Process& node, int of) {
    Member member;
    member.id = of;
    const auto entry = node.entries.find(RankOf(of));
    if (RoleOf(of) == Role::kWorker && entry != node.entries.end()) member.entry = entry->second;
    const auto server = node.servers.find(RankOf(of));
    if (RoleOf(of) == Role::kServer && server != node.servers.end()) return server->second;
    return member;
  }

  Network* const network_;
  SchedulerSide* const scheduler_;
};

}  // namespace mercury::testing
