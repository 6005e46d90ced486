// How fast each host's link is at the moment, from the best source.
//
// Sources are asked in order: for example an operator's own telemetry before what the job's
// transfers show. If none knows, it is the link's nominal speed. A plan assumes that current rates
// hold forever; the next one sees how they have changed.
//
// Thread-safety: none, one owner; `now_s` is passed in. Ownership: sources outlive their monitor.
// Invariant: a rate that is passed on is at least 1 bit/s and finite.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "fabric/network.h"

namespace mercury::fabric {

struct HostRates {
  double in_bit_per_s = 0;
  double out_bit_per_s = 0;
};

class RateSource {
 public:
  virtual ~RateSource() = default;
  // Nothing: it does not know, at the moment.
  virtual std::optional<HostRates> Of(size_t host, double now_s) const = 0;
};

class Monitor {
 public:
  // `nominal`: of each host.
  Monitor(std::vector<HostRates> nominal, std::vector<const RateSource*> sources)
      : nominal_(std::move(nominal)), sources_(std::move(sources)) {}

  HostRates Of(size_t host, double now_s) const;
  // Of all hosts, as the planner wants them.
  std::vector<HostLink> Links(double now_s) const;

 private:
  const std::vector<HostRates> nominal_;
  const std::vector<const RateSource*> sources_;
};

}  // namespace mercury::fabric
