#include "fabric/live/model_tree.h"

#include <map>
#include <numeric>
#include <set>

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

namespace {

constexpr int64_t kBytes = 1'000'000;

HostLink Link(double in, double out) { return {RateProfile({{0, in}}), RateProfile({{0, out}})}; }

std::vector<int> AllOf(const FleetHosts& hosts) {
  std::vector<int> workers(hosts.workers.size());
  std::iota(workers.begin(), workers.end(), 0);
  return workers;
}

// When all have it, if everybody sends one after another, in the tree's order.
double Takes(const FleetHosts& hosts, const std::vector<HostLink>& links,
             const std::vector<Edge>& tree) {
  Network network(links);
  std::map<int, double> has{{kServerNode, 0}};
  double last_s = 0;
  for (const Edge& edge : tree) {
    const auto host = [&](int node) {
      return node == kServerNode ? hosts.server : hosts.workers[static_cast<size_t>(node)];
    };
    has[edge.to] = network.Reserve(host(edge.from), host(edge.to), has.at(edge.from), Bits(kBytes));
    last_s = std::max(last_s, has[edge.to]);
  }
  return last_s;
}

std::vector<Edge> Straight(const std::vector<int>& askers) {
  std::vector<Edge> tree;
  for (const int worker : askers) tree.push_back({kServerNode, worker});
  return tree;
}

}  // namespace

TEST(everybody_gets_it_once_from_one_who_has_it_and_no_later_than_straight) {
  Random random;
  for (int round = 0; round < 300; ++round) {
    FleetHosts hosts;
    std::vector<HostLink> links;
    for (uint64_t left = random.Between(2, 9); left > 0; --left) {
      links.push_back(Link(1e6 * random.Between(1, 10), 1e6 * random.Between(1, 10)));
    }
    for (uint64_t left = random.Between(1, 14); left > 0; --left) {
      hosts.workers.push_back(random.Below(links.size()));
    }
    std::vector<int> askers;
    for (const int worker : AllOf(hosts)) {
      if (random.Below(4) != 0) askers.push_back(worker);
    }
    const std::vector<Edge> tree = ModelTree(hosts, links, askers, kBytes, random.Below(5));
    std::set<int> have{kServerNode};
    for (const Edge& edge : tree) {
      CHECK_EQ(have.count(edge.from), 1);
      CHECK_TRUE(have.insert(edge.to).second);
    }
    CHECK_EQ(have.size(), askers.size() + 1);
    for (const int worker : askers) CHECK_EQ(have.count(worker), 1);
    const std::vector<Edge> straight = ModelTree(hosts, links, askers, kBytes, 0);
    CHECK_TRUE(Takes(hosts, links, tree) <= Takes(hosts, links, straight) * (1 + 1e-9));
  }
}

TEST(thirty_workers_have_it_in_a_fraction_of_the_time) {
  FleetHosts hosts;
  std::vector<HostLink> links{Link(1e8, 1e8)};
  for (size_t host = 1; host <= 15; ++host) {
    links.push_back(Link(1e8, 1e8));
    hosts.workers.push_back(host);
    hosts.workers.push_back(host);
  }
  const std::vector<int> askers = AllOf(hosts);
  const double straight_s = Takes(hosts, links, Straight(askers));
  CHECK_TRUE(Takes(hosts, links, ModelTree(hosts, links, askers, kBytes, 8)) < 0.3 * straight_s);
  CHECK_TRUE(ModelTree(hosts, links, askers, kBytes, 0) == Straight(askers));
}

TEST(a_slow_way_out_passes_nothing_on) {
  FleetHosts hosts;
  std::vector<HostLink> links{Link(1e8, 1e8), Link(1e8, 1e6), Link(1e8, 1e8)};
  for (size_t host = 3; host <= 8; ++host) links.push_back(Link(1e8, 1e6));
  for (size_t host = 1; host <= 8; ++host) hosts.workers.push_back(host);
  std::set<int> passing;
  for (const Edge& edge : ModelTree(hosts, links, AllOf(hosts), kBytes, 4)) {
    passing.insert(edge.from);
  }
  CHECK_TRUE(passing == (std::set<int>{kServerNode, 1}));
}

TEST(a_chain_leads_through_fast_hosts_first) {
  FleetHosts hosts;
  const std::vector<HostLink> links{Link(1e8, 1e8), Link(1e8, 1e8), Link(1e6, 1e8), Link(5e7, 1e8)};
  hosts.workers = {2, 1, 3, 1, 0};
  CHECK_TRUE(ModelChain(hosts, links, AllOf(hosts), kBytes) ==
             (std::vector<Edge>{{kServerNode, 4}, {4, 1}, {1, 3}, {3, 2}, {2, 0}}));
  // What is so small that passing it on takes longer is not passed on.
  for (const Edge& edge : ModelChain(hosts, links, AllOf(hosts), 100)) {
    CHECK_EQ(edge.from, kServerNode);
  }
}

TEST(what_leaves_the_server_takes_a_share_of_its_way_out) {
  FleetHosts hosts;
  const std::vector<HostLink> links{Link(1e8, 1e8), Link(2e7, 1e8), Link(2e8, 1e6)};
  hosts.workers = {0, 1, 2};
  const auto leaving = [&](const std::vector<Edge>& tree) {
    return LeavingOf(hosts, links, tree, kBytes);
  };
  CHECK_EQ(leaving({{kServerNode, 0}}).share, 0.0);  // it leaves nothing
  CHECK_EQ(leaving({{kServerNode, 1}, {1, 2}}).share, 0.2);
  CHECK_EQ(leaving({{kServerNode, 1}, {1, 2}}).takes_s, 0.4);
  CHECK_EQ(leaving({{kServerNode, 2}, {2, 1}}).share, 1.0);
  CHECK_EQ(leaving({{kServerNode, 2}, {2, 1}}).takes_s, 0.08);
  CHECK_EQ(leaving({{kServerNode, 2}, {kServerNode, 1}}).takes_s, 0.4);
}
