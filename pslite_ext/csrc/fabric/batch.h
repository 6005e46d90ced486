// A batch of updates, as the planner gets it, and the plan that it makes of it.
//
// Thread-safety: plain values. Invariant of a batch that was read by `ReadBatch`: it keeps the
// rules of the format (docs/fabric-plan.md), so that indices are good and every link carries
// something in the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric/network.h"
#include "fabric/ordering.h"
#include "fabric/shipment.h"

namespace mercury::fabric {

// Who sends or receives, and on which host.
struct Site {
  std::string name;
  size_t host = 0;
};

struct Update {
  std::string id;
  Site worker;
  double available_s = 0;
  std::vector<int64_t> bytes;  // one for each server
  int64_t version = 0;
  double norm = 0;
  bool alone = false;  // it has been in a chain that never came
};

struct ReplicaBatch {
  Site node;
  std::vector<Site> aggregators;
  double divergence_bound = 0;
  double momentum = 0;
  double history_norm = 0;
  std::vector<Update> pending;
  bool relays = false;  // chains may come to the server through it
};

struct Batch {
  Network network;
  std::vector<Site> servers;
  std::vector<Site> aggregators;
  std::optional<ReplicaBatch> replica;
  bool synchronous = false;
  bool coded = false;       // updates travel as 16-bit floats
  bool by_packets = false;  // what is summed on its way is passed on packet by packet, not whole
  int64_t delay_bound = 0;
  int64_t version = 0;
  double momentum = 0;
  std::vector<Update> updates;
};

struct ReplicaPlan {
  // Shipments are indices of the log: the pending updates, then those of the order. What comes to
  // the server through the replica is not among them.
  std::vector<Transfer> transfers;
  size_t frozen = 0;  // a prefix of the log; the rest is punted
  std::vector<double> divergence_at_commits;
};

// Shipments of `transfers` and `commits` are indices of the batch's updates.
struct Plan {
  std::vector<size_t> order;
  std::vector<Drop> dropped;
  std::vector<Transfer> transfers;
  std::vector<Commit> commits;
  std::optional<ReplicaPlan> replica;
  double objective_s = 0;
};

}  // namespace mercury::fabric
