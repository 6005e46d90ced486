#include "fabric/net/passing_on.h"

#include <algorithm>
#include <utility>

namespace mercury::fabric {

void PassingOn::Told(int64_t number, const Hop& hop, std::shared_ptr<const Vector> own,
                     const Codec* codec) {
  Passing& passage = told_[number];
  passage.goal = hop.goal;
  passage.before.assign(hop.places.begin(), hop.places.end() - 1);
  passage.own = std::move(own);
  passage.codec = codec;
  passage.two_sums = hop.two_sums;
  for (auto early = untold_.begin(); early != untold_.end();) {
    const bool same_goal = early->goal == hop.goal;
    if (same_goal && early->places == passage.before) Join(&passage, std::move(early->inflow));
    const bool over = same_goal && early->places.back() < hop.places.back();
    early = over ? untold_.erase(early) : std::next(early);
  }
}

void PassingOn::Comes(Goal goal, std::vector<int64_t> places,
                      std::shared_ptr<const Inflow> inflow) {
  for (auto& [number, passage] : told_) {
    if (passage.inflow == nullptr && passage.goal == goal && passage.before == places) {
      return Join(&passage, std::move(inflow));
    }
  }
  if (untold_.size() >= kUntoldMost) untold_.pop_front();
  untold_.push_back({goal, std::move(places), std::move(inflow)});
}

void PassingOn::Join(Passing* passage, std::shared_ptr<const Inflow> inflow) {
  if (passage->two_sums && inflow->step == nullptr) passage->step = spares_.Get(inflow->elements);
  passage->cargo = {inflow->sum, passage->step != nullptr ? passage->step : inflow->step,
                    passage->codec};
  passage->inflow = std::move(inflow);
}

size_t PassingOn::Advance(int64_t number) {
  Passing& passage = told_.at(number);
  if (passage.inflow == nullptr) return 0;
  const Inflow& inflow = *passage.inflow;
  const size_t there = inflow.there();
  const size_t begin = std::exchange(passage.added, there);
  if (there > begin) {
    float* sum = inflow.sum->data() + begin;
    const float* own = passage.own->data() + begin;
    Vector* steps = passage.step != nullptr ? passage.step.get() : inflow.step.get();
    float* step = passage.two_sums ? steps->data() + begin : nullptr;
    if (passage.step != nullptr) std::copy(sum, sum + (there - begin), step);
    const MomentumStride stride = passage.two_sums ? StrideOf(momentum_, 1) : MomentumStride();
    Append<float>(stride, {sum, step}, {own, own}, there - begin);
  }
  return passage.cargo.shape().BytesOf(there);
}

bool PassingOn::whole(int64_t number) const {
  const Passing& passage = told_.at(number);
  return passage.inflow != nullptr && passage.added == passage.inflow->elements;
}

std::vector<int64_t> PassingOn::Broken() const {
  std::vector<int64_t> broken;
  for (const auto& [number, passage] : told_) {
    if (passage.inflow != nullptr && passage.inflow->broken) broken.push_back(number);
  }
  return broken;
}

std::vector<int64_t> PassingOn::numbers() const {
  std::vector<int64_t> numbers;
  numbers.reserve(told_.size());
  for (const auto& [number, passage] : told_) numbers.push_back(number);
  return numbers;
}

}  // namespace mercury::fabric
