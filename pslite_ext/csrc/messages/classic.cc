#include "messages/classic.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/node_name.h"
#include "messages/classic_wire.h"
#include "trace/trace_log.h"
#include "transport/figures.h"

namespace mercury {
namespace {

constexpr int kApp = 0;

ps::SArray<char> Shared(char* data, size_t bytes, std::shared_ptr<void> keep) {
  ps::SArray<char> array;
  array.reset(data, bytes, [keep = std::move(keep)](char* /*data*/) {});
  return array;
}

ClassicWorker::RowsDone WithoutRows(ClassicWorker::Done done) {
  return [done = std::move(done)](const Status& status, const std::vector<Buffer>& /*rows*/) {
    done(status);
  };
}

}  // namespace

struct ClassicWorker::Pending {
  std::shared_ptr<TensorInfo> tensor;  // null for a command
  StoreOperation operation = StoreOperation::kPush;
  bool then_pull = false;
  char* src = nullptr;
  char* dst = nullptr;
  std::shared_ptr<void> keep;
  uint32_t row_bytes = 0;
  std::vector<Piece> pieces;
  std::vector<Buffer> payloads;  // instead of src, one per piece
  std::vector<Buffer> answers;   // instead of dst, one per piece
  std::vector<bool> answered;
  size_t waiting = 0;
  int number = 0;
  uint64_t scheduled = 0;  // its number in the queue; 0: it went at once
  Status status;           // the first bad answer
  RowsDone done;
};

ClassicWorker::ClassicWorker(const ClassicLimits& limits)
    : ps::SimpleApp(kApp, 0), limits_(limits) {
  if (limits_.prophet) {
    schedule_ = std::make_unique<ClassicSchedule>(limits_.profile_steps, limits_.profile_text);
  }
}

ClassicWorker::~ClassicWorker() = default;

void ClassicWorker::Init(std::shared_ptr<TensorInfo> tensor, const char* src,
                         std::shared_ptr<void> keep, Done done) {
  auto op = std::make_unique<Pending>();
  op->tensor = std::move(tensor);
  op->operation = StoreOperation::kInit;
  op->src = const_cast<char*>(src);
  op->keep = std::move(keep);
  op->done = WithoutRows(std::move(done));
  Begin(std::move(op));
}

void ClassicWorker::Push(std::shared_ptr<TensorInfo> tensor, const char* src,
                         std::shared_ptr<void> keep, Done done) {
  auto op = std::make_unique<Pending>();
  op->tensor = std::move(tensor);
  op->src = const_cast<char*>(src);
  op->keep = std::move(keep);
  op->done = WithoutRows(std::move(done));
  Compressed(op.get());
  Begin(std::move(op));
}

void ClassicWorker::Pull(std::shared_ptr<TensorInfo> tensor, char* dst, std::shared_ptr<void> keep,
                         Done done) {
  auto op = std::make_unique<Pending>();
  op->tensor = std::move(tensor);
  op->operation = StoreOperation::kPull;
  op->dst = dst;
  op->keep = std::move(keep);
  op->done = WithoutRows(std::move(done));
  Begin(std::move(op));
}

void ClassicWorker::PushPull(std::shared_ptr<TensorInfo> tensor, const char* src, char* dst,
                             int priority, std::shared_ptr<void> keep, Done done) {
  auto op = std::make_unique<Pending>();
  op->tensor = std::move(tensor);
  op->then_pull = true;
  op->src = const_cast<char*>(src);
  op->dst = dst;
  op->keep = std::move(keep);
  op->done = WithoutRows(std::move(done));
  Compressed(op.get());
  if (schedule_ == nullptr) return Begin(std::move(op));
  Schedule(std::move(op), priority);
}

void ClassicWorker::Schedule(std::unique_ptr<Pending> op, int priority) {
  const TensorInfo& tensor = *op->tensor;
  uint64_t bytes = tensor.bytes();
  if (!op->payloads.empty()) bytes = 0;
  for (const Buffer& payload : op->payloads) bytes += payload.bytes;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    names_.emplace(tensor.key, tensor.name);
  }
  const uint64_t id = op->scheduled = schedule_->NewId();
  const uint64_t key = tensor.key;
  // A function can be copied, and so must be what it holds.
  auto held = std::make_shared<std::unique_ptr<Pending>>(std::move(op));
  schedule_->Add(id, key, bytes, priority, [this, held] { Begin(std::move(*held)); });
}

void ClassicWorker::PushPullRows(std::shared_ptr<TensorInfo> tensor, const int64_t* rows,
                                 size_t num_rows, const char* values, uint32_t row_bytes,
                                 RowsDone done) {
  auto op = std::make_unique<Pending>();
  op->tensor = std::move(tensor);
  op->then_pull = true;
  op->row_bytes = row_bytes;
  op->done = std::move(done);
  op->pieces =
      Partition(op->tensor->key, op->tensor->bytes(), row_bytes, limits_.num_servers,
                limits_.split_bytes, std::max<uint64_t>(limits_.piece_bytes_max, row_bytes));
  size_t row = 0;
  for (const Piece& piece : op->pieces) {
    const auto end_row = static_cast<int64_t>((piece.offset + piece.bytes) / row_bytes);
    const size_t end =
        static_cast<size_t>(std::lower_bound(rows + row, rows + num_rows, end_row) - rows);
    const auto count = static_cast<int64_t>(end - row);
    Buffer set = Buffer::Allocate(sizeof(count) + (end - row) * (sizeof(int64_t) + row_bytes));
    if (set.data == nullptr) {
      return Complete(std::move(op), Status::Exhausted("no memory for a row-sparse push"));
    }
    std::memcpy(set.data, &count, sizeof(count));
    std::memcpy(set.data + sizeof(count), rows + row, (end - row) * sizeof(int64_t));
    std::memcpy(set.data + sizeof(count) + (end - row) * sizeof(int64_t), values + row * row_bytes,
                (end - row) * row_bytes);
    op->payloads.push_back(std::move(set));
    row = end;
  }
  if (row != num_rows) {
    return Complete(std::move(op), Status::InvalidArgument("a row number beyond the tensor"));
  }
  op->answers.resize(op->pieces.size());
  Begin(std::move(op));
}

void ClassicWorker::Command(int head, const std::string& body, Done done) {
  auto op = std::make_unique<Pending>();
  op->done = WithoutRows(std::move(done));
  for (int server = 0; server < limits_.num_servers; ++server) {
    op->pieces.push_back({server, static_cast<uint64_t>(server), 0});
  }
  op->number = head;
  Buffer text = Buffer::Allocate(body.size());
  if (text.data == nullptr) {
    return Complete(std::move(op), Status::Exhausted("no memory for a command"));
  }
  std::memcpy(text.data, body.data(), body.size());
  op->payloads.push_back(std::move(text));
  Begin(std::move(op));
}

// Replaces the payload by its compressed form, if the tensor asks for that.
void ClassicWorker::Compressed(Pending* op) {
  TensorInfo& tensor = *op->tensor;
  if (tensor.compression == Compression::kNone) return;
  op->pieces = Partition(tensor.key, tensor.bytes(), sizeof(float), limits_.num_servers,
                         limits_.split_bytes, limits_.piece_bytes_max);
  tensor.residual.resize(tensor.elements, 0.0F);
  for (const Piece& piece : op->pieces) {
    const size_t elements = piece.bytes / sizeof(float);
    const size_t first = piece.offset / sizeof(float);
    Buffer packed = Buffer::Allocate(sizeof(float) + CompressedBytes(tensor.compression, elements));
    if (packed.data == nullptr) {
      op->status = Status::Exhausted("no memory to compress a gradient");
      return;
    }
    std::memcpy(packed.data, &tensor.threshold, sizeof(float));
    Compress(tensor.compression, tensor.threshold, reinterpret_cast<const float*>(op->src) + first,
             tensor.residual.data() + first, elements,
             reinterpret_cast<uint8_t*>(packed.data) + sizeof(float));
    op->payloads.push_back(std::move(packed));
  }
}

void ClassicWorker::Begin(std::unique_ptr<Pending> op) {
  if (!op->status.ok()) {
    const Status status = op->status;
    return Complete(std::move(op), status);
  }
  if (op->pieces.empty()) {
    op->pieces = Partition(op->tensor->key, op->tensor->bytes(), ElementBytes(op->tensor->dtype),
                           limits_.num_servers, limits_.split_bytes, limits_.piece_bytes_max);
  }
  op->waiting = op->pieces.size();
  op->answered.assign(op->pieces.size(), false);
  if (op->tensor) op->number = TakeNumbers(op->then_pull ? 2 : 1);
  std::unique_lock<std::mutex> lock(mutex_);
  if (!failure_.ok()) {
    const Status status = failure_;
    lock.unlock();
    return Complete(std::move(op), status);
  }
  int slot;
  if (free_slots_.empty()) {
    slot = obj_->NewRequest(ps::kServerGroup);
    if (static_cast<size_t>(slot) >= slots_.size()) slots_.resize(static_cast<size_t>(slot) + 1);
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  Pending& pending = *op;
  slots_[static_cast<size_t>(slot)] = std::move(op);
  // Under the lock, so that no answer can complete it while its messages are still being made.
  SendPieces(slot, pending, pending.operation != StoreOperation::kPull);
}

void ClassicWorker::SendPieces(int slot, const Pending& op, bool push) {
  std::vector<int> messages(static_cast<size_t>(limits_.num_servers), 0);
  for (const Piece& piece : op.pieces) ++messages[static_cast<size_t>(piece.server)];
  for (size_t i = 0; i < op.pieces.size(); ++i) {
    const Piece& piece = op.pieces[i];
    ps::Message message;
    ps::Meta& meta = message.meta;
    meta.app_id = kApp;
    meta.customer_id = 0;
    meta.request = true;
    meta.timestamp = slot;
    meta.recver = NodeId(Role::kServer, piece.server);
    if (!op.tensor) {
      meta.simple_app = true;
      meta.head = op.number;
      meta.body.assign(op.payloads[0].data, op.payloads[0].bytes);
    } else {
      const TensorInfo& tensor = *op.tensor;
      const bool packed = push && op.row_bytes == 0 && !op.payloads.empty();
      meta.push = push;
      meta.head = static_cast<int>(push ? op.operation : StoreOperation::kPull) |
                  messages[static_cast<size_t>(piece.server)] << kHeadBits;
      meta.key = tensor.key;
      meta.addr = piece.offset;
      meta.val_len = static_cast<int>(piece.bytes);
      meta.option = static_cast<int>(tensor.dtype) |
                    static_cast<int>(packed ? tensor.compression : Compression::kNone) << 8 |
                    (tensor.asynchronous ? kAsynchronousBit : 0);
      meta.recv_key = tensor.index;
      meta.push_pull_operation = op.number + (op.then_pull && !push ? 1 : 0);
      message.AddData(ps::SArray<ps::Key>(std::vector<ps::Key>{tensor.key, op.row_bytes}));
      if (!push) {
        message.AddData(ps::SArray<char>());
      } else if (!op.payloads.empty()) {
        message.AddData(Shared(op.payloads[i].data, op.payloads[i].bytes, op.payloads[i].owner));
      } else {
        message.AddData(Shared(op.src + piece.offset, piece.bytes, op.keep));
      }
    }
    ps::Postoffice::Get()->van()->SendMsg(message);
  }
}

// Runs on ps-lite's customer thread.
void ClassicWorker::Process(const ps::Message& message) {
  if (message.meta.request) return;  // nobody asks a worker
  std::unique_lock<std::mutex> lock(mutex_);
  const auto slot = static_cast<size_t>(message.meta.timestamp);
  if (slot >= slots_.size() || !slots_[slot]) return;  // failed already
  Pending& op = *slots_[slot];
  const bool last = Take(message, &op);
  if (!op.status.ok()) {
    // At once: the other answers may never come. The slot is not used again, for they still may.
    std::unique_ptr<Pending> failed = std::move(slots_[slot]);
    lock.unlock();
    const Status status = failed->status;
    return Complete(std::move(failed), status);
  }
  if (!last) return;
  if (op.then_pull && message.meta.push) {
    if (op.scheduled != 0) schedule_->Confirmed(op.scheduled);
    op.waiting = op.pieces.size();
    op.answered.assign(op.pieces.size(), false);
    return SendPieces(static_cast<int>(slot), op, false);
  }
  std::unique_ptr<Pending> finished = std::move(slots_[slot]);
  free_slots_.push_back(static_cast<int>(slot));
  lock.unlock();
  Complete(std::move(finished), Status::Ok());
}

bool ClassicWorker::Take(const ps::Message& message, Pending* op) {
  const ps::Meta& meta = message.meta;
  const int server = RankOf(meta.sender);
  size_t i = 0;
  if (!op->tensor) {
    i = static_cast<size_t>(server);
  } else {
    const auto piece =
        std::lower_bound(op->pieces.begin(), op->pieces.end(), meta.addr,
                         [](const Piece& p, uint64_t offset) { return p.offset < offset; });
    i = static_cast<size_t>(piece - op->pieces.begin());
    if (meta.key != op->tensor->key) return false;
  }
  if (i >= op->pieces.size() || op->answered[i] || op->pieces[i].server != server) return false;
  const Piece& piece = op->pieces[i];
  if (op->tensor) {
    if (piece.offset != meta.addr || message.data.size() < 2) return false;
    const ps::SArray<char>& payload = message.data[1];
    const bool pulling = op->operation == StoreOperation::kPull || op->then_pull;
    if (pulling && !meta.push && meta.option == 0) {
      if (op->row_bytes != 0) {
        const uint64_t end = piece.offset + piece.bytes;
        const SparseSum set(op->tensor->dtype, op->row_bytes,
                            static_cast<int64_t>(piece.offset / op->row_bytes),
                            static_cast<int64_t>(end / op->row_bytes) - 1);
        size_t count;
        op->status = set.Check(payload.data(), payload.size(), &count);
        if (!op->status.ok()) {
          op->status.message = NodeName(meta.sender) + " answered with " + op->status.message;
        }
        auto owner = std::make_shared<ps::SArray<char>>(payload);
        op->answers[i] = {owner, owner->data(), owner->size()};
      } else if (payload.size() != piece.bytes) {
        op->status = Status::Corrupt(NodeName(meta.sender) + " answered with " +
                                     std::to_string(payload.size()) + " bytes instead of " +
                                     std::to_string(piece.bytes));
      } else if (piece.bytes != 0) {
        std::memcpy(op->dst + piece.offset, payload.data(), piece.bytes);
      }
    } else if (meta.option != 0 && op->status.ok()) {
      const bool known = meta.option > 0 && meta.option <= static_cast<int>(Code::kInternal);
      op->status = {known ? static_cast<Code>(meta.option) : Code::kInternal,
                    "tensor '" + op->tensor->name + "' on " + NodeName(meta.sender) + ": " +
                        std::string(payload.data(), payload.size())};
    }
  }
  op->answered[i] = true;
  return --op->waiting == 0;
}

void ClassicWorker::Complete(std::unique_ptr<Pending> op, const Status& status) {
  if (op->scheduled != 0) schedule_->Done(op->scheduled);
  op->done(status, std::move(op->answers));
}

void ClassicWorker::Fail(const Status& status) {
  std::vector<std::unique_ptr<Pending>> failed;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.ok()) return;
    failure_ = status;
    for (auto& op : slots_) {
      if (op) failed.push_back(std::move(op));
    }
  }
  for (auto& op : failed) Complete(std::move(op), status);
  if (schedule_ != nullptr) schedule_->Flush();
}

std::string ClassicWorker::Figures(int rank) {
  if (schedule_ == nullptr) return "{}";
  LinkFigures all;
  all.peer = "all servers";
  all.blocks = schedule_->blocks();
  return FiguresJson("worker", rank, Name(PolicyKind::kProphet), {all},
                     ProfileTotals(schedule_->profile_figures()));
}

std::string ClassicWorker::Profile() {
  if (schedule_ == nullptr) return "";
  std::unordered_map<uint64_t, std::string> names;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    names = names_;
  }
  return schedule_->Profile([&](uint64_t key) { return names[key]; });
}

ClassicServer::ClassicServer(int num_workers, uint64_t bytes_max)
    : store_(num_workers, bytes_max), app_(std::make_unique<ps::KVServer<char>>(kApp)) {
  // ps-lite's server hides the handler of commands behind that of pushes and pulls.
  static_cast<ps::SimpleApp&>(*app_).set_request_handle(
      [](const ps::SimpleData& command, ps::SimpleApp* app) {
        TraceLog* log = TraceLog::Started();
        if (command.head == kTraceSwitchHead && log != nullptr) log->Switch(command.body != "off");
        app->Response(command);
      });
  app_->set_request_handle([this](const ps::KVMeta& meta, const ps::KVPairs<char>& data,
                                  ps::KVServer<char>* /*app*/) { Handle(meta, data); });
}

ClassicServer::~ClassicServer() = default;

void ClassicServer::Handle(const ps::KVMeta& meta, const ps::KVPairs<char>& data) {
  if (RoleOf(meta.sender) != Role::kWorker) return;
  StoreRequest request;
  request.worker = RankOf(meta.sender);
  request.operation = static_cast<StoreOperation>(meta.cmd & ((1 << kHeadBits) - 1));
  request.key = meta.key;
  request.offset = meta.addr;
  request.bytes = static_cast<uint64_t>(std::max(meta.val_len, 0));
  request.dtype = static_cast<DType>(meta.option & 0xff);
  request.compression = static_cast<Compression>(meta.option >> 8 & 0xff);
  request.asynchronous = (meta.option & kAsynchronousBit) != 0;
  request.row_bytes = data.keys.size() > 1 ? static_cast<uint32_t>(data.keys[1]) : 0;
  auto owner = std::make_shared<ps::SArray<char>>(data.vals);
  request.payload = {owner, owner->data(), owner->size()};
  std::vector<StoreReply> replies;
  std::lock_guard<std::mutex> lock(mutex_);
  request.ticket = next_ticket_++;
  open_.emplace(request.ticket, meta);
  store_.Handle(std::move(request), &replies);
  Send(replies);
}

void ClassicServer::Departed(int worker) {
  std::vector<StoreReply> replies;
  std::lock_guard<std::mutex> lock(mutex_);
  store_.Departed(worker, &replies);
  Send(replies);
}

// Under the lock: the replies of two requests keep their order.
void ClassicServer::Send(const std::vector<StoreReply>& replies) {
  for (const StoreReply& reply : replies) {
    const auto it = open_.find(reply.ticket);
    ps::KVMeta meta = it->second;
    open_.erase(it);
    meta.option = static_cast<int>(reply.status.code);
    ps::KVPairs<char> data;
    data.keys = ps::SArray<ps::Key>(std::vector<ps::Key>{meta.key});
    if (reply.status.ok()) {
      data.vals = Shared(reply.value.data, reply.value.bytes, reply.value.owner);
    } else {
      const std::string& text = reply.status.message;
      data.vals.CopyFrom(text.data(), text.size());
    }
    app_->Response(meta, data);
  }
}

}  // namespace mercury
