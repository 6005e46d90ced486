#include "fabric/chains.h"

#include <algorithm>
#include <map>
#include <set>

#include "fabric/ordering.h"
#include "fabric/planner.h"
#include "fabric/random_batch.h"

using namespace mercury::testing;

namespace {

constexpr int64_t kMegabyte = 1'000'000;

// Workers on hosts 1, 2, ... (two to a host), the server on host 0.
struct Job {
  std::vector<HostLink> links;
  std::vector<Shipment> shipments;
  Target target;

  explicit Job(const std::vector<double>& rates, size_t per_host = 1) {
    for (const double rate : rates) links.push_back(Steady(rate, rate));
    for (size_t host = 1; host < rates.size(); ++host) {
      for (size_t i = 0; i < per_host; ++i) shipments.push_back({host, 0, {kMegabyte}});
    }
    target.servers = {0};
  }
  std::vector<Chain> Cut(const std::vector<int64_t>& deadlines = {}) const {
    Network network(links);
    const std::vector<size_t> order = ShortestFirst(&network, shipments, target).order;
    return CutIntoChains(&network, shipments, target, order, deadlines);
  }
  double Last(const std::vector<Chain>& chains) const {
    Network network(links);
    double last_s = 0;
    for (const Commit& arrival : LayChains(&network, shipments, target, chains).arrivals) {
      last_s = std::max(last_s, arrival.time_s);
    }
    return last_s;
  }
};

// A chain passes through each host once.
void CheckHosts(const Chain& chain, const std::vector<Shipment>& shipments) {
  std::set<size_t> left;
  for (size_t i = 0; i < chain.size(); ++i) {
    const size_t host = shipments[chain[i]].host;
    if (i > 0 && shipments[chain[i - 1]].host == host) continue;
    CHECK_TRUE(left.insert(host).second);
  }
}

}  // namespace

TEST(hosts_that_are_alike_are_one_chain_that_takes_little_more_than_one_update) {
  const Job job(std::vector<double>(16, 1e8), 2);
  const std::vector<Chain> chains = job.Cut();
  REQUIRE_EQ(chains.size(), 1);
  CheckHosts(chains[0], job.shipments);
  const double alone_s = 8e6 / 1e8;
  CHECK_TRUE(job.Last(chains) > alone_s);
  CHECK_TRUE(job.Last(chains) < 1.5 * alone_s);
}

TEST(a_host_that_is_far_slower_is_a_chain_of_its_own_beside_the_others) {
  Job job({1e8, 1e8, 1e8, 1e8, 1e7, 1e8, 1e8});
  const std::vector<Chain> chains = job.Cut();
  REQUIRE_EQ(chains.size(), 2);
  CHECK_TRUE(chains[1] == Chain{3});
  // It has its whole link from the beginning, and the others what that leaves of the server's.
  Network network(job.links);
  const LaidChains laid = LayChains(&network, job.shipments, job.target, chains);
  CHECK_TRUE(std::abs(laid.arrivals[1].time_s - 0.8) < 1e-9);
  CHECK_TRUE(laid.arrivals[0].time_s < 0.15);
}

TEST(the_slowest_way_in_is_the_first_one_s_which_has_no_need_of_it) {
  Job job({1e8, 1e8, 1e8, 1e8});
  job.links[2] = Steady(1e7, 1e8);
  const std::vector<Chain> chains = job.Cut();
  REQUIRE_EQ(chains.size(), 1);
  CHECK_EQ(chains[0][0], 1);
  CHECK_TRUE(job.Last(chains) < 0.12);
}

TEST(whoever_is_beside_the_server_is_last) {
  Job job({1e8, 1e8, 1e8});
  job.shipments.insert(job.shipments.begin(), {0, 0, {kMegabyte}});
  for (const Chain& chain : job.Cut()) {
    if (std::find(chain.begin(), chain.end(), size_t{0}) != chain.end()) CHECK_EQ(chain.back(), 0);
  }
}

TEST(the_server_s_own_chain_down_is_as_fast_as_whoever_is_before) {
  Job job({1e8, 1e7, 1e8, 5e7}, 2);
  const std::vector<PassedDown> passed = PassDown(Network(job.links), job.shipments, job.target);
  std::vector<size_t> gets;
  double before_s = 0;
  for (const PassedDown& its : passed) {
    gets.push_back(its.get);
    CHECK_TRUE(its.end_s >= before_s);
    before_s = its.end_s;
  }
  CHECK_TRUE(gets == (std::vector<size_t>{2, 3, 4, 5, 0, 1}));
  CHECK_TRUE(std::abs(passed[1].end_s - 0.08) < 1e-9);
  CHECK_TRUE(passed[3].end_s < 0.17);
  CHECK_TRUE(passed[5].end_s > 0.8);
}

TEST(drawn_batches_keep_deadlines_hosts_and_what_links_carry) {
  Random random;
  size_t several = 0, relayed = 0;
  // Few drawn jobs have a replica that is worth going by: a short run goes on until it saw one.
  const auto seen_all = [&] { return several > 0 && relayed > 0; };
  for (int round = 0; round < Trials(4000) || (!seen_all() && round < 4000); ++round) {
    Shape shape;
    shape.updates_most = 1 + random.Below(30);
    shape.synchronous = random.OneIn(3);
    shape.replica = !shape.synchronous && random.OneIn(2);
    Batch batch = RandomBatch(&random, shape);
    batch.by_packets = true;
    batch.aggregators = {{"any", 1}};
    if (batch.replica) batch.replica->relays = random.OneIn(2);
    batch.delay_bound = static_cast<int64_t>(1 + random.Below(2 * batch.updates.size()));
    const Plan plan = PlanBatch(batch, {});
    std::vector<int> seen(batch.updates.size(), 0);
    for (size_t i = 0; i < plan.order.size(); ++i) {
      ++seen[plan.order[i]];
      const int64_t made = batch.version + static_cast<int64_t>(i) + 1;
      const int64_t delay = made - batch.updates[plan.order[i]].version;
      if (!batch.synchronous) CHECK_TRUE(delay <= batch.delay_bound);
    }
    for (const Drop& drop : plan.dropped) ++seen[drop.shipment];
    for (const int times : seen) CHECK_EQ(times, 1);

    const bool by_aggregators =
        std::any_of(plan.transfers.begin(), plan.transfers.end(),
                    [](const Transfer& hop) { return hop.to_aggregator != kDirect; });
    CHECK_TRUE(!by_aggregators || batch.replica.has_value());  // which has not to wait so long
    if (by_aggregators) continue;

    // Every update leaves its worker once, and what is sent on is all that has come, and its own.
    const std::vector<Shipment> shipments = ShipmentsOf(batch);
    std::map<size_t, const Transfer*> of;
    std::vector<size_t> at_server;
    const bool relays =
        std::any_of(plan.transfers.begin(), plan.transfers.end(),
                    [](const Transfer& hop) { return hop.relaying != Relaying::kNot; });
    CHECK_TRUE(!relays || batch.replica->relays);
    relayed += relays ? 1 : 0;
    for (const Transfer& hop : plan.transfers) {
      const size_t own = hop.shipments.back();
      if (hop.relaying == Relaying::kFrom) {
        CHECK_TRUE(of.at(own)->relaying == Relaying::kTo && of.at(own)->shipments == hop.shipments);
        continue;
      }
      CHECK_EQ(hop.relaying == Relaying::kTo, relays && hop.next == kNoShipment);
      CHECK_TRUE(of.emplace(own, &hop).second);
      if (hop.next == kNoShipment) {
        at_server.insert(at_server.end(), hop.shipments.begin(), hop.shipments.end());
        CheckHosts(hop.shipments, shipments);
        several += hop.shipments.size() > 1 ? 1 : 0;
      }
    }
    for (const Transfer& hop : plan.transfers) {
      if (hop.shipments.size() < 2 || hop.relaying == Relaying::kFrom) continue;
      const Transfer* before = of.at(hop.shipments[hop.shipments.size() - 2]);
      CHECK_EQ(before->next, hop.shipments.back());
      CHECK_TRUE(
          std::equal(before->shipments.begin(), before->shipments.end(), hop.shipments.begin()));
    }
    std::vector<size_t> sorted = plan.order;
    std::sort(sorted.begin(), sorted.end());
    std::sort(at_server.begin(), at_server.end());
    CHECK_TRUE(sorted == at_server);
    if (batch.replica) continue;

    // All that comes into the server's host has its time there.
    double bits = 0;
    double last_s = 0;
    for (const Transfer& hop : plan.transfers) {
      if (hop.next != kNoShipment || hop.pieces.empty()) continue;
      bits += Bits(hop.bytes);
      last_s = std::max(last_s, hop.end_s);
    }
    CHECK_TRUE(batch.network.EndInto(0, bits) <= last_s + 1e-6);
  }
  CHECK_TRUE(seen_all());
}

TEST(who_is_alone_is_in_no_chain_and_none_is_too_long) {
  Job job(std::vector<double>(41, 1e8));
  job.shipments[7].alone = true;
  job.target.chain_most = 16;
  std::set<size_t> seen;
  for (const Chain& chain : job.Cut()) {
    CHECK_TRUE(chain.size() <= 16);
    for (const size_t g : chain) {
      CHECK_TRUE(seen.insert(g).second);
      if (g == 7) CHECK_EQ(chain.size(), 1);
    }
  }
  CHECK_EQ(seen.size(), 40);
}

TEST(a_chain_through_the_replica_uses_each_host_s_ways_once) {
  Job job({1e8, 1e8, 1e8, 1e8, 1e8});
  job.target.relay = 4;
  job.shipments.push_back({0, 0, {kMegabyte}});  // beside the server
  const std::vector<Chain> chains = job.Cut();
  REQUIRE_EQ(chains.size(), 1);
  CHECK_EQ(chains[0].front(), 4);
  CHECK_EQ(chains[0].back(), 3);  // beside the replica
  Network network(job.links);
  const LaidChains laid = LayChains(&network, job.shipments, job.target, chains);
  REQUIRE_EQ(laid.transfers.size(), 6);
  const Transfer &last = laid.transfers[4], &onward = laid.transfers[5];
  CHECK_TRUE(last.relaying == Relaying::kTo && last.pieces.empty());
  CHECK_TRUE(onward.relaying == Relaying::kFrom && !onward.pieces.empty());
  CHECK_TRUE(onward.shipments == last.shipments && onward.end_s == last.end_s);
  CHECK_TRUE(laid.arrivals[0].time_s > 0.08 && laid.arrivals[0].time_s < 0.12);
  // No way has more on it than it carries.
  std::map<size_t, double> out, in;
  for (size_t i = 0; i < laid.transfers.size(); ++i) {
    const Transfer& hop = laid.transfers[i];
    const bool from_relay = hop.relaying == Relaying::kFrom;
    const size_t from = from_relay ? 4 : job.shipments[hop.shipments.back()].host;
    const size_t to = from_relay ? 0 : hop.next == kNoShipment ? 4 : job.shipments[hop.next].host;
    for (const RateSpan& piece : hop.pieces) {
      out[from] += piece.bit_per_s;
      in[to] += piece.bit_per_s;
    }
  }
  for (const auto& ways : {out, in}) {
    for (const auto& [host, bit_per_s] : ways) CHECK_TRUE(bit_per_s <= 1e8 + 1);
  }
}

TEST(what_is_sooner_straight_goes_straight) {
  Job job(std::vector<double>(31, 1e10));
  for (Shipment& shipment : job.shipments) shipment.bytes = {1000};
  CHECK_EQ(job.Cut().size(), 30);
}

TEST(a_transfer_shorter_than_its_time_can_tell_is_no_trouble) {
  Job job({1e9, 1e9, 1e9});
  for (Shipment& shipment : job.shipments) shipment = {shipment.host, 1e17, {1}};
  CHECK_TRUE(job.Last(job.Cut()) >= 1e17);
}

TEST(nothing_is_no_chain) {
  const Job job({1e8, 1e8});
  Network network(job.links);
  CHECK_TRUE(CutIntoChains(&network, job.shipments, job.target, {}, {}).empty());
  CHECK_TRUE(LayChains(&network, job.shipments, job.target, {}).transfers.empty());
}

TEST(packets_are_small_beside_what_they_are_part_of) {
  CHECK_EQ(PassedOnPacket_bytes(1), 4096);
  CHECK_EQ(PassedOnPacket_bytes(64 * 10'000), 10'000);
  CHECK_EQ(PassedOnPacket_bytes(int64_t{1} << 40), 64 << 10);
}
