#include "transport/server_shares.h"

#include <algorithm>
#include <string>
#include <vector>

#include "harness.h"

using namespace mercury;
using mercury::testing::Random;

namespace {

std::vector<int> CycleOf(const std::string& text, int servers) {
  ServerShares shares;
  REQUIRE_OK(ServerShares::FromText(text, servers, &shares));
  CHECK_EQ(shares.servers(), servers);
  std::vector<int> cycle;
  for (uint64_t turn = 0; turn < shares.turns(); ++turn) cycle.push_back(shares.Server(turn));
  for (int s = 0; s < servers; ++s) {
    for (const uint64_t turn : shares.TurnsOf(s)) CHECK_EQ(shares.Server(turn), s);
  }
  return cycle;
}

using Cycle = std::vector<int>;

}  // namespace

TEST(equal_shares_are_turns_in_order_of_ranks) {
  CHECK_TRUE(CycleOf("", 4) == (Cycle{0, 1, 2, 3}));
  CHECK_TRUE(CycleOf("5,5,5", 3) == (Cycle{0, 1, 2}));
  CHECK_EQ(ServerShares(7).Server(7 * 5 + 3), 3);
}

// Nodes of two builds must come to the same.
TEST(unequal_ones_are_spread_over_the_cycle) {
  CHECK_TRUE(CycleOf("2,2,1", 3) == (Cycle{0, 1, 2, 0, 1}));
  CHECK_TRUE(CycleOf("1,4", 2) == (Cycle{1, 1, 0, 1, 1}));
  CHECK_TRUE(CycleOf("1000,0,500", 3) == (Cycle{0, 2, 0}));
  CHECK_TRUE(CycleOf("0,7", 2) == Cycle{1});
}

TEST(odd_ratios_are_rounded) {
  Random random;
  for (int run = 0; run < 300; ++run) {
    const int servers = static_cast<int>(random.Between(1, 40));
    std::vector<uint64_t> numbers;
    std::string text;
    uint64_t sum = 0;
    for (int s = 0; s < servers; ++s) {
      numbers.push_back(static_cast<uint64_t>(random.Between(s == 0 ? 1 : 0, 1000000000)));
      sum += numbers.back();
      text += (s == 0 ? "" : ",") + std::to_string(numbers.back());
    }
    ServerShares shares;
    REQUIRE_OK(ServerShares::FromText(text, servers, &shares));
    CHECK_TRUE(shares.turns() <= static_cast<uint64_t>(16 * servers));
    for (int s = 0; s < servers; ++s) {
      const double due =
          static_cast<double>(numbers[static_cast<size_t>(s)]) / static_cast<double>(sum);
      const double is =
          static_cast<double>(shares.TurnsOf(s).size()) / static_cast<double>(shares.turns());
      CHECK_TRUE(std::abs(due - is) <= 1.0 / 16 / servers);
    }
  }
}

TEST(what_is_wrong_is_named) {
  const struct {
    std::string text, allowed;
  } cases[] = {
      {"1,2", "one number for each of the 3 servers"},
      {"1,2,3,4", "one number for each of the 3 servers"},
      {"0,0,0", "not only zeros"},
      {"1,2,", "numbers from 0 to 1000000000, with commas"},
      {"1,,2", "numbers from 0 to 1000000000, with commas"},
      {"1, 2,3", "numbers from 0 to 1000000000, with commas"},
      {"1,-2,3", "numbers from 0 to 1000000000, with commas"},
      {"1,2,1000000001", "numbers from 0 to 1000000000, with commas"},
      {"1,2,99999999999999999999", "numbers from 0 to 1000000000, with commas"},
      {"half", "numbers from 0 to 1000000000, with commas"},
      {std::string(3000, '1'), "2048 characters"},
  };
  for (const auto& c : cases) {
    ServerShares shares(3);
    const Status status = ServerShares::FromText(c.text, 3, &shares);
    CHECK_STATUS(Code::kInvalidArgument, status);
    CHECK_EQ(status.text(), "MERCURY_SERVER_SHARES is '" + c.text + "'; allowed: " + c.allowed);
    CHECK_EQ(shares.turns(), 3);
  }
}
