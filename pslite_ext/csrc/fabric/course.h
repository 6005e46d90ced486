// How a batch goes along a schedule: hop by hop in the network, with or without notes.
//
// Everybody who asks "and if it went this way?" walks a course: Algorithm 3, the local search, and
// who lays the final plan, which differs in that its hops are written down.
//
// Thread-safety: none, one owner. Invariants: hops are reserved in the order of the calls; commits
// are the running maximum of arrivals; a group is closed before anything else goes to the servers.
#pragma once

#include <vector>

#include "fabric/network.h"
#include "fabric/shipment.h"

namespace mercury::fabric {

// What came of a batch.
struct Outcome {
  double last_s = 0;  // the last commit
  double sum_s = 0;   // of the commits' times, one for each update
  size_t committed = 0;
};

class Course {
 public:
  // `transfers` and `arrivals` (of whole commits at the server, in order) may be null.
  Course(Network* network, const std::vector<Shipment>& shipments, const Target& target,
         std::vector<Transfer>* transfers = nullptr, std::vector<Commit>* arrivals = nullptr)
      : network_(*network),
        shipments_(shipments),
        target_(target),
        transfers_(transfers),
        arrivals_(arrivals) {}

  // Straight to the servers.
  void Direct(size_t shipment);
  // To an aggregator, as the next of its group; when it is there.
  double Gather(size_t shipment, int aggregator);
  // The group goes on to the server. Nothing happens if it is empty.
  void Close();
  void Walk(const Schedule& schedule);

  const Outcome& outcome() const { return outcome_; }
  size_t gathered() const { return group_.size(); }

  // For who goes back to an earlier mark of the network: only without notes.
  void Resume(const Outcome& outcome) {
    outcome_ = outcome;
    group_.clear();
    ready_s_ = 0;
    bytes_ = 0;
  }
  void TakeBack(double ready_s, int64_t bytes) {
    group_.pop_back();
    ready_s_ = ready_s;
    bytes_ = bytes;
  }
  double ready_s() const { return ready_s_; }
  int64_t bytes() const { return bytes_; }

 private:
  void Arrive(double at_s, size_t members);

  Network& network_;
  const std::vector<Shipment>& shipments_;
  const Target& target_;
  std::vector<Transfer>* const transfers_;
  std::vector<Commit>* const arrivals_;
  Outcome outcome_;
  std::vector<size_t> group_;
  int aggregator_ = kDirect;
  double ready_s_ = 0;  // the group's last arrival
  int64_t bytes_ = 0;   // its largest member
};

// The bytes of an aggregate of `members` updates, the largest of which has `largest`.
int64_t AggregateBytes(const Target& target, int64_t largest, size_t members);

// Commits are made in order: an early arrival waits for its predecessors. Synchronous: one commit.
std::vector<Commit> InOrder(const std::vector<Commit>& arrivals, const Target& target);

// The mean over updates of their commits' times; synchronous: the time of the commit. 0 of nothing.
double Objective(const Outcome& outcome, const Target& target);
double Objective(const std::vector<Commit>& commits, const Target& target);

}  // namespace mercury::fabric
