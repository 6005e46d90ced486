#include "fabric/network.h"

#include <cmath>

#include "fabric/random_batch.h"

using namespace mercury::testing;

TEST(within_a_host_a_transfer_takes_no_time) {
  Network network({Steady(1, 1)});
  std::vector<RateSpan> pieces;
  CHECK_EQ(network.Reserve(0, 0, 2.5, 1e12, &pieces), 2.5);
  CHECK_TRUE(pieces.empty());
}

TEST(transfers_share_a_link_in_time) {
  Network network({Steady(100, 100), Steady(100, 100), Steady(100, 40)});
  CHECK_EQ(network.Reserve(2, 0, 0, 80), 2);  // at 40 bit/s
  CHECK_EQ(network.End(1, 0, 0, 120), 2);     // at what that leaves, 60
  CHECK_EQ(network.Reserve(1, 0, 0, 120), 2);
  CHECK_EQ(network.End(1, 0, 0, 100), 3);
  CHECK_EQ(network.EndInto(0, 100), 3);
  CHECK_EQ(network.EndInto(0, 0), 0);
  CHECK_EQ(network.End(0, 1, 0, 100), 1);  // the other direction is another link
}

TEST(nothing_is_taken_twice_and_all_comes_back) {
  Random random;
  for (int round = 0; round < 500; ++round) {
    std::vector<HostLink> hosts(3);
    for (HostLink& host : hosts) host = {RandomProfile(&random), RandomProfile(&random)};
    Network network(hosts);
    std::vector<double> first;
    const auto ends = [&network] {
      std::vector<double> all;
      for (size_t from = 0; from < 3; ++from) {
        for (size_t to = 0; to < 3; ++to) all.push_back(network.End(from, to, 0.1, 3e8));
      }
      return all;
    };
    const std::vector<double> before = ends();
    const size_t mark = network.Mark();
    struct Taken {
      size_t from, to;
      std::vector<RateSpan> pieces;
    };
    std::vector<Taken> taken;
    for (int i = 0; i < 8; ++i) {
      Taken one{random.Below(3), random.Below(3), {}};
      const double bits = 1e8 + 1e9 * random.Unit();
      const double end_s = network.End(one.from, one.to, 0, bits);
      CHECK_EQ(network.Reserve(one.from, one.to, 0, bits, &one.pieces), end_s);
      double moved = 0;
      for (const RateSpan& piece : one.pieces)
        moved += (piece.end_s - piece.start_s) * piece.bit_per_s;
      if (one.from != one.to) CHECK_TRUE(std::abs(moved - bits) < 1e-6 * bits);
      taken.push_back(one);
    }
    for (int k = 0; k < 50; ++k) {
      const double at_s = 4 * random.Unit();
      double in[3] = {0, 0, 0};
      double out[3] = {0, 0, 0};
      for (const Taken& one : taken) {
        for (const RateSpan& piece : one.pieces) {
          if (piece.start_s > at_s || at_s >= piece.end_s) continue;
          in[one.to] += piece.bit_per_s;
          out[one.from] += piece.bit_per_s;
        }
      }
      for (size_t h = 0; h < 3; ++h) {
        CHECK_TRUE(in[h] <= hosts[h].in.Rate(hosts[h].in.Find(at_s)) + 1);
        CHECK_TRUE(out[h] <= hosts[h].out.Rate(hosts[h].out.Find(at_s)) + 1);
      }
    }
    const std::vector<double> full = ends();
    network.Rollback(mark);
    CHECK_TRUE(ends() == before);
    for (const Taken& one : taken) network.Occupy(one.from, one.to, one.pieces);
    CHECK_TRUE(ends() == full);
  }
}

TEST(what_flows_through_hosts_takes_all_their_ways_at_one_rate) {
  Network network({Steady(100, 100), Steady(100, 50), Steady(80, 100), Steady(100, 100)});
  const size_t mark = network.Mark();
  std::vector<RateSpan> pieces;
  CHECK_EQ(network.ReserveAlong({1, 2, 0}, 1, 100, &pieces), 3);  // at 50
  REQUIRE_EQ(pieces.size(), 1);
  CHECK_EQ(pieces[0].bit_per_s, 50);
  CHECK_EQ(network.End(3, 2, 1, 60), 3);   // 30 are left of its way in,
  CHECK_EQ(network.End(2, 3, 1, 100), 3);  // 50 of its way out,
  CHECK_EQ(network.End(3, 0, 1, 100), 3);  // and of the last one's way in
  CHECK_EQ(network.End(3, 1, 1, 100), 2);  // the first one's was not needed
  network.Rollback(mark);
  CHECK_EQ(network.End(3, 0, 1, 100), 2);
  CHECK_EQ(network.ReserveAlong({2}, 1, 100), 1);  // within a host
  CHECK_EQ(network.Speed(2), 80);
}
