#include "fabric/rate_profile.h"

#include <algorithm>

namespace mercury::fabric {
namespace {

// What is left of a transfer for no other reason than rounding.
constexpr double kRounding = 1e-9;

void Append(std::vector<RateStep>* steps, double at_s, double bit_per_s) {
  if (bit_per_s < RateProfile::kLeastRate) bit_per_s = 0;
  if (steps->empty() || steps->back().bit_per_s != bit_per_s) steps->push_back({at_s, bit_per_s});
}

void Append(std::vector<RateSpan>* pieces, size_t own, const RateSpan& piece) {
  if (pieces == nullptr || !(piece.end_s > piece.start_s)) return;
  if (pieces->size() > own && pieces->back().end_s == piece.start_s &&
      pieces->back().bit_per_s == piece.bit_per_s) {
    pieces->back().end_s = piece.end_s;
  } else {
    pieces->push_back(piece);
  }
}

}  // namespace

RateProfile::RateProfile(const std::vector<RateStep>& steps) {
  steps_.clear();
  for (const RateStep& step : steps) Append(&steps_, step.at_s, step.bit_per_s);
}

size_t RateProfile::Find(double at_s) const {
  const auto later =
      std::upper_bound(steps_.begin() + 1, steps_.end(), at_s,
                       [](double at, const RateStep& step) { return at < step.at_s; });
  return static_cast<size_t>(later - steps_.begin()) - 1;
}

void RateProfile::Splice(size_t first, size_t last, const RateStep* fresh, size_t count) {
  const size_t common = std::min(last - first, count);
  const auto at = steps_.begin() + static_cast<std::ptrdiff_t>(first);
  std::copy(fresh, fresh + common, at);
  const auto rest = at + static_cast<std::ptrdiff_t>(common);
  if (count > common) {
    steps_.insert(rest, fresh + common, fresh + count);
  } else {
    steps_.erase(rest, steps_.begin() + static_cast<std::ptrdiff_t>(last));
  }
}

RateProfile::Change RateProfile::Take(const std::vector<RateSpan>& pieces,
                                      std::vector<RateStep>* replaced) {
  size_t first = Find(pieces.front().start_s);
  size_t step = first;
  size_t piece = 0;
  double at_s = steps_[step].at_s;
  scratch_.clear();
  while (piece < pieces.size()) {
    const bool inside = at_s >= pieces[piece].start_s;
    const double border_s = inside ? pieces[piece].end_s : pieces[piece].start_s;
    const double until_s = std::min(EndOf(step), border_s);
    if (until_s > at_s) {
      Append(&scratch_, at_s, Rate(step) - (inside ? pieces[piece].bit_per_s : 0));
    }
    at_s = until_s;
    if (inside && until_s >= pieces[piece].end_s) ++piece;
    if (until_s >= EndOf(step)) ++step;
  }
  if (at_s > steps_[step].at_s) Append(&scratch_, at_s, Rate(step++));
  size_t last = step;
  // Neighbours that have become equal are one step.
  if (first > 0 && Rate(first - 1) == scratch_.front().bit_per_s) {
    scratch_.front().at_s = steps_[--first].at_s;
  }
  if (last < steps_.size() && Rate(last) == scratch_.back().bit_per_s) ++last;
  replaced->insert(replaced->end(), steps_.begin() + static_cast<std::ptrdiff_t>(first),
                   steps_.begin() + static_cast<std::ptrdiff_t>(last));
  Splice(first, last, scratch_.data(), scratch_.size());
  return {first, scratch_.size(), last - first};
}

void RateProfile::Undo(const Change& change, std::vector<RateStep>* replaced) {
  const size_t kept = replaced->size() - change.replaced;
  Splice(change.first, change.first + change.fresh, replaced->data() + kept, change.replaced);
  replaced->resize(kept);
}

RateProfile Least(const RateProfile& one, const RateProfile& other) {
  std::vector<RateStep> steps;
  size_t i = 0;
  size_t j = 0;
  for (double at_s = 0; at_s < RateProfile::kForever;) {
    Append(&steps, at_s, std::min(one.Rate(i), other.Rate(j)));
    const double one_s = one.EndOf(i);
    const double other_s = other.EndOf(j);
    at_s = std::min(one_s, other_s);
    if (one_s <= at_s) ++i;
    if (other_s <= at_s) ++j;
  }
  return RateProfile(steps);
}

double Flow(const RateProfile& out, const RateProfile& in, double ready_s, double bits,
            std::vector<RateSpan>* pieces) {
  const size_t own = pieces != nullptr ? pieces->size() : 0;
  size_t o = out.Find(ready_s);
  size_t i = in.Find(ready_s);
  double at_s = ready_s;
  double left = bits;
  for (;;) {
    const double out_end_s = out.EndOf(o);
    const double in_end_s = in.EndOf(i);
    const double until_s = std::min(out_end_s, in_end_s);
    const double rate = std::min(out.Rate(o), in.Rate(i));
    if (rate > 0) {
      const double end_s = at_s + left / rate;
      const double after = left - rate * (until_s - at_s);
      if (end_s <= until_s || after <= kRounding * bits) {
        Append(pieces, own, {at_s, std::min(end_s, until_s), rate});
        return std::min(end_s, until_s);
      }
      Append(pieces, own, {at_s, until_s, rate});
      left = after;
    }
    at_s = until_s;
    if (out_end_s <= until_s) ++o;
    if (in_end_s <= until_s) ++i;
  }
}

}  // namespace mercury::fabric
