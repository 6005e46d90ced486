// A collector with two workers, whose orders a test looks at.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "fabric/live/collector.h"
#include "harness.h"

namespace mercury::fabric::testing {

constexpr int64_t kBytes = 12'500'000;

// Two workers, a server and perhaps a replica, each on a host with 100 Mbit/s: a transfer takes 1
// s.
struct CollectorJob {
  explicit CollectorJob(bool replica, double divergence_bound = 0, bool at_once = true,
                        int64_t staleness = Staleness::kAny)
      : CollectorJob(Hosts(replica), divergence_bound, at_once, staleness) {}
  explicit CollectorJob(const FleetHosts& hosts, double divergence_bound = 0, bool at_once = true,
                        int64_t staleness = Staleness::kAny)
      : CollectorJob(hosts, Options(divergence_bound, at_once, staleness)) {}
  CollectorJob(const FleetHosts& hosts, const CollectorOptions& options)
      : collector(hosts, options) {
    for (int host = 0; host < 4; ++host) {
      links.push_back({RateProfile({{0, 1e8}}), RateProfile({{0, 1e8}})});
    }
  }
  static FleetHosts Hosts(bool replica) {
    FleetHosts hosts;
    hosts.workers = {2, 3};
    if (replica) hosts.replica = 1;
    return hosts;
  }
  static CollectorOptions Options(double divergence_bound, bool at_once, int64_t staleness) {
    CollectorOptions options;
    options.staleness.updates = staleness;
    options.delay_bound = 3;
    options.divergence_bound = divergence_bound;
    options.at_once = at_once;
    options.aggregators = 0;
    return options;
  }
  // A job whose updates go to the server through the replica.
  static CollectorJob Relaying(int64_t staleness = Staleness::kAny) {
    CollectorOptions options = Options(0, true, staleness);
    options.by_packets = true;
    options.aggregators = 1;
    return CollectorJob(Hosts(true), options);
  }
  void Push(int worker, int64_t number, int64_t version = 0) {
    CHECK_OK(collector.Push({{worker, number}, version, kBytes, 1}));
  }
  void Reduce(int worker, int64_t number) {
    CHECK_OK(collector.Push({{worker, number}, 0, kBytes, 1, 0, true}));
  }
  Orders Tick(double now_s) { return collector.Tick(links, now_s); }

  Collector collector;
  std::vector<HostLink> links;
};

inline size_t Count(const Orders& orders, Order::Kind kind) {
  return static_cast<size_t>(std::count_if(
      orders.begin(), orders.end(), [kind](const Order& order) { return order.kind == kind; }));
}

inline const Order& The(const Orders& orders, Order::Kind kind) {
  REQUIRE_EQ(Count(orders, kind), 1);
  return *std::find_if(orders.begin(), orders.end(),
                       [kind](const Order& order) { return order.kind == kind; });
}

inline std::string Why(const Order& order) {
  mercury::Status status;
  mercury::Decode(order.text, &status);
  return status.text();
}

}  // namespace mercury::fabric::testing
