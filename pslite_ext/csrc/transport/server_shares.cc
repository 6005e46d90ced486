#include "transport/server_shares.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace mercury {
namespace {

constexpr uint64_t kShareMax = 1000000000;
constexpr size_t kTextMax = 2048;  // it is told to all nodes
// A cycle of more turns than that, for each server, would be longer than most tensors.
constexpr uint64_t kTurnsEach = 16;

void Reduce(std::vector<uint64_t>* shares) {
  uint64_t divisor = 0;
  for (const uint64_t share : *shares) divisor = std::gcd(divisor, share);
  for (uint64_t& share : *shares) share /= divisor;
}

// Rounded to `turns` together: what rounding down leaves goes to those who lost most by it.
void Apportion(uint64_t turns, std::vector<uint64_t>* shares) {
  const uint64_t sum = std::accumulate(shares->begin(), shares->end(), uint64_t{0});
  std::vector<std::pair<uint64_t, size_t>> lost;
  uint64_t left = turns;
  for (size_t s = 0; s < shares->size(); ++s) {
    uint64_t& share = (*shares)[s];
    lost.emplace_back(sum - share * turns % sum, s);
    share = share * turns / sum;
    left -= share;
  }
  std::sort(lost.begin(), lost.end());
  for (uint64_t i = 0; i < left; ++i) ++(*shares)[lost[i].second];
}

// How often each server takes its turn.
std::vector<uint64_t> TurnsFor(std::vector<uint64_t> shares) {
  Reduce(&shares);
  const uint64_t sum = std::accumulate(shares.begin(), shares.end(), uint64_t{0});
  const uint64_t most = kTurnsEach * shares.size();
  if (sum <= most) return shares;
  Apportion(most, &shares);
  Reduce(&shares);
  return shares;
}

bool ReadShare(const std::string& text, uint64_t* share) {
  if (text.empty() || text.size() > 10) return false;
  if (text.find_first_not_of("0123456789") != std::string::npos) return false;
  *share = std::stoull(text);
  return *share <= kShareMax;
}

}  // namespace

ServerShares::ServerShares(int servers)
    : cycle_(CycleOf(std::vector<uint64_t>(static_cast<size_t>(servers), 1))) {}

std::shared_ptr<const ServerShares::Cycle> ServerShares::CycleOf(
    const std::vector<uint64_t>& shares) {
  // Turn k of a server with n turns is due at (2 k + 1) / 2 n of the cycle.
  const std::vector<uint64_t> counts = TurnsFor(shares);
  struct ServerTurn {
    uint64_t k, n;
    size_t server;
  };
  std::vector<ServerTurn> turns;
  for (size_t s = 0; s < counts.size(); ++s) {
    for (uint64_t k = 0; k < counts[s]; ++k) turns.push_back({k, counts[s], s});
  }
  std::sort(turns.begin(), turns.end(), [](const ServerTurn& a, const ServerTurn& b) {
    const uint64_t left = (2 * a.k + 1) * b.n, right = (2 * b.k + 1) * a.n;
    return std::tie(left, a.server) < std::tie(right, b.server);
  });
  auto cycle = std::make_shared<Cycle>();
  cycle->turns_of.resize(counts.size());
  for (const ServerTurn& turn : turns) {
    cycle->turns_of[turn.server].push_back(cycle->servers.size());
    cycle->servers.push_back(static_cast<int>(turn.server));
  }
  return cycle;
}

Status ServerShares::FromText(const std::string& text, int servers, ServerShares* shares) {
  if (text.empty()) {
    *shares = ServerShares(servers);
    return Status::Ok();
  }
  const auto refuse = [&](const std::string& allowed) {
    return Status::InvalidArgument("MERCURY_SERVER_SHARES is '" + text + "'; allowed: " + allowed);
  };
  if (text.size() > kTextMax) return refuse(std::to_string(kTextMax) + " characters");
  std::vector<uint64_t> numbers;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    uint64_t number = 0;
    if (!ReadShare(text.substr(at, end - at), &number)) {
      return refuse("numbers from 0 to " + std::to_string(kShareMax) + ", with commas");
    }
    numbers.push_back(number);
    at = end + 1;
  }
  if (numbers.size() != static_cast<size_t>(servers)) {
    return refuse("one number for each of the " + std::to_string(servers) + " servers");
  }
  if (std::all_of(numbers.begin(), numbers.end(), [](uint64_t n) { return n == 0; })) {
    return refuse("not only zeros");
  }
  shares->cycle_ = CycleOf(numbers);
  return Status::Ok();
}

uint64_t ServerShares::HomeTurn(uint64_t key) const {
  // The fractional part of key times the golden ratio: keys of any small stride fall evenly on [0,
  // 1). The plain remainder would give all weights to one of two servers and all biases to the
  // other.
  const uint64_t fraction = key * 0x9e3779b97f4a7c15 >> 32;
  return fraction * turns() >> 32;
}

}  // namespace mercury
