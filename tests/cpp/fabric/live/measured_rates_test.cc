#include "fabric/live/measured_rates.h"

#include <cmath>

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

namespace {

constexpr double kLag_s = 0.2;

bool Near(double got, double wanted) { return std::abs(got - wanted) <= 0.02 * wanted; }

}  // namespace

TEST(a_change_is_seen_after_the_lag) {
  MeasuredRates rates({{1e10, 1e10}, {1e10, 1e10}}, kLag_s);
  rates.Carried(0, 1, 0.1e9, 0, 0.1);  // 1 Gbit/s
  rates.Advance(0.1);
  CHECK_EQ(rates.Of(0, 0.1)->out_bit_per_s, 1e10);
  rates.Advance(0.2);
  CHECK_TRUE(Near(rates.Of(0, 0.2)->out_bit_per_s, 1e9) !=
             Near(rates.Of(1, 0.2)->in_bit_per_s, 1e9));  // one of them is to blame
  CHECK_EQ(rates.Of(0, 0.2)->in_bit_per_s, 1e10);
  rates.Carried(0, 1, 0.5e9, 0.2, 0.3);  // 5 Gbit/s
  rates.Advance(0.4);
  CHECK_TRUE(rates.Of(0, 0.4)->out_bit_per_s >= 0.98 * 5e9);
  CHECK_TRUE(rates.Of(1, 0.4)->in_bit_per_s >= 0.98 * 5e9);
}

TEST(who_is_slow_with_several_peers_is_to_blame) {
  // Host 0's way in has 1 Gbit/s: two senders share it, at the same time or in turn.
  for (const bool in_turn : {false, true}) {
    MeasuredRates rates(std::vector<HostRates>(3, {1e10, 1e10}), kLag_s);
    if (in_turn) {
      rates.Carried(1, 0, 0.1e9, 0, 0.1);
      rates.Carried(2, 0, 0.1e9, 0.1, 0.2);
    } else {
      rates.Carried(1, 0, 0.1e9, 0, 0.2);
      rates.Carried(2, 0, 0.1e9, 0, 0.2);
    }
    rates.Advance(0.2);
    CHECK_TRUE(Near(rates.Of(0, 0.2)->in_bit_per_s, 1e9));
    CHECK_EQ(rates.Of(1, 0.2)->out_bit_per_s, 1e10);
    CHECK_EQ(rates.Of(2, 0.2)->out_bit_per_s, 1e10);
  }
}

TEST(a_slow_worker_does_not_make_the_server_slow) {
  MeasuredRates rates(std::vector<HostRates>(3, {1e10, 1e10}), kLag_s);
  rates.Carried(2, 0, 1e9, 0, 0.1);      // all of 10 Gbit/s
  rates.Carried(1, 0, 0.1e9, 0.1, 0.2);  // 1 Gbit/s
  rates.Advance(0.2);
  rates.Carried(1, 0, 0.2e9, 0.2, 0.4);  // again, alone
  rates.Advance(0.4);
  CHECK_TRUE(Near(rates.Of(1, 0.4)->out_bit_per_s, 1e9));
  CHECK_TRUE(rates.Of(0, 0.4)->in_bit_per_s > 5e9);
  CHECK_EQ(rates.Of(2, 0.4)->out_bit_per_s, 1e10);
}

TEST(what_nobody_uses_gets_another_chance) {
  MeasuredRates rates({{1e10, 1e9}, {1e10, 1e10}}, kLag_s);
  rates.Carried(0, 1, 1e7, 0, 0.2);
  rates.Carried(1, 1, 1e3, 0, 0.2);  // within a host
  rates.Advance(0.2);
  CHECK_TRUE(Near(rates.Of(0, 1)->out_bit_per_s, 5e7));
  rates.Advance(6);
  CHECK_EQ(rates.Of(0, 6)->out_bit_per_s, 1e9);
}

TEST(transfers_in_turn_over_random_links_show_what_their_paths_carry) {
  // As a plan has them: one after another, each with all that its path has. In the end, what is
  // believed of a path is what it carries, but for a few: whoever of two is to blame can only be
  // guessed when one meets the other alone.
  Random random;
  int paths = 0;
  int right = 0;
  for (int round = 0; round < 200; ++round) {
    constexpr size_t kHosts = 4;
    constexpr double kRates[] = {1e9, 2.5e9, 5e9, 1e10};
    std::vector<HostRates> truth;
    for (size_t host = 0; host < kHosts; ++host) {
      truth.push_back({kRates[random.Below(4)], kRates[random.Below(4)]});
    }
    MeasuredRates rates(std::vector<HostRates>(kHosts, {1e10, 1e10}), kLag_s);
    double now_s = 0;
    while (now_s < 3) {
      const size_t from = random.Below(kHosts);
      const size_t to = (from + 1 + random.Below(kHosts - 1)) % kHosts;
      const double carries = std::min(truth[from].out_bit_per_s, truth[to].in_bit_per_s);
      const double end_s = now_s + 0.03;
      rates.Carried(from, to, 0.03 * carries, now_s, end_s);
      now_s = end_s;
      rates.Advance(now_s);
    }
    for (size_t from = 0; from < kHosts; ++from) {
      for (size_t to = 0; to < kHosts; ++to) {
        if (from == to) continue;
        const double carries = std::min(truth[from].out_bit_per_s, truth[to].in_bit_per_s);
        const double believed =
            std::min(rates.Of(from, now_s)->out_bit_per_s, rates.Of(to, now_s)->in_bit_per_s);
        ++paths;
        if (Near(believed, carries)) ++right;
      }
    }
  }
  CHECK_TRUE(right >= paths * 97 / 100);
}

TEST(who_only_waited_for_what_it_passes_on_is_not_slow) {
  // A chain 1 -> 2 -> 3 -> 0 whose first has a slow way out; then 2, of whom that is known.
  MeasuredRates rates(std::vector<HostRates>(4, {1e9, 1e9}), kLag_s);
  const auto chain = [&rates](const std::vector<size_t>& hosts, double start_s, double rate) {
    for (size_t i = 1; i < hosts.size(); ++i) {
      const double from_s = start_s + 0.001 * static_cast<double>(i);
      rates.Carried(hosts[i - 1], hosts[i], 0.18 * rate, from_s, from_s + 0.18, i > 1);
    }
  };
  for (int slot = 0; slot < 5; ++slot) {
    chain({1, 2, 3, 0}, 0.2 * slot, 1e7);
    rates.Advance(0.2 * (slot + 1));
  }
  CHECK_TRUE(Near(rates.Of(1, 1)->out_bit_per_s, 1e7) || Near(rates.Of(2, 1)->in_bit_per_s, 1e7));
  for (const size_t host : {size_t{2}, size_t{3}}) {
    CHECK_EQ(rates.Of(host, 1)->out_bit_per_s, 1e9);
  }
  CHECK_EQ(rates.Of(3, 1)->in_bit_per_s, 1e9);
  CHECK_EQ(rates.Of(0, 1)->in_bit_per_s, 1e9);
}
