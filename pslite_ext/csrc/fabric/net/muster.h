// The scheduler of an MLfabric job until the job begins: who is there, and do they belong together?
//
//   awaiting --all have joined--> all know each other --all are linked--> the job begins
//
// Thread-safety: none, one owner; no clock, no sockets. Invariants: nobody joins twice; nodes on a
// roster agree with the scheduler on the job's size, and with each other on the model.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/shared_settings.h"
#include "fabric/live/letters.h"

namespace mercury::fabric {

class Muster {
 public:
  // `settings`: those that the scheduler uses. A node that was told otherwise does not belong here.
  // `rule`: what the server does, unless the workers say it.
  Muster(int workers, int servers, int replicas, SharedSettings settings, Rule rule = {})
      : workers_(workers),
        servers_(servers),
        replicas_(replicas),
        settings_(std::move(settings)),
        rule_(rule) {}

  // Whether there is a place for such a node, and nobody has it.
  bool Awaits(int node) const;
  // An error fails the job.
  Status Join(int node, const Joining& joining);
  bool all_joined() const { return joined_.size() == seats(); }
  // It is linked to all others.
  void Ready(int node) { ready_.insert(node); }
  bool all_ready() const { return ready_.size() == seats(); }

  // Once all have joined: who is there, the model's size and first values, the rule.
  Attendance Called() const;
  // Who has not joined, or is not ready: "worker 1, the replica".
  std::string Missing() const;

 private:
  size_t seats() const {
    return static_cast<size_t>(workers_) + static_cast<size_t>(servers_) +
           static_cast<size_t>(replicas_);
  }
  std::vector<int> Nodes() const;
  Status Agree(const std::string& who, const std::string& told) const;
  Status AgreeOnModel(int node, const Joining& joining) const;

  const int workers_;
  const int servers_;
  const int replicas_;
  const SharedSettings settings_;
  const Rule rule_;
  std::map<int, Joining> joined_;
  std::set<int> ready_;
};

}  // namespace mercury::fabric
