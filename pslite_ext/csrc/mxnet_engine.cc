#include "mxnet_engine.h"

#include <dlfcn.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <utility>

namespace mercury {
namespace {

using AsyncFunction = void (*)(void* run_context, void* on_complete, void* param);

struct EngineApi {
  int (*push_async_nd)(AsyncFunction, void*, void (*)(void*), void*, NDArrayHandle*, int,
                       NDArrayHandle*, int, void*, int, const char*, bool) = nullptr;
  int (*shallow_copy)(NDArrayHandle, NDArrayHandle*) = nullptr;
  int (*free)(NDArrayHandle) = nullptr;
  int (*get_data)(NDArrayHandle, void**) = nullptr;
  const char* (*last_error)() = nullptr;
};
EngineApi g_api;

// What MXNet passes as on_complete points at: copied out, because it is gone after the call.
struct OnComplete {
  void (*callback)(void* engine, void* param, const void* error);
  void* engine;
  void* param;
};

// mshadow's cpu is device type 1.
struct {
  int32_t dev_type = 1;
  int32_t dev_id = 0;
} g_cpu;

// MXNet's FnProperty kCPUPrioritized: a pool of its own, so that a transfer that has become
// possible does not wait behind computation.
int g_prioritized = 3;

struct EngineCall {
  std::shared_ptr<EngineArrays> arrays;
  std::function<void(EngineDone)> run;
};

void Run(void* /*run_context*/, void* on_complete, void* param) {
  const OnComplete complete = *static_cast<OnComplete*>(on_complete);
  static_cast<EngineCall*>(param)->run([complete](const Status& status) {
    if (status.ok()) {
      complete.callback(complete.engine, complete.param, nullptr);
    } else {
      // MXNet copies it and raises it as MXNetError at the next read of an output.
      const std::runtime_error error(status.message);
      complete.callback(complete.engine, complete.param, &error);
    }
  });
}

void Delete(void* param) { delete static_cast<EngineCall*>(param); }

Status MxnetError(const std::string& what) {
  return Status::Internal(what + ": " + g_api.last_error());
}

}  // namespace

Status AttachEngine(void* libmxnet) {
  EngineApi api;
  const auto look_up = [libmxnet](const char* name, auto* function) {
    *function =
        reinterpret_cast<std::remove_reference_t<decltype(*function)>>(dlsym(libmxnet, name));
    return *function != nullptr;
  };
  if (!look_up("MXEnginePushAsyncND", &api.push_async_nd) ||
      !look_up("MXShallowCopyNDArray", &api.shallow_copy) || !look_up("MXNDArrayFree", &api.free) ||
      !look_up("MXNDArrayGetData", &api.get_data) || !look_up("MXGetLastError", &api.last_error)) {
    return Status::InvalidArgument(
        "this MXNet has no asynchronous engine operations; mercury-ps needs MXNet 1.9.1");
  }
  g_api = api;
  return Status::Ok();
}

Status EngineArrays::Hold(const std::vector<NDArrayHandle>& handles,
                          std::shared_ptr<EngineArrays>* arrays) {
  if (g_api.shallow_copy == nullptr) return Status::Internal("the engine is not attached");
  auto held = std::make_shared<EngineArrays>();
  for (NDArrayHandle handle : handles) {
    NDArrayHandle copy = nullptr;
    if (g_api.shallow_copy(handle, &copy) != 0) return MxnetError("cannot hold an array");
    held->copies_.push_back(copy);
  }
  *arrays = std::move(held);
  return Status::Ok();
}

EngineArrays::~EngineArrays() {
  for (NDArrayHandle copy : copies_) g_api.free(copy);
}

Status EngineArrays::Data(size_t i, char** data) const {
  void* pointer = nullptr;
  if (g_api.get_data(copies_[i], &pointer) != 0) return MxnetError("cannot read an array");
  *data = static_cast<char*>(pointer);
  return Status::Ok();
}

Status PushToEngine(std::shared_ptr<EngineArrays> arrays, const std::vector<size_t>& read,
                    const std::vector<size_t>& mutate, int priority,
                    std::function<void(EngineDone)> run) {
  std::vector<NDArrayHandle> const_handles, mutable_handles;
  for (size_t i : read) const_handles.push_back(arrays->handle(i));
  for (size_t i : mutate) mutable_handles.push_back(arrays->handle(i));
  auto* call = new EngineCall{std::move(arrays), std::move(run)};
  const int rc = g_api.push_async_nd(Run, call, Delete, &g_cpu, const_handles.data(),
                                     static_cast<int>(const_handles.size()), mutable_handles.data(),
                                     static_cast<int>(mutable_handles.size()), &g_prioritized,
                                     priority, "mercury", false);
  return rc == 0 ? Status::Ok() : MxnetError("the engine refused an operation");
}

}  // namespace mercury
