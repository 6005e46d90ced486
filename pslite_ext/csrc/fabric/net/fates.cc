#include "fabric/net/fates.h"

namespace mercury::fabric {
namespace {

constexpr Fate kFates[] = {Fate::kCommitted, Fate::kTooOld,   Fate::kOvertaken,
                           Fate::kLate,      Fate::kOrphaned, Fate::kLost};

}  // namespace

int64_t Fates::Add() {
  unsettled_.insert(++pushed_);
  return pushed_;
}

void Fates::Settle(int64_t number, Fate fate) {
  unsettled_.erase(number);
  ++counts_[fate];
  last_[number] = fate;
  if (last_.size() > kFatesKept) last_.erase(last_.begin());
}

std::optional<Fate> Fates::Of(int64_t number) const {
  const auto found = last_.find(number);
  if (found == last_.end()) return std::nullopt;
  return found->second;
}

std::string Fates::Figures() const {
  std::string text = "\"pushed\": " + std::to_string(pushed_);
  for (const Fate fate : kFates) {
    const auto found = counts_.find(fate);
    const int64_t count = found == counts_.end() ? 0 : found->second;
    text += std::string(", \"") + FateName(fate) + "\": " + std::to_string(count);
  }
  return text;
}

}  // namespace mercury::fabric
