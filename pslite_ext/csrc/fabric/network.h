// The network as the planner sees it: what is left, over time, of each host's way in and way out.
//
// A transfer takes all the residual of its path, so that two never share a moment of a bottleneck.
// The core of the network is free of congestion; within one host a transfer takes no time.
//
// Thread-safety: none, one owner. There is no clock: times are seconds from the moment of planning.
// Invariants: what is reserved never exceeds a profile; `Rollback` restores what was there at the
// mark exactly, and marks are given back in the reverse order.
#pragma once

#include <cstddef>
#include <vector>

#include "fabric/rate_profile.h"

namespace mercury::fabric {

struct HostLink {
  RateProfile in;
  RateProfile out;
};

class Network {
 public:
  Network() = default;
  explicit Network(std::vector<HostLink> hosts) : hosts_(std::move(hosts)) {}

  // t_en: when `bits` that are ready at `ready_s` would have arrived.
  double End(size_t from, size_t to, double ready_s, double bits) const;
  // Transfers of so many bits into a host, whoever sends them, cannot all end sooner.
  double EndInto(size_t to, double bits) const;
  // NetUp: reserves exactly that. The pieces are appended to `pieces`, unless that is null.
  double Reserve(size_t from, size_t to, double ready_s, double bits,
                 std::vector<RateSpan>* pieces = nullptr);
  // Both for what flows through `hosts`, which differ, at one rate: each passes on at once what
  // it gets. One host: it takes no time.
  double EndAlong(const std::vector<size_t>& hosts, double ready_s, double bits) const;
  double ReserveAlong(const std::vector<size_t>& hosts, double ready_s, double bits,
                      std::vector<RateSpan>* pieces = nullptr);
  // What a host's slower way has at the beginning.
  double Speed(size_t host) const;
  // Takes what a transfer that was reserved elsewhere uses.
  void Occupy(size_t from, size_t to, const std::vector<RateSpan>& pieces);

  size_t Mark() const { return changes_.size(); }
  void Rollback(size_t mark);

 private:
  struct Reservation {
    size_t from = 0;
    size_t to = 0;
    RateProfile::Change out;
    RateProfile::Change in;
  };

  RateProfile Way(const std::vector<size_t>& hosts) const;

  std::vector<HostLink> hosts_;
  std::vector<Reservation> changes_;
  std::vector<RateStep> replaced_;
  std::vector<RateSpan> scratch_;
};

}  // namespace mercury::fabric
