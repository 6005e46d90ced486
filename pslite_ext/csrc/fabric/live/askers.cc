#include "fabric/live/askers.h"

#include <algorithm>

namespace mercury::fabric {
namespace {

auto Of(int worker) {
  return [worker](const Asker& asker) { return asker.worker == worker; };
}

bool SameKind(const Wish& one, const Wish& other) {
  return (one.reduce != 0) == (other.reduce != 0);
}

}  // namespace

void Askers::Withdraw(int worker) {
  under_way_.erase(worker);
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), Of(worker)), waiting_.end());
}

void Askers::Ask(const Asker& asker) {
  Withdraw(asker.worker);
  waiting_.push_back(asker);
}

void Askers::Gone(int worker) {
  Withdraw(worker);
  // Whoever was to get it by way of this one; and so on.
  for (std::vector<int> gone{worker}; !gone.empty();) {
    const int by = gone.back();
    gone.pop_back();
    for (auto it = under_way_.begin(); it != under_way_.end();) {
      const auto [to, way] = *it;
      const bool theirs = way.by == by;
      if (theirs) waiting_.push_front({to, way.wish});
      if (theirs) gone.push_back(to);
      it = theirs ? under_way_.erase(it) : std::next(it);
    }
  }
}

bool Askers::Waits(int worker) const {
  return std::any_of(waiting_.begin(), waiting_.end(), Of(worker));
}

std::vector<int> Askers::Ready(const May& may) const {
  std::vector<int> ready;
  const Asker* first = nullptr;
  for (const Asker& asker : waiting_) {
    if (!may(asker)) continue;
    if (first == nullptr) first = &asker;
    if (SameKind(asker.wish, first->wish)) ready.push_back(asker.worker);
  }
  return ready;
}

std::vector<Grant> Askers::Take(const std::vector<Edge>& tree, const May& may) {
  std::vector<Grant> grants;
  std::map<int, size_t> of;  // by worker: the grant that serves it
  for (const Edge& edge : tree) {
    const auto asker = std::find_if(waiting_.begin(), waiting_.end(), Of(edge.to));
    if (asker == waiting_.end() || !may(*asker)) continue;
    if (!grants.empty() && !SameKind(asker->wish, grants[0].to.wish)) continue;
    if (edge.from == kServerNode) {
      of[edge.to] = grants.size();
      grants.push_back({*asker, {}});
    } else {
      const auto by = of.find(edge.from);
      if (by == of.end()) continue;
      grants[by->second].onward.push_back({edge.from, edge.to, asker->wish.number});
      of[edge.to] = by->second;
      under_way_[edge.to] = {edge.from, asker->wish};
    }
    waiting_.erase(asker);
  }
  return grants;
}

}  // namespace mercury::fabric
