#include "fabric/net/assembly.h"

namespace mercury::fabric {

Landing Assembly::Into(size_t server, const ModelLetter& letter) {
  const Key key = KeyOf(letter);
  for (auto it = coming_.begin(); it != coming_.end();) {
    it = it->second->broken() ? coming_.erase(it) : std::next(it);
  }
  if (coming_.size() >= kTransfersMost && coming_.count(key) == 0) {
    coming_.begin()->second->aborted = true;
    coming_.erase(coming_.begin());
  }
  std::shared_ptr<Inflow>& model = coming_[key];
  const bool again = model != nullptr &&
                     (model->stripes[server] != nullptr || (model->step != nullptr) != letter.two);
  if (again) model->aborted = true;
  if (model == nullptr || again) {
    model = std::make_shared<Inflow>();
    model->elements = elements_;
    model->vectors = letter.two ? 2 : 1;
    model->sum = spares_.Get(elements_);
    if (letter.two) model->step = spares_.Get(elements_);
    model->stripes.resize(servers_);
  }
  return {model->sum, model->step, {server, servers_, elements_}};
}

std::shared_ptr<const Inflow> Assembly::Comes(size_t server, const ModelLetter& letter,
                                              const std::shared_ptr<const Inflow>& stripe) {
  const std::shared_ptr<Inflow>& model = coming_.at(KeyOf(letter));
  bool first = true;
  for (const auto& other : model->stripes) first &= other == nullptr;
  model->stripes[server] = stripe;
  return first ? model : nullptr;
}

void Assembly::Clear() {
  for (const auto& [key, model] : coming_) model->aborted = true;
  coming_.clear();
}

Cargo Assembly::Take(const ModelLetter& letter) {
  const auto found = coming_.find(KeyOf(letter));
  if (found == coming_.end() || !found->second->whole()) return {};
  const Cargo cargo = found->second->cargo();
  coming_.erase(found);
  return cargo;
}

}  // namespace mercury::fabric
