#include "process/mxnet_engine.h"

#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mercury {
namespace {

// An NDArray of MXNet's as its functions return one. More than its size; only MXNet looks into it.
struct PlainArray {
  PlainArray(const PlainArray&) = delete;
  PlainArray& operator=(const PlainArray&) = delete;
  ~PlainArray();
  alignas(16) char bytes[1024];
};

using AsyncFunction = void (*)(void* run_context, void* on_complete, void* param);

struct EngineApi {
  int (*push_async_nd)(AsyncFunction, void*, void (*)(void*), void*, NDArrayHandle*, int,
                       NDArrayHandle*, int, void*, int, const char*, bool) = nullptr;
  int (*shallow_copy)(NDArrayHandle, NDArrayHandle*) = nullptr;
  int (*free)(NDArrayHandle) = nullptr;
  int (*get_data)(NDArrayHandle, void**) = nullptr;
  int (*create)(const uint32_t* shape, uint32_t ndim, int dev_type, int dev_id, int delay_alloc,
                NDArrayHandle*) = nullptr;
  int (*wait_all)() = nullptr;
  const char* (*last_error)() = nullptr;
};
EngineApi g_api;

// What MXNet's own operators call. oneDNN's operators leave results, and inference the weights, in
// layouts of their own, which MXNDArrayGetData converts with an engine operation that it waits for:
// inside an operation on the same array, forever.
struct LayoutApi {
  bool (*is_foreign)(const void* chunk) = nullptr;     // NDArray::Chunk::IsMKLDNN
  void (*convert)(void* chunk) = nullptr;              // NDArray::Chunk::Reorder2Default
  PlainArray (*plain)(const void* ndarray) = nullptr;  // NDArray::Reorder2Default
  void (*destroy)(void* ndarray) = nullptr;            // its destructor
};
LayoutApi g_layout;  // all null where MXNet was built without oneDNN

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

// An NDArray begins with the pointer to its chunk: memory, layout and the engine's variable.
void* Chunk(NDArrayHandle array) { return *static_cast<void**>(array); }

bool IsForeign(NDArrayHandle array) {
  return g_layout.is_foreign != nullptr && g_layout.is_foreign(Chunk(array));
}

// Arrays kept alive; pointers to their memory are valid while an operation runs or this exists.
class EngineArrays {
 public:
  EngineArrays() = default;
  EngineArrays(const EngineArrays&) = delete;
  EngineArrays& operator=(const EngineArrays&) = delete;
  ~EngineArrays() {
    for (NDArrayHandle copy : copies_) g_api.free(copy);
  }
  Status Hold(NDArrayHandle handle, NDArrayHandle* copy);
  // Memory of a dense CPU array in the plain layout; call inside an operation that reads it (for
  // Write below: writes it). Never waits.
  Status Read(NDArrayHandle array, const char** data);

 private:
  std::vector<NDArrayHandle> copies_;
  std::vector<std::unique_ptr<PlainArray>> plain_;  // of arrays in another layout
};
Status Write(NDArrayHandle array, char** data);

// What operations have failed of: a few failures, however many operations.
class Failures {
 public:
  // Its index; where there is no room for more, one that nothing is at.
  size_t Note(const Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    size_t index = 0;
    while (index < failures_.size() && failures_[index].number() != status.number()) ++index;
    if (index == failures_.size() && index != kFailuresMax) failures_.push_back(status);
    return index;
  }
  Status At(size_t index) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return index < failures_.size() ? failures_[index] : Status::Ok();
  }

 private:
  static constexpr size_t kFailuresMax = 1000;
  mutable std::mutex mutex_;
  std::vector<Status> failures_;
};

Failures& AllFailures() {
  static auto* failures = new Failures;  // threads that outlive main find it whole
  return *failures;
}

// The engine notes failures in a list that it does not lock: two at once corrupt the heap.
void Fail(const OnComplete& complete, const std::runtime_error& error) {
  static std::mutex one_at_a_time;
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  complete.callback(complete.engine, complete.param, &error);
}

struct EngineCall {
  Worker* worker;
  std::shared_ptr<Operation> op;
  std::shared_ptr<EngineArrays> arrays;
  NDArrayHandle src, out;  // of the arrays; either may be null
};

// What the engine calls when the arrays are ready. Nobody but the transport holds the operation
// when this is over: one that is dropped for want of memory must find its end.
void Run(void* /*run_context*/, void* on_complete, void* param) {
  const OnComplete complete = *static_cast<OnComplete*>(on_complete);
  const EngineCall call = std::move(*static_cast<EngineCall*>(param));
  Operation& op = *call.op;
  op.done = [complete](const Status& status) {
    if (status.ok()) {
      complete.callback(complete.engine, complete.param, nullptr);
    } else {
      // MXNet copies it and raises it at the next read of an output: as an MXNetError, or as what
      // is registered by the name before the colon (mxnet_plugins/errors.py). The number behind
      // that is EngineFailure's.
      const std::runtime_error error(
          "mercury.error_" + std::to_string(static_cast<int>(status.code())) + ": " +
          std::to_string(AllFailures().Note(status)) + " " + status.text());
      Fail(complete, error);
    }
  };
  op.keep = call.arrays;
  try {
    Status status;
    if (call.out != nullptr) status = Write(call.out, &op.dst);
    if (call.src == call.out) {
      op.src = op.dst;
    } else if (call.src != nullptr && status.ok()) {
      status = call.arrays->Read(call.src, &op.src);
    }
    if (!status.ok()) return op.Finish(status);
    call.worker->Submit(call.op);
  } catch (const std::exception& error) {
    op.Finish(Status::Exhausted(std::string("an operation could not begin: ") + error.what()));
  }
}

void Delete(void* param) { delete static_cast<EngineCall*>(param); }

Status MxnetError(const std::string& what) {
  return Status::Internal(what + ": " + g_api.last_error());
}

void FailAtOnce(void* /*run_context*/, void* on_complete, void* text) {
  Fail(*static_cast<OnComplete*>(on_complete), std::runtime_error(static_cast<char*>(text)));
}

// The engine looks through its list of failures, too, when an operation begins on what has failed;
// and that may be while we tell it of the next failure. Where the list has room, the two do not
// meet. Where it has none, it moves to other memory, and who looks through it corrupts the heap. So
// it gets room while there are no failures; emptied, it keeps what it once had.
Status MakeRoomForFailures() {
  constexpr size_t kFailures = 4096;
  static char text[] = "mercury makes room";
  // None of the script's may fail meanwhile. Emptying the list here hides none: it is raised.
  if (g_api.wait_all() != 0) {
    return Status::InvalidArgument(
        std::string("an operation failed before the store was created: ") + g_api.last_error());
  }
  // Each fails an array of its own: of two that wrote one, the second would fail of the first.
  std::vector<NDArrayHandle> arrays(kFailures);
  const uint32_t shape = 1;
  Status status;
  for (NDArrayHandle& array : arrays) {
    if (g_api.create(&shape, 1, 1, 0, 1, &array) != 0) {
      status = MxnetError("cannot make an array");
      break;
    }
    if (g_api.push_async_nd(FailAtOnce, text, nullptr, &g_cpu, nullptr, 0, &array, 1,
                            &g_prioritized, 0, "mercury", false) != 0) {
      status = MxnetError("the engine refused an operation");
      break;
    }
  }
  g_api.wait_all();  // empties the list, and raises what is in it
  for (NDArrayHandle array : arrays) {
    if (array != nullptr) g_api.free(array);
  }
  return status;
}

Status Data(NDArrayHandle array, char** data) {
  void* pointer = nullptr;
  if (g_api.get_data(array, &pointer) != 0) return MxnetError("cannot read an array");
  *data = static_cast<char*>(pointer);
  return Status::Ok();
}

// Whether an NDArray is what Chunk takes it for: copies share the first word, others do not.
bool KnowsChunks(const EngineApi& api) {
  const uint32_t shape = 1;
  NDArrayHandle arrays[3] = {};
  const bool made = api.create(&shape, 1, 1, 0, 1, &arrays[0]) == 0 &&
                    api.shallow_copy(arrays[0], &arrays[1]) == 0 &&
                    api.create(&shape, 1, 1, 0, 1, &arrays[2]) == 0;
  const bool known =
      made && Chunk(arrays[0]) == Chunk(arrays[1]) && Chunk(arrays[0]) != Chunk(arrays[2]);
  for (NDArrayHandle array : arrays) {
    if (array != nullptr) api.free(array);
  }
  return known;
}

PlainArray::~PlainArray() { g_layout.destroy(bytes); }

Status EngineArrays::Hold(NDArrayHandle handle, NDArrayHandle* copy) {
  if (g_api.shallow_copy(handle, copy) != 0) return MxnetError("cannot hold an array");
  copies_.push_back(*copy);
  return Status::Ok();
}

Status EngineArrays::Read(NDArrayHandle array, const char** data) {
  char* memory = nullptr;
  NDArrayHandle plain = array;
  if (IsForeign(array)) {
    try {
      // Others may read it beside us: it stays as it is.
      plain_.push_back(std::unique_ptr<PlainArray>(new PlainArray(g_layout.plain(array))));
    } catch (const std::exception& error) {
      return Status::Internal(std::string("cannot convert an array's layout: ") + error.what());
    }
    plain = plain_.back()->bytes;
  }
  const Status status = Data(plain, &memory);
  *data = memory;
  return status;
}

Status Write(NDArrayHandle array, char** data) {
  try {
    if (IsForeign(array)) g_layout.convert(Chunk(array));
  } catch (const std::exception& error) {
    return Status::Internal(std::string("cannot convert an array's layout: ") + error.what());
  }
  return Data(array, data);
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
      !look_up("MXNDArrayGetData", &api.get_data) || !look_up("MXNDArrayCreate", &api.create) ||
      !look_up("MXNDArrayWaitAll", &api.wait_all) || !look_up("MXGetLastError", &api.last_error) ||
      !KnowsChunks(api)) {
    return Status::InvalidArgument(
        "this MXNet has no asynchronous engine operations; mercury-ps needs MXNet 1.9.1");
  }
  g_api = api;
  LayoutApi layout;
  if (look_up("_ZNK5mxnet7NDArray5Chunk8IsMKLDNNEv", &layout.is_foreign) &&
      look_up("_ZN5mxnet7NDArray5Chunk15Reorder2DefaultEv", &layout.convert) &&
      look_up("_ZNK5mxnet7NDArray15Reorder2DefaultEv", &layout.plain) &&
      look_up("_ZN5mxnet7NDArrayD1Ev", &layout.destroy)) {
    g_layout = layout;
  }
  return MakeRoomForFailures();
}

bool SameVariable(NDArrayHandle a, NDArrayHandle b) { return Chunk(a) == Chunk(b); }

Status EngineFailure(size_t index) { return AllFailures().At(index); }

Status SubmitWhenReady(Worker* worker, std::shared_ptr<Operation> op, NDArrayHandle src,
                       NDArrayHandle out, NDArrayHandle token) {
  if (g_api.shallow_copy == nullptr) return Status::Internal("the engine is not attached");
  if ((src != nullptr) != op->reads() || (out != nullptr) != op->writes()) {
    return Status::InvalidArgument("an operation of kind " +
                                   std::to_string(static_cast<int>(op->kind)) +
                                   " with too many or too few arrays");
  }
  auto arrays = std::make_shared<EngineArrays>();
  NDArrayHandle token_copy = nullptr, out_copy = nullptr, src_copy = nullptr;
  Status status = arrays->Hold(token, &token_copy);
  if (status.ok() && out != nullptr) status = arrays->Hold(out, &out_copy);
  if (src == out) {
    src_copy = out_copy;
  } else if (status.ok() && src != nullptr) {
    status = arrays->Hold(src, &src_copy);
  }
  if (!status.ok()) return status;
  std::vector<NDArrayHandle> read, written{token_copy};
  if (out != nullptr) written.push_back(out_copy);
  if (src != nullptr && src != out) read.push_back(src_copy);
  const int priority = op->priority;
  auto call = std::make_unique<EngineCall>(
      EngineCall{worker, std::move(op), std::move(arrays), src_copy, out_copy});
  // The call is the engine's from here on, even if it refuses it.
  const int rc = g_api.push_async_nd(
      Run, call.release(), Delete, &g_cpu, read.data(), static_cast<int>(read.size()),
      written.data(), static_cast<int>(written.size()), &g_prioritized, priority, "mercury", false);
  return rc == 0 ? Status::Ok() : MxnetError("the engine refused an operation");
}

}  // namespace mercury
