#include "fabric/live/model_tree.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fabric/chains.h"
#include "fabric/distribution.h"

namespace mercury::fabric {
namespace {

std::vector<int> Distributors(const FleetHosts& hosts, const std::vector<HostLink>& links,
                              const std::vector<int>& askers, size_t most) {
  std::vector<int> chosen;
  std::set<size_t> taken{hosts.server};  // whoever is beside the server need not pass anything on
  for (const int worker : askers) {
    if (taken.insert(hosts.workers[static_cast<size_t>(worker)]).second) chosen.push_back(worker);
  }
  const auto rank = [&](int worker) {
    return std::pair(-links[hosts.workers[static_cast<size_t>(worker)]].out.Rate(0), worker);
  };
  std::sort(chosen.begin(), chosen.end(), [&](int a, int b) { return rank(a) < rank(b); });
  chosen.resize(std::min(chosen.size(), most));
  return chosen;
}

std::vector<Shipment> GetsOf(const FleetHosts& hosts, const std::vector<int>& askers,
                             int64_t bytes) {
  std::vector<Shipment> gets;
  gets.reserve(askers.size());
  for (const int worker : askers) {
    gets.push_back({hosts.workers[static_cast<size_t>(worker)], 0, {bytes}});
  }
  return gets;
}

std::vector<Edge> Planned(const FleetHosts& hosts, Network* network, const std::vector<int>& askers,
                          int64_t bytes, const std::vector<int>& passing) {
  const std::vector<Shipment> gets = GetsOf(hosts, askers, bytes);
  Target target;
  target.servers = {hosts.server};
  for (const int worker : passing) {
    target.aggregators.push_back(hosts.workers[static_cast<size_t>(worker)]);
  }
  std::vector<Edge> tree;
  std::set<int> served;
  for (const Delivery& delivery : Distribute(network, gets, target)) {
    const auto node = [&](int distributor) { return passing[static_cast<size_t>(distributor)]; };
    const int to = delivery.to == kDirect ? askers[delivery.get] : node(delivery.to);
    // A distributor's own get is answered by what it passes on.
    if (!served.insert(to).second) continue;
    tree.push_back({delivery.from == kDirect ? kServerNode : node(delivery.from), to});
  }
  return tree;
}

// When all of the tree's workers have the model, and the mean of that of each.
struct Reached {
  double last_s = 0;
  double mean_s = 0;
};
Reached ReachedBy(const FleetHosts& hosts, Network* network, int64_t bytes,
                  const std::vector<Edge>& tree) {
  const auto host = [&](int node) {
    return node == kServerNode ? hosts.server : hosts.workers[static_cast<size_t>(node)];
  };
  const size_t mark = network->Mark();
  std::map<int, double> has_s{{kServerNode, 0}};
  Reached reached;
  for (const Edge& edge : tree) {
    const double end_s =
        network->Reserve(host(edge.from), host(edge.to), has_s.at(edge.from), Bits(bytes));
    has_s[edge.to] = end_s;
    reached.last_s = std::max(reached.last_s, end_s);
    reached.mean_s += end_s / static_cast<double>(tree.size());
  }
  network->Rollback(mark);
  return reached;
}

}  // namespace

std::vector<Edge> ModelChain(const FleetHosts& hosts, const std::vector<HostLink>& links,
                             const std::vector<int>& askers, int64_t bytes) {
  Target target;
  target.servers = {hosts.server};
  Network network(links);
  std::vector<Edge> chain;
  int from = kServerNode;
  const std::vector<PassedDown> passed = PassDown(network, GetsOf(hosts, askers, bytes), target);
  for (const PassedDown& its : passed) {
    chain.push_back({from, askers[its.get]});
    from = askers[its.get];
  }
  const std::vector<Edge> straight = Planned(hosts, &network, askers, bytes, {});
  const double straight_s = ReachedBy(hosts, &network, bytes, straight).mean_s;
  return IsSoonerStraight(straight_s, passed) ? straight : chain;
}

std::vector<Edge> ModelTree(const FleetHosts& hosts, const std::vector<HostLink>& links,
                            const std::vector<int>& askers, int64_t bytes, size_t distributors) {
  Network network(links);
  std::vector<Edge> straight = Planned(hosts, &network, askers, bytes, {});
  std::vector<Edge> tree =
      Planned(hosts, &network, askers, bytes, Distributors(hosts, links, askers, distributors));
  // Distribute compared plans in which distributors get the model twice. Without that, the rest
  // falls into other gaps, and may end later.
  const bool sooner = ReachedBy(hosts, &network, bytes, tree).last_s <
                      ReachedBy(hosts, &network, bytes, straight).last_s - kSameTime_s;
  return sooner ? tree : straight;
}

Leaving LeavingOf(const FleetHosts& hosts, const std::vector<HostLink>& links,
                  const std::vector<Edge>& tree, int64_t bytes) {
  const double out = links[hosts.server].out.Rate(0);
  double taken = 0;
  double slowest = out;
  double leaves = 0;
  for (const Edge& edge : tree) {
    if (edge.from != kServerNode) continue;
    const size_t to = hosts.workers[static_cast<size_t>(edge.to)];
    if (to == hosts.server) continue;
    const double in = links[to].in.Rate(0);
    taken += in;
    slowest = std::min(slowest, in);
    ++leaves;
  }
  const double bits = Bits(bytes);
  return {std::min(taken / out, 1.0), std::max(leaves * bits / out, bits / slowest)};
}

}  // namespace mercury::fabric
