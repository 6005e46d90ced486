#include "fabric/live/monitor.h"

#include <algorithm>
#include <cmath>

namespace mercury::fabric {
namespace {

double Usable(double bit_per_s) {
  return std::isfinite(bit_per_s) ? std::max(bit_per_s, RateProfile::kLeastRate)
                                  : RateProfile::kLeastRate;
}

}  // namespace

HostRates Monitor::Of(size_t host, double now_s) const {
  HostRates rates = nominal_[host];
  for (const RateSource* source : sources_) {
    const std::optional<HostRates> known = source->Of(host, now_s);
    if (!known) continue;
    rates = *known;
    break;
  }
  return {Usable(rates.in_bit_per_s), Usable(rates.out_bit_per_s)};
}

std::vector<HostLink> Monitor::Links(double now_s) const {
  std::vector<HostLink> links;
  links.reserve(nominal_.size());
  for (size_t host = 0; host < nominal_.size(); ++host) {
    const HostRates rates = Of(host, now_s);
    links.push_back(
        {RateProfile({{0, rates.in_bit_per_s}}), RateProfile({{0, rates.out_bit_per_s}})});
  }
  return links;
}

}  // namespace mercury::fabric
