// What is passed on packet by packet: updates that travel together, and the model: chains of
// workers.
//
// The first worker of a chain sends its update to the second. Each of the others adds its own to
// every packet as it comes, and passes the sum on; the last one sends to the server. So a chain
// takes as long as one update on its slowest way, and a little for each host, however many updates
// it sums; and it uses no way of any host more than once. An update alone is a chain of one, which
// goes straight.
//
//   order (Algorithm 2's) -> cut into chains -> in each, workers of a host are neighbours, and the
//                                               slowest host is first: it needs no way in
//
// If there is a replica, chains end at it: it keeps a copy of each packet, and passes it on to the
// server. So both have the sum at about the same time, and no worker sends anything twice.
//
// Where to cut: as long as some cut, of those where speed changes or that halve the order, makes
// the whole end sooner, the best is made. Chains are reserved in their order or in the reverse one,
// whichever ends sooner: a slow chain beside a fast one needs its start more than all of a link.
//
// Thread-safety: pure functions, no clock. The network is as before when they return. Invariants:
// every update of the order is in one chain; the i-th update of all has a deadline of i or later,
// if it has in the order; a host's workers in a chain are neighbours.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/network.h"
#include "fabric/shipment.h"

namespace mercury::fabric {

// What a worker needs to add to a packet and pass it on, besides the packet's own time.
constexpr double kPassOn_s = 0.001;
// A sum of 16-bit floats is rounded at each worker of a chain: so many do no harm.
constexpr size_t kCodedChainMost = 32;

// How large packets are that are passed on: small beside what they are part of.
int64_t PassedOnPacket_bytes(int64_t bytes);

using Chain = std::vector<size_t>;  // shipments, in the order of their places

// `deadlines` as WithDeadlines has them; synchronous: empty. The target has one server.
std::vector<Chain> CutIntoChains(Network* network, const std::vector<Shipment>& shipments,
                                 const Target& target, const std::vector<size_t>& order,
                                 const std::vector<int64_t>& deadlines);

// A chain's hops, and when it is at the server; of all chains, in their order.
struct LaidChains {
  std::vector<Transfer> transfers;
  std::vector<Commit> arrivals;
};
LaidChains LayChains(Network* network, const std::vector<Shipment>& shipments, const Target& target,
                     const std::vector<Chain>& chains);

// One version of the model on its way down a chain: the server gives it to the first, and each
// passes on what comes. The fastest hosts are first, so that whoever is slow delays only those who
// are no faster.
struct PassedDown {
  size_t get = 0;  // whose worker has it
  double end_s = 0;
};
// `gets` as Distribute has them. The network's capacity is not taken.
std::vector<PassedDown> PassDown(const Network& network, const std::vector<Shipment>& gets,
                                 const Target& target);
// Whether all would have it sooner straight from the server, in the mean.
bool IsSoonerStraight(double straight_mean_s, const std::vector<PassedDown>& chain);

}  // namespace mercury::fabric
