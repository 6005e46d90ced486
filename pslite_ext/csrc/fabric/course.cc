#include "fabric/course.h"

#include <algorithm>

namespace mercury::fabric {

void Course::Direct(size_t shipment) {
  const Shipment& sent = shipments_[shipment];
  double end_s = sent.ready_s;
  for (size_t s = 0; s < target_.servers.size(); ++s) {
    if (sent.bytes[s] == 0) continue;
    std::vector<RateSpan>* pieces = nullptr;
    if (transfers_ != nullptr) {
      transfers_->push_back({kDirect, kDirect, s, {shipment}, sent.bytes[s], 0, {}, -1});
      pieces = &transfers_->back().pieces;
    }
    const double part_s =
        network_.Reserve(sent.host, target_.servers[s], sent.ready_s, Bits(sent.bytes[s]), pieces);
    if (transfers_ != nullptr) transfers_->back().end_s = part_s;
    end_s = std::max(end_s, part_s);
  }
  if (arrivals_ != nullptr) arrivals_->push_back({end_s, {shipment}});
  Arrive(end_s, 1);
}

double Course::Gather(size_t shipment, int aggregator) {
  const Shipment& sent = shipments_[shipment];
  aggregator_ = aggregator;
  std::vector<RateSpan>* pieces = nullptr;
  if (transfers_ != nullptr) {
    transfers_->push_back({kDirect, aggregator, 0, {shipment}, sent.bytes[0], 0, {}, -1});
    pieces = &transfers_->back().pieces;
  }
  const double end_s =
      network_.Reserve(sent.host, target_.aggregators[static_cast<size_t>(aggregator)],
                       sent.ready_s, Bits(sent.bytes[0]), pieces);
  if (transfers_ != nullptr) transfers_->back().end_s = end_s;
  group_.push_back(shipment);
  ready_s_ = std::max(ready_s_, end_s);
  bytes_ = std::max(bytes_, sent.bytes[0]);
  return end_s;
}

void Course::Close() {
  if (group_.empty()) return;
  const int64_t bytes = AggregateBytes(target_, bytes_, group_.size());
  std::vector<RateSpan>* pieces = nullptr;
  if (transfers_ != nullptr) {
    transfers_->push_back({aggregator_, kDirect, 0, group_, bytes, 0, {}, -1});
    pieces = &transfers_->back().pieces;
  }
  const double end_s = network_.Reserve(target_.aggregators[static_cast<size_t>(aggregator_)],
                                        target_.servers[0], ready_s_, Bits(bytes), pieces);
  if (transfers_ != nullptr) transfers_->back().end_s = end_s;
  if (arrivals_ != nullptr) arrivals_->push_back({end_s, group_});
  Arrive(end_s, group_.size());
  group_.clear();
  ready_s_ = 0;
  bytes_ = 0;
}

void Course::Walk(const Schedule& schedule) {
  for (const Stop& stop : schedule) {
    if (stop.aggregator != aggregator_) Close();
    if (stop.aggregator == kDirect) {
      Direct(stop.shipment);
    } else {
      Gather(stop.shipment, stop.aggregator);
    }
    aggregator_ = stop.aggregator;
  }
  Close();
}

void Course::Arrive(double at_s, size_t members) {
  outcome_.last_s = std::max(outcome_.last_s, at_s);
  outcome_.sum_s += static_cast<double>(members) * outcome_.last_s;
  outcome_.committed += members;
}

int64_t AggregateBytes(const Target& target, int64_t largest, size_t members) {
  return target.two_sums && members > 1 ? 2 * largest : largest;
}

std::vector<Commit> InOrder(const std::vector<Commit>& arrivals, const Target& target) {
  std::vector<Commit> commits;
  double last_s = 0;
  for (const Commit& arrival : arrivals) {
    last_s = std::max(last_s, arrival.time_s);
    if (target.together && !commits.empty()) {
      commits[0].time_s = last_s;
      commits[0].shipments.insert(commits[0].shipments.end(), arrival.shipments.begin(),
                                  arrival.shipments.end());
    } else {
      commits.push_back({last_s, arrival.shipments});
    }
  }
  return commits;
}

double Objective(const Outcome& outcome, const Target& target) {
  if (outcome.committed == 0) return 0;
  return target.together ? outcome.last_s : outcome.sum_s / static_cast<double>(outcome.committed);
}

double Objective(const std::vector<Commit>& commits, const Target& target) {
  Outcome outcome;
  for (const Commit& commit : commits) {
    outcome.last_s = commit.time_s;
    outcome.sum_s += static_cast<double>(commit.shipments.size()) * commit.time_s;
    outcome.committed += commit.shipments.size();
  }
  return Objective(outcome, target);
}

}  // namespace mercury::fabric
