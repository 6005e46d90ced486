// What a script asks of a node, and waits for.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "fabric/net/fabric_node.h"

namespace mercury::fabric {
namespace {

// Returns the norm of what is copied: in the same pass, and on several sums at once, since each
// addition waits for the one before.
double CopyWeighed(const float* from, double weight, Vector* to) {
  constexpr size_t kSums = 8;
  double squares[kSums] = {};
  float* out = to->data();
  const auto take = [&](size_t i, double* square) {
    const double value{from[i]};
    out[i] = static_cast<float>(value * weight);
    *square += value * value;
  };
  size_t i = 0;
  for (; i + kSums <= to->size(); i += kSums) {
    for (size_t lane = 0; lane < kSums; ++lane) take(i + lane, &squares[lane]);
  }
  for (; i < to->size(); ++i) take(i, &squares[0]);
  return std::sqrt(std::accumulate(std::begin(squares), std::end(squares), 0.0));
}

}  // namespace

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
  std::shared_ptr<const Vector> got;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    got = std::exchange(got_, nullptr);
    if (got == nullptr) {
      if (status->ok()) *status = Status::Closed("the job is over");
      return true;
    }
    *version = got_version_;
    if (!std::exchange(reducing_, false)) version_ = got_version_;
    asked_ = false;
  }
  std::copy(got->begin(), got->end(), out);
  return true;
}

Status FabricNode::CheckWorker(double* weight) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto rank = static_cast<size_t>(options_.node);
  if (weight != nullptr && rank < weights_.size()) *weight = weights_[rank];
  if (phase_ == Phase::kFailed) return status_;
  if (phase_ != Phase::kRunning || options_.node < 0) {
    return Status::Closed("this process is no worker of a job that runs");
  }
  return Status::Ok();
}

Status FabricNode::Push(const float* update, double norm, int64_t* number) {
  double weight = 1;
  Status status = CheckWorker(&weight);
  if (!status.ok()) return status;
  std::shared_ptr<Vector> copy = spares_.Get(options_.elements);
  const double its_norm = CopyWeighed(update, weight, copy.get());
  if (norm < 0) norm = its_norm;
  if (!std::isfinite(norm)) {
    return Status::InvalidArgument("an update whose norm is " + std::to_string(norm) +
                                   ": not all of it are numbers that can be added up");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  Request request;
  request.version = version_;
  request.norm = norm * std::abs(weight);
  *number = request.id.number = fates_.Add();
  ++updates_;
  Send(request, std::move(copy));
  return status;
}

Status FabricNode::Reduce(const float* part) {
  Status status = CheckWorker();
  if (!status.ok()) return status;
  std::shared_ptr<Vector> copy = spares_.Get(options_.elements);
  std::copy_n(part, options_.elements, copy->data());
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::exchange(asked_, true)) return Status::InvalidArgument("it has asked for the model");
  Request request;
  request.reduce = reducing_ = true;
  request.id.number = fates_.Add();
  Send(request, std::move(copy));
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
  Status status = CheckWorker();
  const std::lock_guard<std::mutex> lock(mutex_);
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
