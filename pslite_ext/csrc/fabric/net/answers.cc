#include "fabric/net/answers.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace mercury::fabric {

void Answers::Enter(double weight, const Staleness& staleness) {
  const std::lock_guard<std::mutex> lock(mutex_);
  weight_ = weight;
  staleness_ = staleness;
}

void Answers::End(Phase phase, const Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (phase_ == Phase::kFailed || phase_ == Phase::kEnded) return;
  phase_ = phase;
  status_ = status;
  changed_.notify_all();
}

void Answers::Settled(int64_t number, Fate fate) {
  const std::lock_guard<std::mutex> lock(mutex_);
  fates_.Settle(number, fate);
  changed_.notify_all();
}

void Answers::Got(const Edition& edition, std::shared_ptr<const Vector> what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  got_edition_ = edition;
  got_ = std::move(what);
  changed_.notify_all();
}

bool Answers::Wait(int slice_ms, const std::function<bool()>& over, Status* status) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto done = [&] { return phase_ == Phase::kFailed || over(); };
  if (!changed_.wait_for(lock, std::chrono::milliseconds(slice_ms), done)) return false;
  *status = status_;
  return true;
}

bool Answers::WaitBegun(int slice_ms, Status* status) {
  return Wait(slice_ms, [this] { return phase_ != Phase::kJoining; }, status);
}

bool Answers::WaitEnded(int slice_ms, Status* status) {
  return Wait(slice_ms, [this] { return phase_ == Phase::kEnded; }, status);
}

bool Answers::WaitSettled(int slice_ms, Status* status) {
  return Wait(slice_ms, [this] { return fates_.all_settled() || phase_ == Phase::kEnded; }, status);
}

bool Answers::WaitModel(int slice_ms, Status* status, std::shared_ptr<const Vector>* got,
                        int64_t* version) {
  if (!Wait(slice_ms, [this] { return got_ != nullptr || phase_ == Phase::kEnded; }, status)) {
    return false;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  *got = std::exchange(got_, nullptr);
  if (*got == nullptr) {
    if (status->ok()) *status = Status::Closed("the job is over");
    return true;
  }
  *version = got_edition_.version;
  if (!std::exchange(reducing_, false)) edition_ = got_edition_;
  asked_ = false;
  return true;
}

bool Answers::Discard(int slice_ms, Status* status) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    reducing_ = true;
  }
  std::shared_ptr<const Vector> nobodys;
  int64_t version = 0;
  return WaitModel(slice_ms, status, &nobodys, &version);
}

Status Answers::failure() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

std::optional<Fate> Answers::FateOf(int64_t number) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return fates_.Of(number);
}

std::string Answers::Figures() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return fates_.Figures();
}

// Under the lock.
Status Answers::Check() const {
  if (phase_ == Phase::kFailed) return status_;
  if (phase_ == Phase::kRunning && worker_) return Status::Ok();
  return Status::Closed("this process is no worker of a job that runs");
}

Status Answers::Weight(double* weight) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  *weight = weight_;
  return Check();
}

Status Answers::Push(double norm, const Send& send, int64_t* number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Status status = Check();
  if (!status.ok()) return status;
  Request request;
  request.version = edition_.version;
  request.reign = edition_.reign;
  request.norm = norm;
  *number = request.id.number = fates_.Add();
  ++updates_;
  send(request);
  return status;
}

Status Answers::Reduce(const Send& send) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Status status = Check();
  if (!status.ok()) return status;
  if (std::exchange(asked_, true)) return Status::InvalidArgument("it has asked for the model");
  Request request;
  request.reduce = reducing_ = true;
  request.id.number = fates_.Add();
  send(request);
  return status;
}

Status Answers::AskModel(const std::function<void(int64_t least)>& ask) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Status status = Check();
  if (!status.ok() || std::exchange(asked_, true)) return status;
  const int64_t least = staleness_.bounded() ? updates_ - staleness_.updates : 0;
  ask(std::max(int64_t{0}, least));
  return status;
}

}  // namespace mercury::fabric
