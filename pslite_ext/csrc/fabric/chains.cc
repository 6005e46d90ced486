#include "fabric/chains.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "fabric/course.h"

namespace mercury::fabric {
namespace {

constexpr int64_t kPacketsWanted = 64;  // of one transfer, for a chain to be short
constexpr int64_t kPacketLeast_bytes = 4 << 10;
constexpr int64_t kPacketMost_bytes = 64 << 10;
constexpr size_t kCutsTried = 16;

// A chain in the network.
struct Passage {
  double end_s = 0;
  std::vector<RateSpan> pieces;
};

// How much later those of `hosts` that pass on make the end of what takes `takes_s` alone.
double PassingOn_s(const std::vector<size_t>& hosts, int64_t bytes, double takes_s) {
  if (hosts.size() <= 2) return 0;
  const double part = static_cast<double>(PassedOnPacket_bytes(bytes)) /
                      static_cast<double>(std::max(bytes, int64_t{1}));
  return static_cast<double>(hosts.size() - 2) * (kPassOn_s + std::min(part, 1.0) * takes_s);
}

class Chaining {
 public:
  Chaining(Network* network, const std::vector<Shipment>& shipments, const Target& target,
           const std::vector<int64_t>& deadlines)
      : network_(*network), shipments_(shipments), target_(target), deadlines_(deadlines) {}

  std::vector<Chain> Cut(const std::vector<size_t>& order) const {
    std::set<size_t> cuts = Needed(order);
    std::set<size_t> left = Candidates(order);
    std::vector<Chain> best = Divided(order, cuts);
    double best_s = Score(best);
    while (!left.empty()) {
      size_t chosen = 0;
      for (const size_t cut : left) {
        std::set<size_t> with = cuts;
        with.insert(cut);
        std::vector<Chain> chains = Divided(order, with);
        const double score_s = Score(chains);
        if (score_s >= best_s - kSameTime_s) continue;
        best_s = score_s;
        best = std::move(chains);
        chosen = cut;
      }
      if (chosen == 0) break;
      cuts.insert(chosen);
      left.erase(chosen);
    }
    std::vector<Chain> straight;
    straight.reserve(order.size());
    for (const size_t g : order) straight.push_back({g});
    return Score(straight) < best_s - kSameTime_s ? straight : best;
  }

  // The chains' passages, by the order of chains; reserved in that order, or in the reverse.
  std::vector<Passage> Pass(const std::vector<Chain>& chains) const {
    std::vector<Passage> forth = Reserved(chains, false);
    if (chains.size() < 2) return forth;
    std::vector<Passage> back = Reserved(chains, true);
    return ScoreOf(chains, back) < ScoreOf(chains, forth) - kSameTime_s ? back : forth;
  }

 private:
  bool FreshAt(size_t shipment, size_t place) const {
    return deadlines_.empty() || deadlines_[shipment] >= static_cast<int64_t>(place);
  }

  // Where the order has to be cut: around who is alone, and where a chain would be too long.
  std::set<size_t> Needed(const std::vector<size_t>& order) const {
    std::set<size_t> cuts;
    for (size_t i = 0; i < order.size(); ++i) {
      if (shipments_[order[i]].alone) cuts.insert({i, i + 1});
      if (i % target_.chain_most == 0) cuts.insert(i);
    }
    cuts.erase(0);
    cuts.erase(order.size());
    return cuts;
  }

  // Where the order may be cut: before the second to the last update.
  std::set<size_t> Candidates(const std::vector<size_t>& order) const {
    std::set<size_t> cuts;
    for (size_t parts = 2; parts <= kCutsTried / 2 && parts <= order.size(); parts *= 2) {
      for (size_t part = 1; part < parts; ++part) cuts.insert(part * order.size() / parts);
    }
    std::vector<std::pair<double, size_t>> changes;
    for (size_t i = 1; i < order.size(); ++i) {
      const double before = network_.Speed(shipments_[order[i - 1]].host);
      const double after = network_.Speed(shipments_[order[i]].host);
      if (before != after) {
        changes.emplace_back(std::min(before, after) / std::max(before, after), i);
      }
    }
    std::sort(changes.begin(), changes.end());
    for (size_t i = 0; i < std::min(changes.size(), kCutsTried / 2); ++i) {
      cuts.insert(changes[i].second);
    }
    return cuts;
  }

  std::vector<Chain> Divided(const std::vector<size_t>& order, const std::set<size_t>& cuts) const {
    std::vector<Chain> chains;
    size_t from = 0;
    const auto end = [&](size_t to) {
      if (to > from) Add({order.begin() + At(from), order.begin() + At(to)}, from, &chains);
      from = to;
    };
    for (const size_t cut : cuts) end(cut);
    end(order.size());
    return chains;
  }
  static std::ptrdiff_t At(size_t i) { return static_cast<std::ptrdiff_t>(i); }

  // A stretch of the order, which begins after `before` others.
  void Add(const Chain& stretch, size_t before, std::vector<Chain>* chains) const {
    std::map<size_t, Chain> of;  // by host
    for (const size_t g : stretch) of[shipments_[g].host].push_back(g);
    std::vector<size_t> hosts;
    hosts.reserve(of.size());
    for (const auto& [host, its] : of) hosts.push_back(host);
    const auto rank = [this](size_t host) {
      // Whoever is beside where the chain ends is last, and needs no way there. From the server's
      // host to a replica elsewhere: first, since the way into it is needed for what comes back.
      const int place = host == target_.end() ? 1 : host == target_.servers[0] ? -1 : 0;
      return std::tuple(place, network_.Speed(host), host);
    };
    std::sort(hosts.begin(), hosts.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
    Chain chain;
    for (const size_t host : hosts) chain.insert(chain.end(), of[host].begin(), of[host].end());
    for (size_t i = 0; i < chain.size(); ++i) {
      if (!FreshAt(chain[i], before + i + 1)) return AddAsItIs(stretch, chains);
    }
    chains->push_back(std::move(chain));
  }

  // In its order, cut where a host would come up again, the end's is not the last, or the server's,
  // which is not the end, not the first.
  void AddAsItIs(const Chain& stretch, std::vector<Chain>* chains) const {
    Chain chain;
    for (const size_t g : stretch) {
      const size_t host = shipments_[g].host;
      const bool again = !chain.empty() && shipments_[chain.back()].host != host &&
                         (shipments_[chain.back()].host == target_.end() ||
                          (host == target_.servers[0] && host != target_.end()) ||
                          std::any_of(chain.begin(), chain.end(), [&](size_t other) {
                            return shipments_[other].host == host;
                          }));
      if (again) chains->push_back(std::exchange(chain, {}));
      chain.push_back(g);
    }
    chains->push_back(std::move(chain));
  }

  // As they come up: neighbours of one host once.
  std::vector<size_t> HostsOf(const Chain& chain) const {
    std::vector<size_t> hosts;
    for (const size_t g : chain) {
      if (hosts.empty() || hosts.back() != shipments_[g].host) hosts.push_back(shipments_[g].host);
    }
    return hosts;
  }

  Passage Reserve(const Chain& chain) const {
    std::vector<size_t> hosts = HostsOf(chain);
    for (const size_t host : {target_.end(), target_.servers[0]}) {
      if (hosts.back() != host) hosts.push_back(host);
    }
    double ready_s = 0;
    int64_t bytes = 0;
    for (const size_t g : chain) {
      ready_s = std::max(ready_s, shipments_[g].ready_s);
      bytes = std::max(bytes, shipments_[g].bytes[0]);
    }
    bytes = AggregateBytes(target_, bytes, chain.size());
    Passage passage;
    passage.end_s = network_.ReserveAlong(hosts, ready_s, Bits(bytes), &passage.pieces);
    const double from_s = passage.pieces.empty() ? ready_s : passage.pieces.front().start_s;
    passage.end_s += PassingOn_s(hosts, bytes, passage.end_s - from_s);
    return passage;
  }

  std::vector<Passage> Reserved(const std::vector<Chain>& chains, bool reverse) const {
    const size_t mark = network_.Mark();
    std::vector<Passage> passages(chains.size());
    for (size_t i = 0; i < chains.size(); ++i) {
      const size_t c = reverse ? chains.size() - 1 - i : i;
      passages[c] = Reserve(chains[c]);
    }
    network_.Rollback(mark);
    return passages;
  }

  double Score(const std::vector<Chain>& chains) const { return ScoreOf(chains, Pass(chains)); }

  // When all is there; asynchronous: and how early the updates are, since who has committed goes
  // on.
  double ScoreOf(const std::vector<Chain>& chains, const std::vector<Passage>& passages) const {
    double last_s = 0;
    double sum_s = 0;
    size_t updates = 0;
    for (size_t c = 0; c < chains.size(); ++c) {
      last_s = std::max(last_s, passages[c].end_s);
      sum_s += last_s * static_cast<double>(chains[c].size());
      updates += chains[c].size();
    }
    return target_.together || updates == 0 ? last_s : last_s + sum_s / double(updates);
  }

  Network& network_;
  const std::vector<Shipment>& shipments_;
  const Target& target_;
  const std::vector<int64_t>& deadlines_;
};

}  // namespace

int64_t PassedOnPacket_bytes(int64_t bytes) {
  return std::clamp(bytes / kPacketsWanted, kPacketLeast_bytes, kPacketMost_bytes);
}

std::vector<Chain> CutIntoChains(Network* network, const std::vector<Shipment>& shipments,
                                 const Target& target, const std::vector<size_t>& order,
                                 const std::vector<int64_t>& deadlines) {
  MERCURY_CHECK(target.servers.size() == 1);
  return order.empty() ? std::vector<Chain>()
                       : Chaining(network, shipments, target, deadlines).Cut(order);
}

LaidChains LayChains(Network* network, const std::vector<Shipment>& shipments, const Target& target,
                     const std::vector<Chain>& chains) {
  LaidChains laid;
  const std::vector<int64_t> fresh;  // whatever is in chains is
  const std::vector<Passage> passages = Chaining(network, shipments, target, fresh).Pass(chains);
  for (size_t c = 0; c < chains.size(); ++c) {
    const Chain& chain = chains[c];
    int64_t bytes = 0;
    for (size_t i = 0; i < chain.size(); ++i) {
      const size_t host = shipments[chain[i]].host;
      const bool last = i + 1 == chain.size();
      const size_t next = last ? target.end() : shipments[chain[i + 1]].host;
      Transfer hop;
      hop.shipments.assign(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(i + 1));
      hop.chained = chain.size() > 1;
      if (!last) hop.next = chain[i + 1];
      bytes = std::max(bytes, shipments[chain[i]].bytes[0]);
      hop.bytes = AggregateBytes(target, bytes, i + 1);
      hop.end_s = passages[c].end_s;
      if (host != next) hop.pieces = passages[c].pieces;
      if (last && target.relay) hop.relaying = Relaying::kTo;
      laid.transfers.push_back(std::move(hop));
    }
    if (target.relay) {
      Transfer onward = laid.transfers.back();
      onward.relaying = Relaying::kFrom;
      onward.pieces.clear();
      if (target.end() != target.servers[0]) onward.pieces = passages[c].pieces;
      laid.transfers.push_back(std::move(onward));
    }
    laid.arrivals.push_back({passages[c].end_s, chain});
  }
  return laid;
}

std::vector<PassedDown> PassDown(const Network& network, const std::vector<Shipment>& gets,
                                 const Target& target) {
  const size_t server = target.servers[0];
  std::vector<PassedDown> passed;
  passed.reserve(gets.size());
  for (size_t i = 0; i < gets.size(); ++i) passed.push_back({i, 0});
  const auto rank = [&](const PassedDown& its) {
    const size_t host = gets[its.get].host;
    return std::tuple(host != server, -network.Speed(host), host, its.get);
  };
  std::sort(passed.begin(), passed.end(),
            [&](const PassedDown& a, const PassedDown& b) { return rank(a) < rank(b); });
  std::vector<size_t> hosts{server};
  double ready_s = 0;
  for (PassedDown& its : passed) {
    const Shipment& get = gets[its.get];
    ready_s = std::max(ready_s, get.ready_s);
    if (get.host != hosts.back()) hosts.push_back(get.host);
    its.end_s = network.EndAlong(hosts, ready_s, Bits(get.bytes[0]));
    its.end_s += PassingOn_s(hosts, get.bytes[0], its.end_s - ready_s);
  }
  return passed;
}

bool IsSoonerStraight(double straight_mean_s, const std::vector<PassedDown>& chain) {
  double total_s = 0;
  for (const PassedDown& its : chain) total_s += its.end_s;
  return straight_mean_s < total_s / static_cast<double>(chain.size()) - kSameTime_s;
}

}  // namespace mercury::fabric
