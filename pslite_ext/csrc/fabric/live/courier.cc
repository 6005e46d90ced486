#include "fabric/live/courier.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/check.h"

namespace mercury::fabric {

int64_t Courier::Take(const Hop& hop) {
  trips_[next_].hop = hop;
  return next_++;
}

void Courier::Ready(int64_t number, int64_t bytes, double now_s) {
  const auto trip = trips_.find(number);
  if (trip == trips_.end() || trip->second.bytes >= 0) return;
  trip->second.bytes = bytes;
  trip->second.delay_s = std::max(0.0, now_s - trip->second.hop.start_s);
}

void Courier::Reach(int64_t number, int64_t bytes) {
  const auto trip = trips_.find(number);
  if (trip != trips_.end()) trip->second.there = bytes;
}

const Hop* Courier::Find(int64_t number) const {
  const auto trip = trips_.find(number);
  return trip == trips_.end() ? nullptr : &trip->second.hop;
}

// What the plan has sent by now.
double Courier::PlannedBytes(const Trip& trip, double now_s) {
  double bits = 0;
  for (const RateSpan& piece : trip.hop.pieces) {
    const double end_s = std::min(piece.end_s, now_s - trip.delay_s);
    bits += std::max(0.0, end_s - piece.start_s) * piece.bit_per_s;
  }
  return bits / 8;
}

// Of the whole hop, in all.
int64_t Courier::Allowed(const Trip& trip, double now_s) {
  if (trip.bytes < 0 || now_s < trip.hop.start_s) return 0;
  const int64_t there = std::min(trip.bytes, trip.there);
  if (trip.hop.pieces.empty() || now_s >= trip.hop.end_s + trip.delay_s) return there;
  const double ahead = kPaceHeadroom * PlannedBytes(trip, now_s) + double{kPaceQuantum_bytes};
  return std::min(there, static_cast<int64_t>(ahead));
}

std::vector<Allowance> Courier::Due(double now_s) const {
  std::vector<std::tuple<double, int64_t, int64_t>> due;
  for (const auto& [number, trip] : trips_) {
    const int64_t through = Allowed(trip, now_s);
    if (through > trip.sent) due.emplace_back(trip.hop.start_s, number, through);
  }
  std::sort(due.begin(), due.end());
  std::vector<Allowance> allowances;
  allowances.reserve(due.size());
  for (const auto& [start_s, number, through] : due) {
    allowances.push_back({number, through - trips_.at(number).sent, through});
  }
  return allowances;
}

std::optional<Hop> Courier::Sent(int64_t number, int64_t bytes) {
  const auto trip = trips_.find(number);
  if (trip == trips_.end()) return std::nullopt;
  MERCURY_CHECK(trip->second.bytes >= 0);  // what it carries is there
  trip->second.sent += bytes;
  if (trip->second.sent < trip->second.bytes) return std::nullopt;
  Hop over = std::move(trip->second.hop);
  trips_.erase(trip);
  return over;
}

// When so many bytes are allowed and, behind the first of them, a packet; or all that is left.
double Courier::AllowedAt(const Trip& trip, int64_t bytes, double now_s) {
  if (trip.bytes < 0 || bytes > trip.there) return kNever;
  if (now_s < trip.hop.start_s) return trip.hop.start_s;
  const double end_s = trip.hop.end_s + trip.delay_s;
  const int64_t wanted = std::min(trip.bytes, bytes - 1 + kPaceQuantum_bytes);
  double missing_bits = 8 * (double(wanted) - double{kPaceQuantum_bytes}) / kPaceHeadroom;
  for (const RateSpan& piece : trip.hop.pieces) {
    const double bits = (piece.end_s - piece.start_s) * piece.bit_per_s;
    if (missing_bits <= bits) {
      const double at_s =
          piece.start_s + std::max(0.0, missing_bits) / piece.bit_per_s + trip.delay_s;
      // Rounded up, so that whoever wakes then is allowed something.
      return std::min(end_s, std::max(now_s, std::nextafter(at_s + 1e-9, kNever)));
    }
    missing_bits -= bits;
  }
  return end_s;
}

double Courier::WakeAt(double now_s, const NextOf& next) const {
  double at_s = kNever;
  for (const auto& [number, trip] : trips_) {
    const std::optional<int64_t> bytes = next == nullptr ? 0 : next(number, trip.hop);
    if (!bytes) continue;
    at_s = std::min(at_s, AllowedAt(trip, *bytes == 0 ? trip.sent + 1 : *bytes, now_s));
  }
  return at_s;
}

}  // namespace mercury::fabric
