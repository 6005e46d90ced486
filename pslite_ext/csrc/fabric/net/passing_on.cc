#include "fabric/net/passing_on.h"

#include <algorithm>
#include <utility>

namespace mercury::fabric {

void PassingOn::Told(int64_t number, const Hop& hop, std::shared_ptr<const Vector> own,
                     const Codec* codec) {
  Passing& passing = told_[number];
  passing.goal = hop.goal;
  passing.before.assign(hop.places.begin(), hop.places.end() - 1);
  passing.own = std::move(own);
  passing.codec = codec;
  passing.two_sums = hop.two_sums;
  for (auto untold = untold_.begin(); untold != untold_.end(); ++untold) {
    if (untold->goal != hop.goal || untold->places != passing.before) continue;
    Join(&passing, std::move(untold->inflow));
    untold_.erase(untold);
    return;
  }
}

void PassingOn::Drop(Goal goal, int64_t place) {
  untold_.remove_if(
      [&](const Untold& its) { return its.goal == goal && its.places.back() < place; });
}

void PassingOn::DropBroken() {
  untold_.remove_if([](const Untold& its) { return its.inflow->broken(); });
}

void PassingOn::Comes(Goal goal, std::vector<int64_t> places,
                      std::shared_ptr<const Inflow> inflow) {
  for (auto& [number, passing] : told_) {
    if (passing.inflow == nullptr && passing.goal == goal && passing.before == places) {
      Join(&passing, std::move(inflow));
      return;
    }
  }
  if (untold_.size() >= kUntoldMost) untold_.pop_front();
  untold_.push_back({goal, std::move(places), std::move(inflow)});
}

// What comes as two sums where one is to go on is nobody's.
void PassingOn::Join(Passing* passing, std::shared_ptr<const Inflow> inflow) {
  if (inflow->step != nullptr && !passing->two_sums) return;
  if (passing->two_sums && inflow->step == nullptr) passing->step = spares_.Get(inflow->elements);
  passing->cargo = {inflow->sum, passing->step != nullptr ? passing->step : inflow->step,
                    passing->codec};
  passing->inflow = std::move(inflow);
}

size_t PassingOn::Advance(int64_t number) {
  Passing& passing = told_.at(number);
  if (passing.inflow == nullptr) return 0;
  const Inflow& inflow = *passing.inflow;
  const size_t there = inflow.there();
  const size_t begin = std::exchange(passing.added, there);
  if (there > begin) {
    float* sum = inflow.sum->data() + begin;
    const float* own = passing.own->data() + begin;
    Vector* steps = passing.step != nullptr ? passing.step.get() : inflow.step.get();
    float* step = passing.two_sums ? steps->data() + begin : nullptr;
    if (passing.step != nullptr) std::copy(sum, sum + (there - begin), step);
    const MomentumStride stride = passing.two_sums ? StrideOf(momentum_, 1) : MomentumStride();
    Append<float>(stride, {sum, step}, {own, own}, there - begin);
  }
  return passing.cargo.shape().BytesOf(there);
}

bool PassingOn::whole(int64_t number) const {
  const Passing& passing = told_.at(number);
  return passing.inflow != nullptr && passing.added == passing.inflow->elements;
}

std::vector<int64_t> PassingOn::Broken() const {
  std::vector<int64_t> broken;
  for (const auto& [number, passing] : told_) {
    if (passing.inflow != nullptr && passing.inflow->broken()) broken.push_back(number);
  }
  return broken;
}

std::vector<int64_t> PassingOn::numbers() const {
  std::vector<int64_t> numbers;
  numbers.reserve(told_.size());
  for (const auto& [number, passing] : told_) numbers.push_back(number);
  return numbers;
}

}  // namespace mercury::fabric
