#include "fabric/net/spare_vectors.h"

#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"

namespace mercury::fabric {

struct SpareVectors::Pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<Vector>> spares;

  // Needs no memory: there is room.
  void TakeBack(std::unique_ptr<Vector> spare) {
    const std::lock_guard<std::mutex> lock(mutex);
    const bool fits = spares.empty() || spares.front()->size() == spare->size();
    if (fits && spares.size() < kSparesMost) spares.push_back(std::move(spare));
    MERCURY_CHECK(spares.size() <= kSparesMost);
  }
  std::unique_ptr<Vector> Take(size_t elements) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (spares.empty()) return nullptr;
    if (spares.front()->size() != elements) spares.clear();
    if (spares.empty()) return nullptr;
    std::unique_ptr<Vector> spare = std::move(spares.back());
    spares.pop_back();
    return spare;
  }
};

SpareVectors::SpareVectors() : kept_(std::make_shared<Pool>()) {
  kept_->spares.reserve(kSparesMost);
}

std::shared_ptr<Vector> SpareVectors::Get(size_t elements) const {
  std::unique_ptr<Vector> vector = kept_->Take(elements);
  if (vector == nullptr) vector = std::make_unique<Vector>(elements);
  return {vector.release(),
          [kept = kept_](Vector* back) { kept->TakeBack(std::unique_ptr<Vector>(back)); }};
}

void AppendShared(const SpareVectors& spares, const MomentumStride& stride,
                  std::shared_ptr<Vector>* sum, std::shared_ptr<Vector>* step,
                  const GroupSum<float>& group) {
  const size_t elements = (*sum)->size();
  const RunningSum<float> before{(*sum)->data(), step == nullptr ? nullptr : (*step)->data()};
  if (sum->use_count() == 1 && (step == nullptr || step->use_count() == 1)) {
    return Append<float>(stride, before, group, elements);
  }
  std::shared_ptr<Vector> new_sum = spares.Get(elements);
  std::shared_ptr<Vector> new_step = step == nullptr ? nullptr : spares.Get(elements);
  AppendTo<float>({new_sum->data(), new_step == nullptr ? nullptr : new_step->data()}, stride,
                  before, group, elements);
  *sum = std::move(new_sum);
  if (step != nullptr) *step = std::move(new_step);
}

}  // namespace mercury::fabric
