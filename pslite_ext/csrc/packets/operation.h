// One tensor's sum, once: what a worker hands to the lanes and hears of again when it is in.
//
// Thread-safety: Finish and SlotIn from any thread; the rest does not change once submitted.
// Ownership: `keep` holds the arrays' memory until the last lane has let go of the operation, even
// if it has failed long before. Invariant: `done` is called exactly once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "base/status.h"
#include "links/wire.h"

namespace mercury {

// A tensor as all lanes know it. The first error of any lane sticks.
class PacketTensor {
 public:
  explicit PacketTensor(Declaration declared) : declaration(std::move(declared)) {}
  const Declaration declaration;

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
  }

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> failed_{false};
  Status failure_;
};

// Made beforehand: there is no memory when it is needed.
inline const Status kDropped = Status::Exhausted("no memory to carry a tensor");

struct Operation {
  using Done = std::function<void(const Status&)>;

  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  // Nobody holds it any more: whoever dropped it could not even fail it.
  ~Operation() {
    if (fail_if_dropped && !over_ && done) Finish(kDropped);
  }

  std::shared_ptr<PacketTensor> tensor;
  const char* src = nullptr;
  char* dst = nullptr;
  int32_t priority = 0;
  int32_t number = 0;  // in the order of dispatch, for traces; its pull has the next one
  bool fetch = false;  // sends nothing: asks for the last sum once more
  std::shared_ptr<void> keep;
  Done done;
  std::atomic<uint64_t> slots_left{0};  // of all lanes
  bool fail_if_dropped = false;

  void Finish(const Status& status) {
    if (over_.exchange(true)) return;
    const Done call = std::move(done);
    call(status);
  }
  bool over() const { return over_; }
  void SlotIn() {
    if (slots_left.fetch_sub(1) == 1) Finish(Status::Ok());
  }

 private:
  std::atomic<bool> over_{false};
};

}  // namespace mercury
