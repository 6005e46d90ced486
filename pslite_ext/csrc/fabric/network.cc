#include "fabric/network.h"

#include <algorithm>

namespace mercury::fabric {

double Network::End(size_t from, size_t to, double ready_s, double bits) const {
  if (from == to || bits <= 0) return ready_s;
  return Flow(hosts_[from].out, hosts_[to].in, ready_s, bits, nullptr);
}

double Network::EndInto(size_t to, double bits) const {
  return bits > 0 ? Flow(hosts_[to].in, hosts_[to].in, 0, bits, nullptr) : 0;
}

double Network::Reserve(size_t from, size_t to, double ready_s, double bits,
                        std::vector<RateSpan>* pieces) {
  if (from == to || bits <= 0) return ready_s;
  scratch_.clear();
  const double end_s = Flow(hosts_[from].out, hosts_[to].in, ready_s, bits, &scratch_);
  Occupy(from, to, scratch_);
  if (pieces != nullptr) pieces->insert(pieces->end(), scratch_.begin(), scratch_.end());
  return end_s;
}

// What is left of all ways from the first to the last.
RateProfile Network::Way(const std::vector<size_t>& hosts) const {
  RateProfile way = hosts_[hosts.front()].out;
  for (size_t i = 1; i < hosts.size(); ++i) {
    const HostLink& host = hosts_[hosts[i]];
    way = Least(way, i + 1 < hosts.size() ? Least(host.in, host.out) : host.in);
  }
  return way;
}

double Network::EndAlong(const std::vector<size_t>& hosts, double ready_s, double bits) const {
  if (hosts.size() < 2 || bits <= 0) return ready_s;
  const RateProfile way = Way(hosts);
  return Flow(way, way, ready_s, bits, nullptr);
}

double Network::ReserveAlong(const std::vector<size_t>& hosts, double ready_s, double bits,
                             std::vector<RateSpan>* pieces) {
  if (hosts.size() < 2 || bits <= 0) return ready_s;
  const RateProfile way = Way(hosts);
  scratch_.clear();
  const double end_s = Flow(way, way, ready_s, bits, &scratch_);
  for (size_t i = 1; i < hosts.size(); ++i) Occupy(hosts[i - 1], hosts[i], scratch_);
  if (pieces != nullptr) pieces->insert(pieces->end(), scratch_.begin(), scratch_.end());
  return end_s;
}

double Network::Speed(size_t host) const {
  return std::min(hosts_[host].in.Rate(0), hosts_[host].out.Rate(0));
}

void Network::Occupy(size_t from, size_t to, const std::vector<RateSpan>& pieces) {
  if (pieces.empty()) return;
  Reservation change;
  change.from = from;
  change.to = to;
  change.out = hosts_[from].out.Take(pieces, &replaced_);
  change.in = hosts_[to].in.Take(pieces, &replaced_);
  changes_.push_back(change);
}

void Network::Rollback(size_t mark) {
  while (changes_.size() > mark) {
    const Reservation& change = changes_.back();
    hosts_[change.to].in.Undo(change.in, &replaced_);
    hosts_[change.from].out.Undo(change.out, &replaced_);
    changes_.pop_back();
  }
}

}  // namespace mercury::fabric
