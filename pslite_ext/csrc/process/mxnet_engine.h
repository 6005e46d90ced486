// The seam into MXNet's engine: work that waits for arrays, runs without blocking a thread of the
// engine, and completes (or fails) when the network is done.
//
// All functions are looked up in the libmxnet.so that Python has already loaded; nothing is linked.
// Thread-safety: AttachEngine once; the rest from any thread. Ownership: every array handed over is
// held by a shallow copy until the last user of the operation is gone. Invariant: the engine hears
// exactly once that an operation is over.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/status.h"
#include "worker/worker.h"

namespace mercury {

using NDArrayHandle = void*;

// Waits for all that the engine has been given; an error if some of it has failed.
Status AttachEngine(void* libmxnet);

// Whether the engine knows both by one variable: one array, or views of one.
bool SameVariable(NDArrayHandle a, NDArrayHandle b);

// The failures of operations, each one once, in the order in which they came; ok past the last.
// MXNet itself reports only one of them.
Status EngineFailure(size_t index);

// Submits `op` to `worker` once all earlier operations on the arrays are over; it reads `src` (or
// null), writes `out` (or null, or src), and is over for the engine when it is over. `token` is
// written, too, so that operations of one tensor run one after the other.
Status SubmitWhenReady(Worker* worker, std::shared_ptr<Operation> op, NDArrayHandle src,
                       NDArrayHandle out, NDArrayHandle token);

}  // namespace mercury
