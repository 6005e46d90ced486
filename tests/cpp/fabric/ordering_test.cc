#include "fabric/ordering.h"

#include <algorithm>

#include "fabric/planner.h"
#include "fabric/random_batch.h"

using namespace mercury::testing;

namespace {

constexpr int64_t kMbit = 1'000'000 / 8;

// The rules, word by word.
Ordering ByTheRules(const Network& empty, const std::vector<Shipment>& shipments,
                    const Target& target, const std::vector<int64_t>& deadlines) {
  Ordering done;
  std::vector<size_t> left;
  for (size_t g = 0; g < shipments.size(); ++g) {
    if (deadlines[g] < 1) {
      done.dropped.push_back({g, DropReason::kDeadline, 0, 0, 0, 0, false});
    } else {
      left.push_back(g);
    }
  }
  const auto shortest = [&](Network network, const std::vector<size_t>& of) {
    const auto end_s = [&](size_t g) { return DirectEnd(&network, shipments[g], target); };
    double least_s = end_s(of[0]);
    for (const size_t g : of) least_s = std::min(least_s, end_s(g));
    return *std::find_if(of.begin(), of.end(),
                         [&](size_t g) { return end_s(g) <= least_s + kSameTime_s; });
  };
  const auto within = [&](int64_t d) {
    std::vector<size_t> found;
    for (const size_t g : left) {
      if (deadlines[g] <= d) found.push_back(g);
    }
    return found;
  };
  const auto count = static_cast<int64_t>(shipments.size());
  for (int64_t d = 1; d <= count; ++d) {
    for (auto wanting = within(d); static_cast<int64_t>(wanting.size()) > d; wanting = within(d)) {
      Network network = empty;
      const auto end_s = [&](size_t g) { return DirectEnd(&network, shipments[g], target); };
      double last_s = 0;
      for (const size_t g : wanting) last_s = std::max(last_s, end_s(g));
      const size_t last = *std::find_if(wanting.rbegin(), wanting.rend(),
                                        [&](size_t g) { return end_s(g) >= last_s - kSameTime_s; });
      done.dropped.push_back({last, DropReason::kDeadline, 0, 0, 0, d, false});
      left.erase(std::find(left.begin(), left.end(), last));
    }
  }
  const auto choose = [&](const Network& network, int64_t round) {
    for (int64_t d = round; d <= count + round; ++d) {
      const auto wanting = within(d);
      if (!wanting.empty() && static_cast<int64_t>(wanting.size()) >= d - round + 1) {
        return shortest(network, wanting);
      }
    }
    return shortest(network, left);
  };
  Network network = empty;
  while (!left.empty()) {
    const auto round = static_cast<int64_t>(done.order.size()) + 1;
    const size_t chosen = choose(network, round);
    left.erase(std::find(left.begin(), left.end(), chosen));
    Network after = network;
    const double end_s = ReserveDirect(&after, shipments[chosen], target);
    if (!left.empty()) {
      const size_t next = choose(after, round + 1);
      if (end_s > DirectEnd(&after, shipments[next], target) + kSameTime_s) {
        done.dropped.push_back({chosen, DropReason::kOvertaken, end_s, next, 0, 0, false});
        continue;
      }
    }
    done.order.push_back(chosen);
    network = after;
  }
  return done;
}

}  // namespace

TEST(the_server_does_not_wait_for_who_would_be_overtaken) {  // Fig. 5
  Network network({Steady(100e6, 100e6), Steady(100e6, 10e6), Steady(100e6, 90e6)});
  const std::vector<Shipment> shipments = {{1, 0, {100 * kMbit}}, {2, 0, {100 * kMbit}}};
  Target target;
  target.servers = {0};
  const Ordering done = WithDeadlines(&network, shipments, target, {1, 5});
  CHECK_TRUE(done.order == std::vector<size_t>{1});
  REQUIRE_TRUE(done.dropped.size() == 1);
  CHECK_EQ(done.dropped[0].shipment, 0);
  CHECK_EQ(done.dropped[0].reason, DropReason::kOvertaken);
  CHECK_EQ(done.dropped[0].end_s, 10);
  CHECK_EQ(done.dropped[0].rival, 1);
  CHECK_TRUE(std::abs(done.dropped[0].rival_end_s - 100.0 / 90) < 1e-9);
  CHECK_TRUE(ShortestFirst(&network, shipments, target).order == (std::vector<size_t>{1, 0}));
}

TEST(equal_deadlines_are_served_shortest_first) {
  Network network({Steady(100e6, 100e6), Steady(100e6, 100e6)});
  const std::vector<Shipment> shipments = {
      {1, 0, {300 * kMbit}}, {1, 0, {100 * kMbit}}, {1, 0, {200 * kMbit}}, {1, 0, {50 * kMbit}}};
  Target target;
  target.servers = {0};
  const Ordering done = WithDeadlines(&network, shipments, target, {3, 3, 3, 3});
  CHECK_TRUE(done.order == (std::vector<size_t>{3, 1, 2}));
  REQUIRE_TRUE(done.dropped.size() == 1);
  CHECK_EQ(done.dropped[0].shipment, 0);  // it would end last
  CHECK_EQ(done.dropped[0].reason, DropReason::kDeadline);
  CHECK_EQ(done.dropped[0].contested, 3);
}

TEST(orders_are_those_of_the_rules_word_by_word) {
  Random random;
  for (int round = 0; round < 1500; ++round) {
    Shape shape;
    shape.updates_most = 12;
    shape.equal_bytes = random.OneIn(2);
    Batch batch = RandomBatch(&random, shape);
    if (random.OneIn(3)) {  // several servers
      batch.servers.push_back({"second", 1});
      for (Update& update : batch.updates) {
        update.bytes.push_back(random.OneIn(3) ? 0 : random.Between(1, 50'000'000));
      }
    }
    const std::vector<Shipment> shipments = ShipmentsOf(batch);
    const Target target = TargetOf(batch);
    std::vector<int64_t> deadlines = DeadlinesOf(batch);
    if (random.OneIn(4)) {
      for (int64_t& deadline : deadlines) deadline = random.OneIn(2) ? 4 : int64_t{1} << 60;
    }
    Network network = batch.network;
    const Ordering expected = ByTheRules(batch.network, shipments, target, deadlines);
    const Ordering got = WithDeadlines(&network, shipments, target, deadlines);
    CHECK_TRUE(got.order == expected.order);
    REQUIRE_TRUE(got.dropped.size() == expected.dropped.size());
    for (size_t i = 0; i < got.dropped.size(); ++i) {
      CHECK_EQ(got.dropped[i].shipment, expected.dropped[i].shipment);
      CHECK_EQ(got.dropped[i].reason, expected.dropped[i].reason);
    }
    for (size_t i = 0; i < got.order.size(); ++i) {
      CHECK_TRUE(deadlines[got.order[i]] >= static_cast<int64_t>(i) + 1);
    }
    CHECK_EQ(network.Mark(), 0);
  }
}

TEST(rounding_does_not_decide_between_equals) {
  Random random;
  for (int round = 0; round < 200; ++round) {
    // The server's way in is the bottleneck. A worker's own rate changes beside it, which is one
    // more rounding and nothing else.
    const double change_s = random.Unit();
    const HostLink steady = Steady(1e10, 1e10);
    const HostLink changing{RateProfile({{0, 1e10}}), RateProfile({{0, 1e10}, {change_s, 5e9}})};
    Network network({Steady(1e9, 1e9), steady, changing, steady});
    const int64_t bytes = random.Between(50'000'000, 200'000'000);
    const std::vector<Shipment> shipments = {{1, 0, {bytes}}, {2, 0, {bytes}}, {3, 0, {bytes}}};
    Target target;
    target.servers = {0};
    const std::vector<size_t> by_rank = {0, 1, 2};
    CHECK_TRUE(ShortestFirst(&network, shipments, target).order == by_rank);
    CHECK_TRUE(WithDeadlines(&network, shipments, target, {9, 9, 9}).order == by_rank);
    const Ordering crowded = WithDeadlines(&network, shipments, target, {2, 2, 2});
    REQUIRE_EQ(crowded.dropped.size(), 1);
    CHECK_EQ(crowded.dropped[0].shipment, 2);
  }
}

TEST(without_an_order_only_what_is_too_old_at_its_place_is_dropped) {
  // The first is slow, which ShortestFirst would not have; the third had to be one of two.
  Network network({Steady(1e8, 1e8), Steady(1e7, 1e7), Steady(1e8, 1e8)});
  const std::vector<Shipment> shipments = {
      {1, 0, {kMbit}}, {2, 0, {kMbit}}, {2, 0, {kMbit}}, {2, 0, {kMbit}}};
  Target target;
  target.servers = {0};
  const Ordering found = AsTheyCome(&network, shipments, target, {9, 9, 2, 3});
  CHECK_TRUE(found.order == (std::vector<size_t>{0, 1, 3}));
  REQUIRE_EQ(found.dropped.size(), 1);
  CHECK_EQ(found.dropped[0].shipment, 2);
  CHECK_EQ(found.dropped[0].contested, 2);
  CHECK_TRUE(found.dropped[0].reason == DropReason::kDeadline);
  CHECK_TRUE(AsTheyCome(&network, shipments, target, {0, 1, 1, 2}).order ==
             (std::vector<size_t>{1, 3}));
}
