// Arguments in, Status out: a Status becomes a number and the calling thread's last error.
#include "process/c_api.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "process/ended_threads.h"
#include "process/mxnet_engine.h"
#include "process/node.h"
#include "process/returned.h"
#include "sums/codec.h"
#include "worker/plain_memory.h"
#include "worker/ticket.h"

using mercury::Guarded;
using mercury::LastFailure;
using mercury::Node;
using mercury::Operation;
using mercury::Return;
using mercury::Status;
using mercury::Text;
using mercury::Worker;

struct mercury_tensor {
  std::shared_ptr<mercury::Tensor> its;
};
struct mercury_ticket {
  mercury::Ticket its;
};
struct mercury_work {
  std::unique_ptr<mercury::MemoryWork> its;
  std::shared_ptr<mercury::Tensor> tensor;
};

struct mercury_chunks {
  std::shared_ptr<mercury::ArrivalQueue> its;
};

static_assert(MERCURY_CHUNKS_OVER == mercury::ArrivalQueue::kOver);
static_assert(MERCURY_SUM == static_cast<int>(Operation::Kind::kSum));
static_assert(MERCURY_PUSH == static_cast<int>(Operation::Kind::kPush));
static_assert(MERCURY_PULL == static_cast<int>(Operation::Kind::kPull));
static_assert(MERCURY_FIRST_VALUE == static_cast<int>(Operation::Kind::kFirstValue));

namespace {

int Waited(bool over, const Status& status) { return over ? Return(status) : MERCURY_NOT_YET; }

// `body` with the job's worker, unless there is none or the job has failed.
template <typename Body>
int WithWorker(const Body& body) {
  return Guarded([&] {
    Worker* worker = nullptr;
    const Status status = Node::Get().worker(&worker);
    return status.ok() ? body(worker) : status;
  });
}

// What workers disagree on about a tensor, before what came of that. The gate may not have heard
// yet.
Status OfTensor(const mercury::Tensor& tensor, const Status& status) {
  if (tensor.gate == nullptr) return status;
  const Status refusal = tensor.gate->refusal();
  return refusal.ok() ? Worker::AsSeenBy(tensor.gate->about(), status) : refusal;
}

// A work of `submit(worker, &work)` on the tensor.
template <typename Submit>
int SubmitWork(const mercury_tensor* tensor, mercury_work** work, const Submit& submit) {
  return Guarded([&] {
    auto fresh = std::make_unique<mercury_work>();
    fresh->tensor = tensor->its;
    Worker* worker = nullptr;
    Status status = Node::Get().worker(&worker);
    if (status.ok()) status = submit(worker, &fresh->its);
    if (!status.ok()) return OfTensor(*tensor->its, status);
    *work = fresh.release();
    return status;
  });
}

mercury_ticket* Submitted(Worker* worker, std::shared_ptr<Operation> op) {
  auto ticket = std::make_unique<mercury_ticket>(mercury_ticket{mercury::Ticket(op.get())});
  worker->Submit(std::move(op));
  return ticket.release();
}

}  // namespace

extern "C" {

void mercury_last_failure(mercury_failure* failure) {
  const Status& status = LastFailure();
  const mercury::Blame& blame = status.blame();
  const bool named = !blame.parties.empty() && blame.fault != mercury::Blame::kApart;
  *failure = {static_cast<int>(status.code()),
              status.number(),
              named ? static_cast<int>(blame.parties[0].role) : -1,
              named ? blame.parties[0].rank : 0,
              status.subject().of,
              status.subject().key,
              Text([&] { return status.text(); }, "")};
}

void mercury_word_failures_as(const char* text) {
  static const char* words;
  words = text;
  mercury::SetWording([](const Status& /*status*/) { return std::string(words); });
}

int mercury_start(const char* const* names, const char* const* values, size_t count) {
  return Guarded([&] {
    mercury::Settings settings;
    std::set<std::string> told;
    for (size_t i = 0; i < count; ++i) {
      const Status status = mercury::SetSetting(names[i], values[i], &settings);
      if (!status.ok()) return status;
      told.insert(names[i]);
    }
    return Node::Get().Start(settings, told);
  });
}

const char* mercury_wire(void) {
  return Text([] { return Node::Get().Wire(); }, "");
}

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
  return WithWorker([](Worker* /*worker*/) {
    Node::Get().EnterBarrier();
    return Status::Ok();
  });
}

int mercury_wait_barrier(int slice_ms) {
  Status status;
  const bool over = Node::Get().WaitBarrier(slice_ms, &status);
  return Waited(over, status);
}

int mercury_check(void) { return Return(Node::Get().failure()); }
int mercury_failed(void) { return Node::Get().failed() ? 1 : 0; }
int mercury_failed_elsewhere(void) { return Node::Get().failed_elsewhere() ? 1 : 0; }
void mercury_finish(const char* reason, int code, int about, uint64_t key) {
  Status why;
  if (*reason != '\0') {
    why = Status::PeerLost(reason)
              .Of(static_cast<mercury::Code>(code))
              .About({static_cast<mercury::Subject::Kind>(about), key, ""});
  }
  Node::Get().Finish(why);
}
int mercury_other_ended(int is_worker, int rank_hint, const char* how, int failed) {
  const mercury::Role role = is_worker != 0 ? mercury::Role::kWorker : mercury::Role::kServer;
  return Node::Get().OtherEnded({role, rank_hint, how, failed != 0}) ? 1 : 0;
}
int mercury_awaits_late(void) { return Node::Get().awaits_late() ? 1 : 0; }
void mercury_finish_at_exit(int code, int over_chosen) {
  Node::Get().FinishAtExit(code, over_chosen != 0);
}
void mercury_say_at_exit(const char* line) {
  on_exit(
      [](int status, void* text) {
        const std::unique_ptr<std::string> said(static_cast<std::string*>(text));
        if (status == 0) std::fprintf(stderr, "%s\n", said->c_str());
      },
      new std::string(line));
}
void mercury_park_ended_threads(void) { mercury::ParkEndedThreads(); }
int mercury_rank(void) { return Node::Get().rank(); }
int mercury_local_rank(int* size) {
  const std::vector<int> beside = Node::Get().beside();
  *size = static_cast<int>(beside.size());
  return static_cast<int>(std::find(beside.begin(), beside.end(), Node::Get().rank()) -
                          beside.begin());
}
int mercury_workers(void) { return Node::Get().workers(); }
int mercury_elastic(void) { return Node::Get().elastic() ? 1 : 0; }
int mercury_num_lost(int group) { return Node::Get().NumLost(group); }

const char* mercury_figures(void) {
  return Text([] { return Node::Get().Figures(); }, "{}");
}

const char* mercury_waiting(void) {
  return Text([] { return Node::Get().Waiting(); }, "");
}
void mercury_dump_to(int fd) { Node::Get().DumpTo(fd); }
void mercury_dumped(void) { Node::Get().Dumped(); }

int mercury_attach_engine(void* libmxnet) {
  return Guarded([&] { return mercury::AttachEngine(libmxnet); });
}

int mercury_same_variable(void* a, void* b) { return mercury::SameVariable(a, b) ? 1 : 0; }

int mercury_engine_failure(size_t index) {
  return Guarded([index] { return mercury::EngineFailure(index); });
}

int mercury_announce(uint64_t key, const char* name, int priority) {
  return WithWorker([&](Worker* worker) {
    worker->tensors().Announce(key, name, priority);
    return Status::Ok();
  });
}

int mercury_tensor_new(uint64_t key, uint64_t parameter, const char* name, const char* label,
                       const char* dtype, const uint64_t* shape, size_t dimensions,
                       int asynchronous, mercury_tensor** tensor) {
  return WithWorker([&](Worker* worker) {
    mercury::TensorTraits traits;
    traits.key = key;
    traits.name = name;
    traits.label = label;
    traits.shape.assign(shape, shape + dimensions);
    traits.asynchronous = asynchronous != 0;
    if (!mercury::ParseDType(dtype, &traits.dtype)) {
      return Status::InvalidArgument("tensor '" + traits.name + "' is of type " + dtype +
                                     ", which cannot be summed");
    }
    auto fresh = std::make_unique<mercury_tensor>();
    const Status status = worker->OpenTensor(std::move(traits), parameter, &fresh->its);
    if (status.ok()) *tensor = fresh.release();
    return status;
  });
}

void mercury_tensor_free(mercury_tensor* tensor) { delete tensor; }

int mercury_tensor_set_compression(mercury_tensor* tensor, const char* kind, float threshold) {
  return WithWorker(
      [&](Worker* worker) { return worker->SetCompression(tensor->its.get(), kind, threshold); });
}

void mercury_tensor_set_use(mercury_tensor* tensor, const char* use) { tensor->its->use = use; }

int mercury_tensor_check(const mercury_tensor* tensor) {
  return Guarded([&] { return OfTensor(*tensor->its, Node::Get().failure()); });
}

int mercury_tensor_agreed(const mercury_tensor* tensor) {
  return tensor->its->gate->open() ? 1 : 0;
}

int mercury_tensor_workers(const mercury_tensor* tensor, uint64_t sum, int slice_ms, int* workers) {
  if (tensor->its->WorkersIn(sum, slice_ms, workers)) return 0;
  const int failed = mercury_tensor_check(tensor);
  return failed != 0 ? failed : MERCURY_NOT_YET;
}

size_t mercury_element_bytes(const char* dtype) {
  mercury::DType parsed;
  return mercury::ParseDType(dtype, &parsed) ? mercury::ElementBytes(parsed) : 0;
}

int mercury_submit(mercury_tensor* tensor, int kind, void* src, void* out, void* token,
                   int priority) {
  return WithWorker([&](Worker* worker) {
    // Known already: it need not be queued to be told at the next read. A first value comes before
    // a barrier that all workers must reach.
    Status refusal = kind == MERCURY_FIRST_VALUE ? Status::Ok() : tensor->its->gate->refusal();
    if (!refusal.ok()) return refusal;
    auto op = worker->NewOperation(static_cast<Operation::Kind>(kind), tensor->its, priority);
    return mercury::SubmitWhenReady(worker, std::move(op), src, out, token);
  });
}

int mercury_submit_memory(mercury_tensor* tensor, int kind, void* src, void* out, size_t bytes,
                          int priority, mercury_work** work) {
  return SubmitWork(tensor, work, [&](Worker* worker, std::unique_ptr<mercury::MemoryWork>* its) {
    return mercury::SubmitMemory(worker, tensor->its, static_cast<Operation::Kind>(kind),
                                 {src, bytes}, {out, bytes}, priority, its);
  });
}

mercury_chunks* mercury_chunks_new(void) {
  return new mercury_chunks{std::make_shared<mercury::ArrivalQueue>()};
}

int mercury_chunks_pop(mercury_chunks* chunks, int slice_ms, uint64_t* sum, uint64_t* chunk) {
  mercury::ArrivalQueue::Item item;
  if (!chunks->its->Pop(slice_ms, &item)) return MERCURY_NOT_YET;
  *sum = item.sum;
  *chunk = item.chunk;
  return 0;
}

void mercury_chunks_free(mercury_chunks* chunks) { delete chunks; }

int mercury_submit_chunks(mercury_tensor* tensor, void* memory, size_t bytes, int priority,
                          mercury_chunks* chunks, size_t chunk_bytes, uint64_t sum,
                          mercury_work** work) {
  return SubmitWork(tensor, work, [&](Worker* worker, std::unique_ptr<mercury::MemoryWork>* its) {
    return mercury::SubmitChunks(worker, tensor->its, {memory, bytes}, priority,
                                 {chunk_bytes, chunks->its, sum}, its);
  });
}

void mercury_work_ready(mercury_work* work, size_t bytes) { work->its->Ready(bytes); }

int mercury_work_wait(const mercury_work* work, int slice_ms) {
  Status status;
  const bool over = work->its->ticket().Wait(slice_ms, &status);
  return Waited(over, status.ok() ? status : OfTensor(*work->tensor, status));
}

int mercury_work_released(const mercury_work* work) { return work->its->released() ? 1 : 0; }

void mercury_work_free(mercury_work* work) { delete work; }

int mercury_command(int head, const char* body, size_t bytes, mercury_ticket** ticket) {
  return WithWorker([&](Worker* worker) {
    auto op = worker->NewOperation(Operation::Kind::kCommand, nullptr, 0);
    op->command.head = head;
    op->command.body.assign(body, bytes);
    *ticket = Submitted(worker, std::move(op));
    return Status::Ok();
  });
}

int mercury_push_rows(mercury_tensor* tensor, const int64_t* rows, size_t num_rows,
                      const char* values, uint32_t row_bytes, mercury_ticket** ticket) {
  return WithWorker([&](Worker* worker) {
    const Operation::Rows given{rows, num_rows, values, row_bytes};
    Status status = Worker::CheckRows(*tensor->its, given);
    if (!status.ok()) return status;
    auto op = worker->NewOperation(Operation::Kind::kRows, tensor->its, 0);
    op->rows = given;
    *ticket = Submitted(worker, std::move(op));
    return Status::Ok();
  });
}

int mercury_claim_model(uint64_t subject, const char* keys, mercury_ticket** ticket) {
  return WithWorker([&](Worker* worker) {
    std::shared_ptr<Operation> claim;
    const Status status = worker->NewModelClaim(subject, keys, &claim);
    if (status.ok()) *ticket = Submitted(worker, std::move(claim));
    return status;
  });
}

int mercury_claim_steps(uint64_t subject, const char* told, mercury_ticket** ticket) {
  return WithWorker([&](Worker* worker) {
    *ticket = Submitted(worker, worker->NewStepsClaim(subject, told));
    return Status::Ok();
  });
}

int mercury_trace_switch(int on, mercury_ticket** ticket) {
  return WithWorker([&](Worker* worker) -> Status {
    mercury::TraceLog* log = mercury::TraceLog::Started();
    if (log == nullptr) {
      return Status::InvalidArgument(
          "this job keeps no trace to switch on or off: set MERCURY_TRACE_DIR for all its nodes");
    }
    log->Switch(on != 0);
    auto op = worker->NewOperation(Operation::Kind::kCommand, nullptr, 0);
    op->command.head = mercury::kTraceSwitchHead;
    op->command.body = on != 0 ? "on" : "off";
    *ticket = Submitted(worker, std::move(op));
    return Status::Ok();
  });
}

int mercury_ticket_wait(mercury_ticket* ticket, int slice_ms) {
  Status status;
  const bool over = ticket->its.Wait(slice_ms, &status);
  return Waited(over, status);
}

size_t mercury_ticket_num_rows(const mercury_ticket* ticket) { return ticket->its.num_rows(); }

void mercury_ticket_rows(const mercury_ticket* ticket, int64_t* rows, char* values) {
  ticket->its.CopyRows(rows, values);
}

void mercury_ticket_free(mercury_ticket* ticket) { delete ticket; }

const char* mercury_prophet_profile(void) {
  return Text([] { return Node::Get().Profile(); }, "");
}

}  // extern "C"
