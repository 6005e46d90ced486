// What may happen to a simulated job: nodes and links are lost, held up, cut off; others come.
//
// Thread-safety: none. Time is the network's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "sim/whole_job.h"

namespace mercury::testing {

class DisturbedJob : public WholeJob {
 public:
  using WholeJob::WholeJob;

  // `silently`: no connection breaks, as if a machine had lost its power.
  void Kill(const Node& node, bool silently) {
    if (!node->alive) return;
    Note(NodeName(node->id()) + " is killed" + (silently ? " silently" : ""));
    Die(node, silently);
    if (silently) return;
    const bool by_launcher = node->hint >= 0 && random_->OneIn(2);
    network_.After(random_->Between(0, 3000),
                   [this, node, by_launcher] { scheduler_.SeeEnd(node, by_launcher); });
  }
  void KillScheduler(bool silently) {
    Note("the scheduler is killed");
    scheduler_.Kill();
    for (const auto& node : all_) {
      if (silently) break;
      network_.After(random_->Between(0, 3000), [this, node] {
        if (node->runs()) node->membership.Suspect(NowMs());
      });
    }
  }
  // Nodes find it again, and those that wait to be taken in ask again.
  void ReturnScheduler() {
    scheduler_.Return();
    for (const Node& each : all_) {
      if (each->rank >= 0 || !each->runs() || !scheduler_.works()) continue;
      network_.After(random_->Between(0, 3000), [this, each] {
        if (each->runs()) scheduler_.Ask(each);
      });
    }
  }
  // Its process, or its machine; then it goes on.
  void StopScheduler(int64_t for_us) {
    Note("the scheduler stops for " + std::to_string(for_us) + " us");
    scheduler_.Stop(true);
    network_.After(for_us, [this] { scheduler_.Stop(false); });
  }
  void CutLink(int worker, int server) {
    Note("worker " + std::to_string(worker) + " and server " + std::to_string(server) + " part");
    links_.Part(worker, this->server(server));
  }
  // Nobody reaches it any more, nor it anybody; but it goes on.
  void Isolate(const Node& node, bool from_scheduler_alone) {
    Note(NodeName(node->id()) + " is isolated" + (from_scheduler_alone ? " in part" : ""));
    scheduler_.wires().Cut(node->id());
    node->isolated = true;
    if (from_scheduler_alone) return;
    const bool serves = node->role == Role::kServer;
    for (int other = 0; other < (serves ? places() : servers()); ++other) {
      serves ? CutLink(other, node->rank) : CutLink(node->rank, other);
    }
  }
  // For so long, which is too short to matter.
  void Hold(const Node& node, int64_t for_us) {
    const int id = node->id();
    Note(NodeName(id) + " is held for " + std::to_string(for_us) + " us");
    scheduler_.wires().Cut(id);
    HoldPipes(*node, true);
    network_.After(for_us, [this, node, id] {
      scheduler_.wires().Mend(id);
      HoldPipes(*node, false);
    });
  }
  // A worker comes, in the first place that is free, or in that one; or a server does.
  void Come(int hint = -1, Role role = Role::kWorker) {
    const auto times = SchedulerSide::Times();
    Node comes;
    if (role == Role::kWorker) {
      comes = std::make_shared<WorkerProcess>(role, hint, servers(), times, NowMs());
    } else {
      const auto server = std::make_shared<ServerProcess>(role, hint, servers(), times, NowMs());
      server->in = false;
      server->late = true;
      comes = server;
    }
    comes->rank = -1;
    comes->told = false;
    Begin(comes);
    for (int64_t at_us = random_->Between(0, 2000); at_us < 5000; at_us += 2500) {  // again
      network_.After(at_us, [this, comes] {
        if (comes->runs() && comes->rank < 0) scheduler_.Ask(comes);
      });
    }
  }

 private:
  void HoldPipes(const Process& process, bool held) {
    for (int w = 0; w < places(); ++w) {
      for (int s = 0; s < servers(); ++s) {
        const int rank = process.role == Role::kServer ? s : w;
        if (rank == process.rank) network_.Hold(w, s, held);
      }
    }
  }
};

}  // namespace mercury::testing
