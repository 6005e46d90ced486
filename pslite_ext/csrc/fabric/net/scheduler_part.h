// The scheduler of an MLfabric job once it has begun: it hears requests and news, plans, and tells
// nodes who sends what.
//
// It learns from news who the server is: once a replica has reported that it took over, orders
// for the server go there, and workers are told first. If two nodes cannot reach each other while
// both reach the scheduler, they are given some time. Then one of them is cut off, because a job
// with a divided network makes no progress: a replica in reserve, whoever the other one is; of a
// worker and one that has the model, the worker; of the server and the replica, the replica; of two
// workers, the one whom more cannot reach, or who was named first.
//
// Several servers are one host for the planner, with as many links as there are servers, all as
// fast as the slowest. Once one of them is lost, the replica takes the place of all.
//
// Thread-safety: none; the lane owns it. Invariants: those of Collector; what a node says about
// another node's updates is refused.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabric/live/chronicle.h"
#include "fabric/live/collector.h"
#include "fabric/live/fed_rates.h"
#include "fabric/live/measured_rates.h"
#include "fabric/net/part.h"
#include "fabric/net/peers.h"

namespace mercury::fabric {

constexpr double kComplaintHolds_s = 2;  // until one of the two is cut off
constexpr double kNominalRate = 10e9;    // bit/s of a link whose card does not say
constexpr size_t kRecordBytesMost = 64 << 20;

struct SchedulerOptions {
  CollectorOptions collector;
  double lag_s = 0.2;
  bool record = false;  // what happens, for TakeRecords
};

class SchedulerPart : public Part {
 public:
  SchedulerPart(const std::vector<Seat>& seats, const SchedulerOptions& options, Outbox* outbox);

  Status Hear(int peer, const Letter& letter, const Haul& haul, double now_s) override;
  void Gone(int peer, double now_s) override;
  void Turn(double now_s) override;
  double WakeAt(int peer, double now_s) const override;
  std::string Figures() const override;

  // A turn is over, and what it has planned is on its way.
  void SentOut(double now_s);

  // A line of an operator's feed.
  Status Feed(const std::string& line, double now_s) { return fed_.Feed(line, now_s); }

  // Lines of what has happened since it was asked last (live/chronicle.h).
  std::string TakeRecords() { return chronicle_ ? chronicle_->Take() : ""; }

  // Why the job cannot go on; empty: it can.
  const Status& failure() const { return failure_; }
  bool workers_left() const { return workers_ > 0; }
  // Whom the node is to cut off; it is then gone.
  std::vector<int> TakeCutOff() { return std::exchange(cut_off_, {}); }

 private:
  struct Fleet {
    std::vector<std::string> names;  // of hosts
    std::map<int, size_t> of;        // a node's
    FleetHosts hosts;
    std::vector<HostRates> nominal;
    std::vector<size_t> servers;  // their hosts, if there are several
  };
  struct Complaint {
    int named = 0;     // who cannot be reached, says the other one
    double due_s = 0;  // when one of the two is cut off
    int spare = -1;    // a replica that had no model then; -1: neither is one
  };
  static Fleet FleetOf(const std::vector<Seat>& seats);
  std::vector<HostLink> Links(double now_s) const;
  void Obey(const Orders& orders);
  Status PlanTree(int peer, const Tree& wanted, double now_s);
  Status Learn(int peer, const News& news);
  Status Measure(int node, const Carriage& run, double now_s);
  Status Complain(int peer, int about, double now_s);
  bool Alive(int peer) const { return outbox_->Linked(peer); }
  bool Needed(std::pair<int, int> link) const;
  bool IsReplica(int peer) const;
  bool InReserve(int peer) const;
  int LessNeeded(std::pair<int, int> link, const Complaint& complaint) const;
  void CutOff(double now_s);

  const Fleet fleet_;
  Outbox* const outbox_;
  Collector collector_;
  FedRates fed_;
  MeasuredRates measured_;
  Monitor monitor_;
  int server_peer_ = kServerPeer;
  bool servers_lost_ = false;  // one of those that there were at first
  const double momentum_;
  const bool by_packets_;
  const size_t distributors_;  // at most, of a model
  int workers_ = 0;
  std::map<std::pair<int, int>, Complaint> complaints_;  // by two peers, the lower one first
  std::vector<int> cut_off_;
  Status failure_;
  std::optional<Chronicle> chronicle_;
  double now_s_ = 0;
  bool planned_ = false;  // in this turn
  int64_t batches_ = 0;
  int64_t gathered_ = 0;  // groups and chains that were planned
};

}  // namespace mercury::fabric
