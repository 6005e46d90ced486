#include "worker/tensors.h"

#include <utility>

namespace mercury {
namespace {

// What a parameter's further tensor (its rows) has beyond the parameter's index in traces.
constexpr uint32_t kFurtherIndex = 1000000;

std::string Text(const std::vector<uint64_t>& shape) {
  std::string text;
  for (const uint64_t length : shape) text += (text.empty() ? "" : ", ") + std::to_string(length);
  return "(" + text + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace

std::string Text(const TensorTraits& traits) {
  return std::string(Name(traits.dtype)) + " of shape " + Text(traits.shape) +
         (traits.asynchronous ? ", asynchronous" : "");
}

void Tensors::Announce(uint64_t key, const std::string& name, int priority) {
  const std::lock_guard<std::mutex> lock(mutex_);
  announced_.emplace(key, Parameter{static_cast<uint32_t>(announced_.size()), name, priority});
}

std::shared_ptr<Tensor> Tensors::Find(uint64_t key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = open_.find(key);
  return it == open_.end() ? nullptr : it->second.lock();
}

Status Tensors::Open(TensorTraits traits, uint64_t parameter, std::shared_ptr<Tensor>* tensor) {
  uint64_t bytes = ElementBytes(traits.dtype);
  for (const uint64_t length : traits.shape) {
    if (__builtin_mul_overflow(bytes, length, &bytes) || bytes > kTensorBytesMax) {
      return Status::InvalidArgument("tensor '" + traits.name + "' is " + Text(traits) + ", over " +
                                     std::to_string(kTensorBytesMax) + " bytes");
    }
  }
  Announce(parameter, traits.name, 0);
  const std::lock_guard<std::mutex> lock(mutex_);
  const Parameter& announced = announced_.at(parameter);
  const bool further = traits.key != parameter;
  traits.index = announced.index + (further ? kFurtherIndex : 0);
  traits.name = announced.name + (further ? " (rows)" : "");
  traits.priority = announced.priority;
  std::weak_ptr<Tensor>& known = open_[traits.key];
  std::shared_ptr<Tensor> found = known.lock();
  if (found == nullptr) {
    known = found = std::make_shared<Tensor>(std::move(traits));
  } else {
    const TensorTraits& before = found->traits;
    if (before.shape != traits.shape || before.dtype != traits.dtype ||
        before.asynchronous != traits.asynchronous) {
      return Status::InvalidArgument("tensor '" + traits.name + "' is " + Text(before) +
                                     " and cannot also be " + Text(traits));
    }
  }
  *tensor = std::move(found);
  return Status::Ok();
}

std::vector<std::shared_ptr<Tensor>> Tensors::All() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<Tensor>> all;
  for (const auto& [key, weak] : open_) {
    if (std::shared_ptr<Tensor> tensor = weak.lock()) all.push_back(std::move(tensor));
  }
  return all;
}

}  // namespace mercury
