#include "process/c_api.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "messages/classic.h"
#include "process/c_api_status.h"
#include "process/mxnet_engine.h"
#include "process/node.h"
#include "trace/trace_log.h"
#include "trace/trace_text.h"

using mercury::Buffer;
using mercury::Code;
using mercury::EngineArrays;
using mercury::EngineDone;
using mercury::Guarded;
using mercury::Node;
using mercury::Return;
using mercury::Status;
using mercury::Waited;

struct mercury_tensor {
  std::shared_ptr<mercury::TensorInfo> info;
  std::shared_ptr<mercury::PacketTensor> packets;  // once it has been summed in packets
  bool sum_in_packets = false;                     // so was the last sum
  int priority = 0;
  bool noted = false;  // in the trace

  bool goes_in_packets() const {
    return Node::Get().packets() != nullptr && !info->asynchronous &&
           info->compression == mercury::Compression::kNone;
  }
};

// Shared by the waiter and the network thread that answers.
struct TicketState {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  Status status;
  std::vector<Buffer> answers;
  uint32_t row_bytes = 0;
};
struct mercury_ticket {
  std::shared_ptr<TicketState> state = std::make_shared<TicketState>();
};

namespace {

// What tensors were announced, in order; their names go into errors and their index into messages.
struct Announced {
  std::mutex mutex;
  struct Parameter {
    uint64_t index = 0;
    std::string name;
    int priority = 0;
  };
  std::unordered_map<uint64_t, Parameter> by_key;
};
// What a parameter's further tensor (its rows) has beyond the parameter's index in traces.
constexpr uint64_t kFurtherIndex = 1000000;
Announced& Announcements() {
  static auto* announced = new Announced;
  return *announced;
}

Status Worker(mercury::ClassicWorker** worker) {
  *worker = Node::Get().worker();
  if (*worker == nullptr) return Status::Closed("this process is not a worker of a running job");
  return Node::Get().failure();
}

// An operation that the engine has started: the memory it may use, and whom to tell when it is
// over.
struct Started {
  mercury::ClassicWorker* classic;
  std::shared_ptr<mercury::TensorInfo> tensor;
  std::shared_ptr<mercury::PacketTensor> packets;
  char* src = nullptr;
  char* dst = nullptr;
  int priority;
  std::shared_ptr<EngineArrays> keep;
  EngineDone done;
};
using Start = std::function<void(const Started&)>;

// Queues an engine operation that reads `src` (or null) and writes `out` (or null) and `token`.
Status Queue(mercury_tensor* tensor, void* src, void* out, void* token, int priority, Start start) {
  mercury::ClassicWorker* worker;
  Status status = Worker(&worker);
  if (!status.ok()) return status;
  std::vector<void*> handles{token};
  std::vector<size_t> read, mutate{0};
  size_t src_at = 0, out_at = 0;
  if (out != nullptr) {
    out_at = handles.size();
    handles.push_back(out);
    mutate.push_back(out_at);
  }
  if (src != nullptr && src == out) {
    src_at = out_at;
  } else if (src != nullptr) {
    src_at = handles.size();
    handles.push_back(src);
    read.push_back(src_at);
  }
  std::shared_ptr<EngineArrays> arrays;
  status = EngineArrays::Hold(handles, &arrays);
  if (!status.ok()) return status;
  auto run = [=, info = tensor->info, packets = tensor->packets,
              start = std::move(start)](const EngineDone& done) {
    Started op{worker, info, packets, nullptr, nullptr, priority, arrays, done};
    Status got = Status::Ok();
    if (out_at != 0) got = arrays->Write(out_at, &op.dst);
    if (src_at == out_at) op.src = op.dst;
    if (got.ok() && src_at != out_at && src_at != 0) got = arrays->Read(src_at, &op.src);
    if (!got.ok()) return done(got);
    start(op);
  };
  return mercury::PushToEngine(arrays, read, mutate, priority, std::move(run));
}

// Says in the trace what a tensor's index stands for.
void NoteOnce(mercury_tensor* tensor) {
  mercury::TraceLog* log = mercury::TraceLog::Active();
  if (log == nullptr || std::exchange(tensor->noted, true)) return;
  const mercury::TensorInfo& info = *tensor->info;
  log->Note(mercury::TraceKeyNote(info.index, info.bytes(), tensor->priority, info.name));
}

// The tensor as the data plane knows it.
Status Packets(mercury_tensor* tensor) {
  if (tensor->packets != nullptr) return Status::Ok();
  mercury::Declaration declaration;
  declaration.key = tensor->info->key;
  declaration.elements = tensor->info->elements;
  declaration.dtype = tensor->info->dtype;
  declaration.index = static_cast<uint32_t>(tensor->info->index);
  declaration.name = tensor->info->name;
  // An interrupt on another thread may end this node's part in the job at any time.
  mercury::MercuryWorker* plane = Node::Get().packets();
  if (plane == nullptr) return Status::Closed("this node has left the job");
  return plane->Tensor(declaration, &tensor->packets);
}

// Starts an operation of the data plane, if this node is still in the job.
Start InPackets(void (*call)(mercury::MercuryWorker*, const Started&)) {
  return [call](const Started& op) {
    mercury::MercuryWorker* plane = Node::Get().packets();
    if (plane == nullptr) return op.done(Status::Closed("this node has left the job"));
    call(plane, op);
  };
}

}  // namespace

extern "C" {

int mercury_wait_ready(int slice_ms) {
  Status status;
  const bool over = Node::Get().WaitReady(slice_ms, &status);
  return Waited(over, status);
}

int mercury_wait_end(int slice_ms) {
  Status status;
  const bool over = Node::Get().WaitEnd(slice_ms, &status);
  return Waited(over, status);
}

int mercury_enter_barrier(void) {
  return Guarded([] {
    mercury::ClassicWorker* worker;
    Status status = Worker(&worker);
    if (status.ok()) Node::Get().EnterBarrier();
    return status;
  });
}

int mercury_wait_barrier(int slice_ms) {
  Status status;
  const bool over = Node::Get().WaitBarrier(slice_ms, &status);
  return Waited(over, status);
}

int mercury_check(void) { return Return(Node::Get().failure()); }
int mercury_failed(void) { return Node::Get().failed() ? 1 : 0; }
void mercury_finish(const char* reason) { Node::Get().Finish(reason); }
int mercury_started(void) { return Node::Get().started() ? 1 : 0; }
int mercury_rank(void) { return Node::Get().rank(); }
int mercury_num_lost(int group) { return Node::Get().NumLost(group); }
const char* mercury_sum_instruction_set(void) { return mercury::SumInstructionSet(); }

const char* mercury_figures(void) {
  thread_local std::string text;
  text = Node::Get().Figures();
  return text.c_str();
}

int mercury_announce(uint64_t key, const char* name, uint64_t /*bytes*/, int priority) {
  return Guarded([&] {
    std::lock_guard<std::mutex> lock(Announcements().mutex);
    auto& by_key = Announcements().by_key;
    by_key.emplace(key, Announced::Parameter{by_key.size(), name, priority});
    return Status::Ok();
  });
}

int mercury_attach_engine(void* libmxnet) {
  return Guarded([&] { return mercury::AttachEngine(libmxnet); });
}

int mercury_same_variable(void* a, void* b) { return mercury::SameVariable(a, b) ? 1 : 0; }

int mercury_tensor_new(uint64_t key, uint64_t parameter, const char* name, const char* dtype,
                       uint64_t elements, int asynchronous, mercury_tensor** tensor) {
  return Guarded([&] {
    auto info = std::make_shared<mercury::TensorInfo>();
    if (!mercury::ParseDType(dtype, &info->dtype)) {
      return Status::InvalidArgument("tensor '" + std::string(name) + "' is of type " + dtype +
                                     ", which cannot be summed");
    }
    mercury_announce(parameter, name, 0, 0);
    int priority = 0;
    info->elements = elements;
    {
      std::lock_guard<std::mutex> lock(Announcements().mutex);
      const auto& announced = Announcements().by_key.at(parameter);
      info->index = announced.index;
      info->name = announced.name;
      priority = announced.priority;
      if (key != parameter) {
        info->index += kFurtherIndex;
        info->name += " (rows)";
      }
    }
    info->key = key;
    info->asynchronous = asynchronous != 0;
    *tensor = new mercury_tensor{std::move(info), nullptr, false, priority};
    if (key == parameter) NoteOnce(*tensor);
    return Status::Ok();
  });
}

size_t mercury_element_bytes(const char* dtype) {
  mercury::DType parsed;
  return mercury::ParseDType(dtype, &parsed) ? mercury::ElementBytes(parsed) : 0;
}

void mercury_tensor_free(mercury_tensor* tensor) { delete tensor; }

int mercury_tensor_set_compression(mercury_tensor* tensor, const char* kind, float threshold) {
  return Guarded([&] {
    const std::string name = kind;
    mercury::TensorInfo& info = *tensor->info;
    if (name == "none") {
      info.compression = mercury::Compression::kNone;
      return Status::Ok();
    }
    if (name != "1bit" && name != "2bit") {
      return Status::InvalidArgument("compression is '" + name + "', not none, 1bit or 2bit");
    }
    if (info.dtype != mercury::DType::kFloat32) {
      return Status::InvalidArgument("tensor '" + info.name +
                                     "' is not float32: only float32 can be compressed");
    }
    info.compression =
        name == "1bit" ? mercury::Compression::kOneBit : mercury::Compression::kTwoBit;
    info.threshold = threshold;
    return Status::Ok();
  });
}

int mercury_tensor_in_packets(const mercury_tensor* tensor) {
  return tensor->goes_in_packets() ? 1 : 0;
}

int mercury_init(mercury_tensor* tensor, void* src, void* token, int priority) {
  return Guarded([&] {
    return Queue(tensor, src, nullptr, token, priority,
                 [](const Started& op) { op.classic->Init(op.tensor, op.src, op.keep, op.done); });
  });
}

int mercury_push(mercury_tensor* tensor, void* src, void* token, int priority) {
  return Guarded([&] {
    tensor->sum_in_packets = false;
    return Queue(tensor, src, nullptr, token, priority,
                 [](const Started& op) { op.classic->Push(op.tensor, op.src, op.keep, op.done); });
  });
}

int mercury_pull(mercury_tensor* tensor, void* out, void* token, int priority) {
  return Guarded([&] {
    if (!tensor->sum_in_packets) {
      return Queue(tensor, nullptr, out, token, priority, [](const Started& op) {
        op.classic->Pull(op.tensor, op.dst, op.keep, op.done);
      });
    }
    return Queue(tensor, nullptr, out, token, priority,
                 InPackets([](mercury::MercuryWorker* plane, const Started& op) {
                   plane->Fetch(op.packets, op.dst, op.priority, op.keep, op.done,
                                op.classic->TakeNumbers(1));
                 }));
  });
}

int mercury_pushpull(mercury_tensor* tensor, void* src, void* out, void* token, int priority) {
  return Guarded([&] {
    tensor->sum_in_packets = tensor->goes_in_packets();
    if (!tensor->sum_in_packets) {
      return Queue(tensor, src, out, token, priority, [](const Started& op) {
        op.classic->PushPull(op.tensor, op.src, op.dst, op.priority, op.keep, op.done);
      });
    }
    if (Status status = Packets(tensor); !status.ok()) return status;
    return Queue(tensor, src, out, token, priority,
                 InPackets([](mercury::MercuryWorker* plane, const Started& op) {
                   const int number = op.classic->TakeNumbers(2);
                   plane->PushPull(op.packets, op.src, op.dst, op.priority, op.keep, op.done,
                                   number);
                 }));
  });
}

int mercury_command(int head, const char* body, size_t bytes, mercury_ticket** ticket) {
  return Guarded([&] {
    mercury::ClassicWorker* worker;
    Status status = Worker(&worker);
    if (!status.ok()) return status;
    auto fresh = std::make_unique<mercury_ticket>();
    worker->Command(head, std::string(body, bytes), [state = fresh->state](const Status& result) {
      std::lock_guard<std::mutex> lock(state->mutex);
      state->status = result;
      state->done = true;
      state->changed.notify_all();
    });
    *ticket = fresh.release();
    return status;
  });
}

int mercury_push_rows(mercury_tensor* tensor, const int64_t* rows, size_t num_rows,
                      const char* values, uint32_t row_bytes, mercury_ticket** ticket) {
  return Guarded([&] {
    mercury::ClassicWorker* worker;
    Status status = Worker(&worker);
    if (!status.ok()) return status;
    if (row_bytes == 0) return Status::InvalidArgument("rows have no size");
    NoteOnce(tensor);
    auto fresh = std::make_unique<mercury_ticket>();
    fresh->state->row_bytes = row_bytes;
    worker->PushPullRows(tensor->info, rows, num_rows, values, row_bytes,
                         [state = fresh->state](const Status& result, std::vector<Buffer> sets) {
                           std::lock_guard<std::mutex> lock(state->mutex);
                           state->status = result;
                           state->answers = std::move(sets);
                           state->done = true;
                           state->changed.notify_all();
                         });
    *ticket = fresh.release();
    return status;
  });
}

int mercury_ticket_wait(mercury_ticket* ticket, int slice_ms) {
  std::unique_lock<std::mutex> lock(ticket->state->mutex);
  ticket->state->changed.wait_for(lock, std::chrono::milliseconds(slice_ms),
                                  [&] { return ticket->state->done; });
  return Waited(ticket->state->done, ticket->state->status);
}

static int64_t SetCount(const Buffer& set) {
  int64_t count = 0;
  if (set.bytes >= sizeof(count)) std::memcpy(&count, set.data, sizeof(count));
  return count;
}

size_t mercury_ticket_num_rows(const mercury_ticket* ticket) {
  size_t rows = 0;
  for (const Buffer& set : ticket->state->answers) rows += static_cast<size_t>(SetCount(set));
  return rows;
}

void mercury_ticket_rows(const mercury_ticket* ticket, int64_t* rows, char* values) {
  const size_t row_bytes = ticket->state->row_bytes;
  for (const Buffer& set : ticket->state->answers) {
    const auto count = static_cast<size_t>(SetCount(set));
    const char* numbers = set.data + sizeof(int64_t);
    std::memcpy(rows, numbers, count * sizeof(int64_t));
    std::memcpy(values, numbers + count * sizeof(int64_t), count * row_bytes);
    rows += count;
    values += count * row_bytes;
  }
}

void mercury_ticket_free(mercury_ticket* ticket) { delete ticket; }

}  // extern "C"
