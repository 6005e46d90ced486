// What a batch sends, and where to: the words that the planner's units share.
//
// Thread-safety: plain values. Hosts are indices into a `Network`. Invariant: a shipment has one
// size for each server of its target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "fabric/rate_profile.h"

namespace mercury::fabric {

// Two times that differ by no more are the same.
constexpr double kSameTime_s = 1e-9;
// Of long ones, that is less than the rounding of their sums: this part of a sum is nothing, too.
constexpr double kSamePart = 1e-12;
constexpr double kNever = std::numeric_limits<double>::infinity();

inline double Bits(int64_t bytes) { return 8.0 * static_cast<double>(bytes); }

// An update at its worker.
struct Shipment {
  size_t host = 0;
  double ready_s = 0;
  std::vector<int64_t> bytes;  // one for each server
  bool alone = false;          // in no chain with others
};

// Where a batch goes: the servers, or a replica.
struct Target {
  std::vector<size_t> servers;      // hosts
  std::vector<size_t> aggregators;  // hosts, in the order of use; only with one server
  std::optional<size_t> relay;      // the replica's host, if chains come to the server through it
  bool two_sums = false;    // an aggregate of several updates carries a sum for w and one for h
  size_t chain_most = 128;  // updates of one chain
  bool together = false;    // synchronous: all updates are applied at once, at the end

  // Where a chain's workers send to.
  size_t end() const { return relay.value_or(servers[0]); }
};

// A hop to the server may be two, if the replica stands on the way: one to that, which keeps a copy
// and passes it on, and one from there.
enum class Relaying { kNot, kTo, kFrom };

constexpr int kDirect = -1;
constexpr size_t kNoShipment = std::numeric_limits<size_t>::max();

// Where an update goes: straight to the servers, or to an aggregator. Neighbours in a schedule with
// the same aggregator are one group.
struct Stop {
  size_t shipment = 0;
  int aggregator = kDirect;
};
using Schedule = std::vector<Stop>;

// One hop, with what it has reserved.
struct Transfer {
  int from_aggregator = kDirect;  // else from the worker of `shipments[0]`
  int to_aggregator = kDirect;    // else to `server`
  size_t server = 0;              // index into Target::servers
  std::vector<size_t> shipments;
  int64_t bytes = 0;
  double end_s = 0;
  std::vector<RateSpan> pieces;
  double not_before_s = -1;  // below 0: it is not held
  // Of a chain (chains.h): from the worker of the last of `shipments`,
  bool chained = false;
  size_t next = kNoShipment;  // to the worker of this one, if there is one
  Relaying relaying = Relaying::kNot;
};

// What is applied at once: the shipments of one transfer to the server (or of one update's parts).
struct Commit {
  double time_s = 0;
  std::vector<size_t> shipments;
};

}  // namespace mercury::fabric
