#include "fabric/live/measured_rates.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <utility>

namespace mercury::fabric {
namespace {

constexpr double kAll = 0.9;            // who carries so much of what it can is saturated
constexpr double kNoFaster = 1.15;      // what comes at so many times the rate is not slower
constexpr double kLeastStretch = 0.01;  // of a slot: less shows nothing

}  // namespace

MeasuredRates::MeasuredRates(const std::vector<HostRates>& nominal, double lag_s) : lag_s_(lag_s) {
  for (const HostRates& rates : nominal) {
    for (const double rate : {rates.in_bit_per_s, rates.out_bit_per_s}) {
      directions_.push_back({rate, -1});
      nominal_.push_back(rate);
    }
  }
}

void MeasuredRates::Carried(size_t from, size_t to, double bits, double start_s, double end_s,
                            bool passed_on) {
  if (from == to || end_s <= start_s) return;
  runs_.push_back({Out(from), In(to), bits, start_s, end_s, passed_on});
}

void MeasuredRates::Advance(double now_s) {
  if (runs_.empty()) {  // nothing to learn of slots in which nothing went
    const double slots = std::floor((now_s - slot_start_s_) / lag_s_);
    if (slots > 0) slot_start_s_ += slots * lag_s_;
    return;
  }
  while (slot_start_s_ + lag_s_ <= now_s) EndSlot();
}

// Whether its sender got it no faster than it passed it on.
bool MeasuredRates::Starved(const Run& run, double start_s, double end_s) const {
  if (!run.passed_on) return false;
  return std::any_of(runs_.begin(), runs_.end(), [&](const Run& other) {
    return other.in + 1 == run.out && other.covers(start_s, end_s) &&
           other.rate() <= kNoFaster * run.rate();
  });
}

std::map<size_t, MeasuredRates::Shown> MeasuredRates::Look(std::vector<Rates>* kept) const {
  const double slot_end_s = slot_start_s_ + lag_s_;
  std::set<double> cuts{slot_start_s_, slot_end_s};
  for (const Run& run : runs_) {
    for (const double cut : {run.start_s, run.end_s}) {
      if (cut > slot_start_s_ && cut < slot_end_s) cuts.insert(cut);
    }
  }
  kept->clear();
  kept->reserve(cuts.size());  // they stay where they are
  std::map<size_t, Shown> shown;
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
    const double end_s = *std::next(cut);
    if (end_s - *cut < kLeastStretch * lag_s_) continue;
    Rates& rates = kept->emplace_back();
    std::map<size_t, std::set<size_t>> others;
    std::set<size_t> starved;
    for (const Run& run : runs_) {
      if (!run.covers(*cut, end_s)) continue;
      const double rate = run.rate();
      if (Starved(run, *cut, end_s)) starved.insert({run.out, run.in});
      for (const auto& [one, other] : {std::pair{run.out, run.in}, std::pair{run.in, run.out}}) {
        rates[one] += rate;
        others[one].insert(other);
      }
    }
    for (auto& [direction, peers] : others) {
      Shown& so_far = shown[direction];
      so_far.peers.insert(peers.begin(), peers.end());
      if (rates[direction] <= so_far.best) continue;
      so_far.best = rates[direction];
      so_far.when = &rates;
      so_far.at_best = std::move(peers);
      so_far.starved = starved.count(direction) != 0;
    }
  }
  return shown;
}

bool MeasuredRates::Full(size_t direction, double rate) const {
  return rate >= kAll * directions_[direction].believed;
}

void MeasuredRates::EndSlot() {
  const double slot_end_s = slot_start_s_ + lag_s_;
  std::vector<Rates> kept;
  const std::map<size_t, Shown> shown = Look(&kept);
  std::vector<size_t> slow;
  for (const auto& [direction, what] : shown) {
    Direction& at = directions_[direction];
    if (at.seen_s < 0 || slot_end_s > at.seen_s + kForget_s) at.believed = nominal_[direction];
    at.seen_s = slot_end_s;
    at.believed = std::max(at.believed, what.best);
    if (!Full(direction, what.best)) slow.push_back(direction);
  }
  std::sort(slow.begin(), slow.end(), [&](size_t a, size_t b) {
    const auto rank = [&](size_t d) {
      return std::make_tuple(-static_cast<int64_t>(shown.at(d).peers.size()),
                             directions_[d].believed, d);
    };
    return rank(a) < rank(b);
  });
  for (const size_t direction : slow) {
    const Shown& what = shown.at(direction);
    const bool explained = std::all_of(what.at_best.begin(), what.at_best.end(), [&](size_t peer) {
      return Full(peer, what.when->at(peer));
    });
    if (!explained && !what.starved) directions_[direction].believed = what.best;
  }
  slot_start_s_ = slot_end_s;
  runs_.erase(std::remove_if(runs_.begin(), runs_.end(),
                             [&](const Run& r) { return r.end_s <= slot_end_s; }),
              runs_.end());
}

std::optional<HostRates> MeasuredRates::Of(size_t host, double now_s) const {
  const auto rate = [&](size_t direction) {
    const Direction& at = directions_[direction];
    const bool known = at.seen_s >= 0 && now_s <= at.seen_s + kForget_s;
    return known ? at.believed : nominal_[direction];
  };
  return HostRates{rate(In(host)), rate(Out(host))};
}

}  // namespace mercury::fabric
