#include "fabric/distribution.h"

#include "fabric/random_batch.h"

using namespace mercury::testing;

namespace {

double Last(const std::vector<Delivery>& deliveries) {
  double last_s = 0;
  for (const Delivery& delivery : deliveries) last_s = std::max(last_s, delivery.end_s);
  return last_s;
}

}  // namespace

TEST(a_slow_server_lets_a_distributor_pass_the_model_on) {
  // 200 bits each: 2 s from the server, 0.2 s from others.
  Network network({Steady(100, 100), Steady(1000, 1000), Steady(1000, 1000), Steady(1000, 1000),
                   Steady(1000, 1000), Steady(1000, 1000), Steady(1000, 1000), Steady(1000, 1000)});
  std::vector<Shipment> gets;
  for (size_t host = 1; host <= 7; ++host) gets.push_back({host, 0, {25}});
  Target target;
  target.servers = {0};
  CHECK_EQ(Last(Distribute(&network, gets, target)), 14);
  target.aggregators = {1};
  const std::vector<Delivery> deliveries = Distribute(&network, gets, target);
  CHECK_EQ(deliveries[0].to, 0);
  CHECK_EQ(deliveries[0].end_s, 2);
  CHECK_TRUE(std::abs(Last(deliveries) - 3.2) <
             1e-9);  // worker 1 has it at once, the others follow
  CHECK_EQ(network.Mark(), 0);
}

TEST(the_last_group_s_distributor_is_served_first) {
  Network network(std::vector<HostLink>(20, Steady(100, 100)));
  std::vector<Shipment> gets;
  for (size_t host = 3; host < 20; ++host) gets.push_back({host, 0, {100}});
  Target target;
  target.servers = {0};
  target.aggregators = {1, 2};
  const std::vector<Delivery> deliveries = Distribute(&network, gets, target);
  CHECK_EQ(deliveries[0].to, 1);
  CHECK_EQ(deliveries[1].to, 0);
  size_t answered[3] = {0, 0, 0};
  for (const Delivery& delivery : deliveries) {
    if (delivery.to == kDirect) ++answered[delivery.from + 1];
  }
  CHECK_TRUE(answered[2] > 0);
  CHECK_TRUE(answered[0] > 0 && answered[1] > 0);
}

TEST(every_get_is_answered_once_and_never_later_than_by_the_server_alone) {
  Random random;
  for (int round = 0; round < 500; ++round) {
    const Batch batch = RandomBatch(&random, {12, 3});
    Network network = batch.network;
    std::vector<Shipment> gets;
    for (const Update& update : batch.updates) {
      gets.push_back({update.worker.host, update.available_s, {50'000'000}});
    }
    Target target;
    target.servers = {0};
    const double alone_s = Last(Distribute(&network, gets, target));
    for (const Site& node : batch.aggregators) target.aggregators.push_back(node.host);
    const std::vector<Delivery> deliveries = Distribute(&network, gets, target);
    CHECK_TRUE(Last(deliveries) <= alone_s + 1e-9);
    std::vector<int> answered(gets.size(), 0);
    std::vector<double> has_model_s(target.aggregators.size(), 1e9);
    for (const Delivery& delivery : deliveries) {
      if (delivery.to != kDirect) {
        has_model_s[static_cast<size_t>(delivery.to)] = delivery.end_s;
        continue;
      }
      ++answered[delivery.get];
      CHECK_TRUE(delivery.end_s >= gets[delivery.get].ready_s);
      if (delivery.from == kDirect) continue;
      const double since_s = has_model_s[static_cast<size_t>(delivery.from)];
      CHECK_TRUE(delivery.end_s >= since_s);
      for (const RateSpan& piece : delivery.pieces) CHECK_TRUE(piece.start_s >= since_s);
    }
    for (const int times : answered) CHECK_EQ(times, 1);
    CHECK_EQ(network.Mark(), 0);
  }
}

TEST(nobody_asks) {
  Network network({Steady(1, 1)});
  Target target;
  target.servers = {0};
  CHECK_TRUE(Distribute(&network, {}, target).empty());
}

TEST(of_equal_gets_the_first_is_answered_first) {
  Random random;
  for (int round = 0; round < 200; ++round) {
    // The server's way out is the bottleneck. A worker's own rate changes beside it, which is one
    // more rounding and nothing else.
    const HostLink steady = Steady(1e10, 1e10);
    const HostLink changing{RateProfile({{0, 1e10}, {random.Unit(), 5e9}}),
                            RateProfile({{0, 1e10}})};
    Network network({Steady(1e9, 1e9), steady, changing, steady});
    const int64_t bytes = random.Between(50'000'000, 200'000'000);
    Target target;
    target.servers = {0};
    const std::vector<Delivery> deliveries =
        Distribute(&network, {{1, 0, {bytes}}, {2, 0, {bytes}}, {3, 0, {bytes}}}, target);
    REQUIRE_EQ(deliveries.size(), 3);
    for (size_t i = 0; i < 3; ++i) CHECK_EQ(deliveries[i].get, i);
  }
}
