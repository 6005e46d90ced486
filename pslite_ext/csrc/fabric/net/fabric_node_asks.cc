// What a script asks of a node, and waits for.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "fabric/net/fabric_node.h"

namespace mercury::fabric {

bool FabricNode::Wait(int slice_ms, const std::function<bool()>& over, Status* status) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto done = [&] { return phase_ == Phase::kFailed || over(); };
  if (!changed_.wait_for(lock, std::chrono::milliseconds(slice_ms), done)) return false;
  *status = status_;
  return true;
}

Status FabricNode::failure() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

bool FabricNode::WaitBegun(int slice_ms, Status* status) {
  return Wait(slice_ms, [this] { return phase_ != Phase::kJoining; }, status);
}

bool FabricNode::WaitEnded(int slice_ms, Status* status) {
  return Wait(slice_ms, [this] { return phase_ == Phase::kEnded; }, status);
}

bool FabricNode::WaitSettled(int slice_ms, Status* status) {
  return Wait(slice_ms, [this] { return fates_.all_settled() || phase_ == Phase::kEnded; }, status);
}

bool FabricNode::WaitModel(int slice_ms, Status* status, float* out, int64_t* version) {
  if (!Wait(slice_ms, [this] { return got_ != nullptr || phase_ == Phase::kEnded; }, status)) {
    return false;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (got_ == nullptr) {
    if (status->ok()) *status = Status::Closed("the job is over");
    return true;
  }
  std::copy(got_->begin(), got_->end(), out);
  *version = got_version_;
  if (!std::exchange(reducing_, false)) version_ = got_version_;
  got_.reset();
  asked_ = false;
  return true;
}

Status FabricNode::CheckWorker() const {
  if (phase_ == Phase::kFailed) return status_;
  if (phase_ != Phase::kRunning || options_.node < 0) {
    return Status::Closed("this process is no worker of a job that runs");
  }
  return Status::Ok();
}

Status FabricNode::Push(const float* update, double norm, int64_t* number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Status status = CheckWorker();
  if (!status.ok()) return status;
  const auto rank = static_cast<size_t>(options_.node);
  const double weight = rank < weights_.size() ? weights_[rank] : 1;
  auto copy = std::make_shared<Vector>(update, update + options_.elements);
  if (weight != 1) {
    for (float& value : *copy) value = static_cast<float>(double{value} * weight);
  }
  Request request;
  request.version = version_;
  request.norm = norm * std::abs(weight);
  *number = request.id.number = fates_.Add();
  ++updates_;
  Send(request, std::move(copy));
  return status;
}

Status FabricNode::Reduce(const float* part) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Status status = CheckWorker();
  if (!status.ok()) return status;
  if (std::exchange(asked_, true)) return Status::InvalidArgument("it has asked for the model");
  Request request;
  request.reduce = reducing_ = true;
  request.id.number = fates_.Add();
  Send(request, std::make_shared<Vector>(part, part + options_.elements));
  lane_->Post([this, number = request.id.number] { worker_->Get({0, number}); });
  return status;
}

void FabricNode::Send(Request request, std::shared_ptr<const Vector> update) {
  lane_->Post([this, request, update = std::move(update), now_us = NowUs()]() mutable {
    request.pushed_s = endpoint_->SchedulerTime(now_us);
    worker_->Push(request, std::move(update));
  });
}

Status FabricNode::AskModel() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Status status = CheckWorker();
  if (!status.ok() || std::exchange(asked_, true)) return status;
  const int64_t least = staleness_.bounded() ? updates_ - staleness_.updates : 0;
  lane_->Post([this, least] { worker_->Get({std::max(int64_t{0}, least), 0}); });
  return status;
}

std::optional<Fate> FabricNode::FateOf(int64_t number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return fates_.Of(number);
}

}  // namespace mercury::fabric
