#include "packets/resumption.h"

#include <algorithm>

namespace mercury {

bool Resumption::Stands(size_t worker, uint8_t round, int32_t standing) {
  Said& said = said_[worker];
  if (said.known) return false;
  said = {true, said.out, round, standing};
  return true;
}

bool Resumption::Known() const {
  return std::all_of(said_.begin(), said_.end(),
                     [](const Said& said) { return said.known || said.out; });
}

const Resumption::Said& Resumption::First() const {
  const auto first =
      std::find_if(said_.begin(), said_.end(), [](const Said& said) { return !said.out; });
  return first == said_.end() ? said_.front() : *first;
}

void Resumption::End() {
  last_ = round();
  over_ = true;
}

// Rounds are counted modulo 256.
int Resumption::RoundsAhead(const Said& of) const {
  return static_cast<int8_t>(static_cast<uint8_t>(of.round - First().round));
}

bool Resumption::Consistent() const {
  int least = 0, most = 0;
  for (const Said& said : said_) {
    if (said.out) continue;
    least = std::min(least, RoundsAhead(said));
    most = std::max(most, RoundsAhead(said));
  }
  return most - least <= 1;
}

uint8_t Resumption::round() const {
  if (over_) return last_;
  int most = 0;
  for (const Said& said : said_) {
    if (!said.out) most = std::max(most, RoundsAhead(said));
  }
  return static_cast<uint8_t>(First().round + most);
}

bool Resumption::Behind(size_t worker) const {
  return !said_[worker].out && said_[worker].round != round();
}

bool Resumption::AnyBehind() const {
  for (size_t w = 0; w < said_.size(); ++w) {
    if (Behind(w)) return true;
  }
  return false;
}

std::vector<int> Resumption::Ahead() const {
  std::vector<int> ahead;
  for (size_t w = 0; w < said_.size(); ++w) {
    if (!said_[w].out && !Behind(w)) ahead.push_back(static_cast<int>(w));
  }
  return ahead;
}

int Resumption::Giver() const {
  for (size_t w = 0; w < said_.size(); ++w) {
    const bool has = (said_[w].standing & Standing::kHasSum) != 0;
    if (!said_[w].out && has && !Behind(w)) return static_cast<int>(w);
  }
  return -1;
}

bool Resumption::AwaitsFirst() const {
  return std::any_of(said_.begin(), said_.end(), [](const Said& said) {
    return !said.out && (said.standing & Standing::kGaveFirst) == 0;
  });
}

}  // namespace mercury
