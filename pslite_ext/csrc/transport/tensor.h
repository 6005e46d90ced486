// One tensor of a job, as all parts of a worker know it: what it is called on the wire and in what
// people read, its shape and type, and whether it has failed.
//
// Thread-safety: Fail, failure, Summed and WorkersIn from any thread. What is not const belongs to
// the thread that makes the tensor's operations, or to the operation under way: a tensor has one at
// a time. Invariant: the first failure sticks.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "sums/codec.h"

namespace mercury {

constexpr uint64_t kTensorBytesMax = uint64_t{1} << 44;

struct TensorTraits {
  uint64_t key = 0;    // 64 bits that no other tensor of the job has
  uint32_t index = 0;  // of its parameter, in the order of announcement: for traces
  std::string name;
  std::string
      label;  // "tensor 'fc1_weight' (key 3)", for errors that must name the key; may be empty
  DType dtype = DType::kFloat32;
  std::vector<uint64_t> shape;
  int priority = 0;           // as announced
  bool asynchronous = false;  // a push is added at once, and waits for nobody

  uint64_t elements() const {
    uint64_t count = 1;
    for (const uint64_t length : shape) count *= length;
    return count;
  }
  uint64_t bytes() const { return elements() * ElementBytes(dtype); }
};

class Gate;

class Tensor {
 public:
  explicit Tensor(TensorTraits its) : traits(std::move(its)) {}
  const TensorTraits traits;

  const Codec* codec = nullptr;        // of the operations to come; null: the plain one
  float parameter = 0.5F;              // the codec's
  std::string use;                     // what its sums are for: "SGD"; may be empty
  std::vector<float> residual;         // what the codec has left out so far
  bool noted = false;                  // in the trace
  const Codec* noted_codec = nullptr;  // that, too
  std::shared_ptr<Gate> gate;          // what its operations wait at; null: at nothing

  Status failure() const {
    if (!failed_.load(std::memory_order_acquire)) return Status::Ok();
    const std::lock_guard<std::mutex> lock(mutex_);
    return failure_;
  }
  void Fail(const Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failed_) return;
    failure_ = status;
    failed_.store(true, std::memory_order_release);
    summed_.notify_all();
  }
  // The next of its sums is in; it is that of so many workers. In a job that goes on without those
  // it loses, a sum in which one of them is missing in part counts it.
  void Summed(int workers) {
    const std::lock_guard<std::mutex> lock(mutex_);
    workers_in_[++sums_ % workers_in_.size()] = workers;
    summed_.notify_all();
  }
  // Of how many workers its sum number `sum` was, from 1; 0: the last one. Of those before the last
  // two it is forgotten. False: that one is not in after `wait_ms`.
  bool WorkersIn(uint64_t sum, int wait_ms, int* workers) const {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto known = [this, sum] { return sums_ >= std::max<uint64_t>(sum, 1); };
    summed_.wait_for(lock, std::chrono::milliseconds(wait_ms), [&] { return known() || failed_; });
    if (known()) *workers = workers_in_[(sum == 0 ? sums_ : sum) % workers_in_.size()];
    return known();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable summed_;
  std::atomic<bool> failed_{false};
  Status failure_;
  uint64_t sums_ = 0;  // that are in
  std::array<int, 2> workers_in_{};
};

}  // namespace mercury
