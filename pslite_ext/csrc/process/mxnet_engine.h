// The seam into MXNet's engine: work that waits for arrays, runs without blocking a thread of the
// engine, and completes (or fails) when the network is done.
//
// All functions are looked up in the libmxnet.so that Python has already loaded; nothing is linked.
// Thread-safety: Attach once; Push from any thread. Ownership: every array handed over is held by a
// shallow copy until the last user of EngineArrays is gone. Invariant: the engine hears `done`
// exactly once per operation that it has run.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"

namespace mercury {

using NDArrayHandle = void*;

// An NDArray of MXNet's as its functions return one. More than its size; only MXNet looks into it.
struct PlainArray {
  PlainArray(const PlainArray&) = delete;
  PlainArray& operator=(const PlainArray&) = delete;
  ~PlainArray();
  alignas(16) char bytes[1024];
};

// Arrays kept alive; pointers to their memory are valid while an operation runs or this exists.
class EngineArrays {
 public:
  static Status Hold(const std::vector<NDArrayHandle>& handles,
                     std::shared_ptr<EngineArrays>* arrays);
  ~EngineArrays();
  EngineArrays() = default;
  EngineArrays(const EngineArrays&) = delete;
  EngineArrays& operator=(const EngineArrays&) = delete;
  NDArrayHandle handle(size_t i) const { return copies_[i]; }
  // Memory of a dense CPU array in the plain layout; call inside an operation that reads or, for
  // Write, mutates it. Never waits.
  Status Read(size_t i, char** data);
  Status Write(size_t i, char** data) const;

 private:
  std::vector<NDArrayHandle> copies_;
  std::vector<std::unique_ptr<PlainArray>> plain_;  // of arrays in another layout
};

Status AttachEngine(void* libmxnet);

// Whether the engine knows both by one variable: one array, or views of one.
bool SameVariable(NDArrayHandle a, NDArrayHandle b);

using EngineDone = std::function<void(const Status&)>;

// Queues `run` behind all earlier operations on the arrays. `run` must not block; it calls `done`,
// now or later, from any thread. `mutate` and `read` index into arrays and have nothing in common.
Status PushToEngine(std::shared_ptr<EngineArrays> arrays, const std::vector<size_t>& read,
                    const std::vector<size_t>& mutate, int priority,
                    std::function<void(EngineDone)> run);

}  // namespace mercury
