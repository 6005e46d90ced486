#include "fabric/live/monitor.h"

#include <limits>

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

namespace {

struct Fixed : RateSource {
  std::optional<HostRates> rates;
  std::optional<HostRates> Of(size_t host, double /*now_s*/) const override {
    return host == 1 ? rates : std::nullopt;
  }
};

}  // namespace

TEST(the_first_source_that_knows_is_believed) {
  Fixed feed;
  Fixed measured;
  measured.rates = HostRates{3e9, 4e9};
  const Monitor monitor({{1e10, 1e10}, {1e10, 1e10}}, {&feed, &measured});
  CHECK_EQ(monitor.Of(0, 0).in_bit_per_s, 1e10);
  CHECK_EQ(monitor.Of(1, 0).in_bit_per_s, 3e9);
  feed.rates = HostRates{0, std::numeric_limits<double>::quiet_NaN()};
  CHECK_EQ(monitor.Of(1, 0).in_bit_per_s, 1);
  CHECK_EQ(monitor.Of(1, 0).out_bit_per_s, 1);
  feed.rates = HostRates{1e9, 2e9};
  const std::vector<HostLink> links = monitor.Links(0);
  REQUIRE_EQ(links.size(), 2);
  CHECK_EQ(links[1].in.Rate(0), 1e9);
  CHECK_EQ(links[1].out.Rate(0), 2e9);
}
