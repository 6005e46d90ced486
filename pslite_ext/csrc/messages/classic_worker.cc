#include "messages/classic_worker.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/node_name.h"
#include "messages/classic_value.h"
#include "messages/classic_wire.h"
#include "messages/shared_array.h"
#include "sums/sparse_sum.h"
#include "transport/figures.h"

namespace mercury {
namespace {

constexpr int64_t kTurnUs = 1000000;  // of looking for what has waited for long

StoreOperation PhaseOf(Operation::Kind kind) {
  if (kind == Operation::Kind::kFirstValue) return StoreOperation::kInit;
  const bool pulls = kind == Operation::Kind::kPull;
  return pulls ? StoreOperation::kPull : StoreOperation::kPush;
}

// What is asked of each piece's server: to take what this worker has (or a command), to give what
// it has, or both. Only who asks for a value has memory for it.
bool Pushes(const Operation& op) { return PhaseOf(op.kind) != StoreOperation::kPull; }
bool Pulls(const Operation& op) { return op.pulls_sum() || !Pushes(op); }

}  // namespace

struct ClassicWorker::Pending {
  std::shared_ptr<Operation> op;
  std::vector<Piece> pieces;
  std::vector<Buffer> payloads;  // instead of the operation's src, one per piece
  // Which pieces' pushes are confirmed, and which pulls answered.
  std::vector<bool> confirmed, answered;
  size_t unconfirmed = 0, unanswered = 0;
  uint64_t scheduled = 0;  // its number in the queue; 0: it went at once
  int64_t since_us = 0, moved_us = 0, ask_at_us = 0;
  Status status;  // the first bad answer
};

ClassicWorker::ClassicWorker(const ClassicOptions& options)
    : ps::SimpleApp(kClassicApp, 0),
      options_(options),
      errands_(
          {options.shares, options.stall, options.stalled, options.trace},
          [this](int server, const JobLetter& letter) { SendLetter(server, letter); },
          [](const std::string& line) { Log(LogLevel::kWarning, line); }),
      letters_(obj_->NewRequest(ps::kServerGroup)) {
  if (options_.prophet) {
    schedule_ = std::make_unique<ClassicSchedule>(options_.profile_steps, options_.profile_text);
  }
  if (options_.stall.warn_us != 0) watch_ = std::thread(&ClassicWorker::WatchForStalls, this);
}

ClassicWorker::~ClassicWorker() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    leaving_ = true;
  }
  leaves_.notify_all();
  if (watch_.joinable()) watch_.join();
}

void ClassicWorker::Submit(std::shared_ptr<Operation> op) {
  auto pending = std::make_unique<Pending>();
  pending->op = std::move(op);
  const Operation::Kind kind = pending->op->kind;
  Status status;
  switch (kind) {
    case Operation::Kind::kCommand:
      return SubmitCommand(std::move(pending->op));
    case Operation::Kind::kRows:
      status = SetsOfRows(pending.get());
      break;
    case Operation::Kind::kSum:
    case Operation::Kind::kPush:
      if (pending->op->codec != nullptr) status = Compressed(pending.get());
      break;
    case Operation::Kind::kPull:
    case Operation::Kind::kFirstValue:
      break;
  }
  if (!status.ok()) return Complete(std::move(pending), status);
  if (kind == Operation::Kind::kSum && schedule_ != nullptr) return Schedule(std::move(pending));
  Begin(std::move(pending));
}

void ClassicWorker::SubmitCommand(std::shared_ptr<Operation> op) {
  std::vector<Over> over;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_.ok()) {
      errands_.Begin(op, NowUs(), &over);
    } else {
      over.push_back({std::move(op), failure_});
    }
  }
  FinishAll(over);
}

void ClassicWorker::SendLetter(int server, const JobLetter& letter) {
  ps::Message message;
  ps::Meta& meta = message.meta;
  meta.app_id = kClassicApp;
  meta.customer_id = 0;
  meta.request = true;
  meta.simple_app = true;
  meta.timestamp = letters_;
  meta.recver = NodeId(Role::kServer, server);
  meta.head = kLetterHead;
  meta.body = Encode(letter);
  ps::Postoffice::Get()->van()->SendMsg(message);
}

void ClassicWorker::Schedule(std::unique_ptr<Pending> pending) {
  const TensorTraits& tensor = pending->op->tensor->traits;
  uint64_t bytes = pending->payloads.empty() ? tensor.bytes() : 0;
  for (const Buffer& payload : pending->payloads) bytes += payload.bytes;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    names_.emplace(tensor.key, tensor.name);
  }
  const uint64_t id = pending->scheduled = schedule_->NewId();
  const int32_t priority = pending->op->priority;
  // A function can be copied, and so must be what it holds.
  auto held = std::make_shared<std::unique_ptr<Pending>>(std::move(pending));
  schedule_->Add(id, tensor.key, bytes, priority, [this, held] { Begin(std::move(*held)); });
}

std::vector<Piece> ClassicWorker::PiecesOf(const Tensor& tensor, size_t element_bytes,
                                           uint64_t piece_bytes_max) const {
  return Partition(tensor.traits.key, tensor.traits.bytes(), element_bytes, options_.shares,
                   options_.split_bytes, std::max<uint64_t>(piece_bytes_max, element_bytes));
}

Status ClassicWorker::SetsOfRows(Pending* pending) const {
  const Operation::Rows& rows = pending->op->rows;
  if (rows.row_bytes == 0) return Status::InvalidArgument("rows have no size");
  const uint64_t bytes_max = RowsBytesMax(rows.row_bytes, options_.message_bytes_max);
  if (bytes_max == 0) {
    return Status::InvalidArgument("a row of " + std::to_string(rows.row_bytes) +
                                   " bytes: with its number it may have no more than " +
                                   std::to_string(options_.message_bytes_max));
  }
  pending->pieces = PiecesOf(*pending->op->tensor, rows.row_bytes, bytes_max);
  size_t row = 0;
  for (const Piece& piece : pending->pieces) {
    const auto end_row = static_cast<int64_t>((piece.offset + piece.bytes) / rows.row_bytes);
    const size_t end = static_cast<size_t>(
        std::lower_bound(rows.numbers + row, rows.numbers + rows.count, end_row) - rows.numbers);
    Buffer set = Buffer::Allocate(SetBytes(end - row, rows.row_bytes));
    if (set.data == nullptr) return Status::Exhausted("no memory for a row-sparse push");
    EncodeSet(rows.numbers + row, rows.values + row * rows.row_bytes, end - row, rows.row_bytes,
              set.data);
    pending->payloads.push_back(std::move(set));
    row = end;
  }
  if (row != rows.count) return Status::InvalidArgument("a row number beyond the tensor");
  pending->op->answers.resize(pending->pieces.size());
  return Status::Ok();
}

Status ClassicWorker::Compressed(Pending* pending) const {
  const Operation& op = *pending->op;
  Tensor& tensor = *op.tensor;
  pending->pieces = PiecesOf(tensor, sizeof(float), options_.piece_bytes_max);
  tensor.residual.resize(tensor.traits.elements(), 0.0F);
  for (const Piece& piece : pending->pieces) {
    const size_t elements = piece.bytes / sizeof(float);
    const size_t first = piece.offset / sizeof(float);
    Buffer packed = Buffer::Allocate(sizeof(float) + op.codec->bytes(elements));
    if (packed.data == nullptr) return Status::Exhausted("no memory to compress a gradient");
    std::memcpy(packed.data, &op.parameter, sizeof(float));
    op.codec->encode(op.parameter, op.src + piece.offset, tensor.residual.data() + first, elements,
                     packed.data + sizeof(float));
    pending->payloads.push_back(std::move(packed));
  }
  return Status::Ok();
}

void ClassicWorker::Begin(std::unique_ptr<Pending> pending) {
  Operation& op = *pending->op;
  if (pending->pieces.empty()) {
    pending->pieces =
        PiecesOf(*op.tensor, ElementBytes(op.tensor->traits.dtype), options_.piece_bytes_max);
  }
  const size_t pieces = pending->pieces.size();
  pending->unconfirmed = Pushes(op) ? pieces : 0;
  pending->unanswered = Pulls(op) ? pieces : 0;
  pending->confirmed.assign(pieces, !Pushes(op));
  pending->answered.assign(pieces, !Pulls(op));
  pending->since_us = pending->moved_us = NowUs();
  pending->ask_at_us = options_.stall.FirstQuestion(pending->since_us);
  if (options_.numbers != nullptr) op.number = options_.numbers->Take(op);
  std::unique_lock<std::mutex> lock(mutex_);
  if (!failure_.ok()) {
    const Status status = failure_;
    lock.unlock();
    return Complete(std::move(pending), status);
  }
  int timestamp;
  if (free_timestamps_.empty()) {
    timestamp = obj_->NewRequest(ps::kServerGroup);
    if (static_cast<size_t>(timestamp) >= pending_.size())
      pending_.resize(static_cast<size_t>(timestamp) + 1);
  } else {
    timestamp = free_timestamps_.back();
    free_timestamps_.pop_back();
  }
  const Pending& kept = *pending;
  pending_[static_cast<size_t>(timestamp)] = std::move(pending);
  // Under the lock, so that no answer can complete it while its messages are still being made.
  SendAll(timestamp, kept);
}

void ClassicWorker::SendAll(int timestamp, const Pending& pending) {
  std::vector<int> messages(static_cast<size_t>(options_.shares.servers()), 0);
  for (const Piece& piece : pending.pieces) ++messages[static_cast<size_t>(piece.server)];
  for (size_t i = 0; i < pending.pieces.size(); ++i) {
    const int shared_by = messages[static_cast<size_t>(pending.pieces[i].server)];
    if (Pushes(*pending.op)) SendPiece(timestamp, pending, i, shared_by, true);
    if (Pulls(*pending.op)) SendPiece(timestamp, pending, i, shared_by, false);
  }
}

void ClassicWorker::SendPiece(int timestamp, const Pending& pending, size_t i, int messages,
                              bool push) {
  const Operation& op = *pending.op;
  const Piece& piece = pending.pieces[i];
  ps::Message message;
  ps::Meta& meta = message.meta;
  meta.app_id = kClassicApp;
  meta.customer_id = 0;
  meta.request = true;
  meta.timestamp = timestamp;
  meta.recver = NodeId(Role::kServer, piece.server);
  const TensorTraits& tensor = op.tensor->traits;
  const bool rows = op.kind == Operation::Kind::kRows;
  const bool packed = push && !rows && !pending.payloads.empty();
  meta.push = push;
  meta.head = static_cast<int>(push ? PhaseOf(op.kind) : StoreOperation::kPull) | messages
                                                                                      << kHeadBits;
  meta.key = tensor.key;
  meta.addr = piece.offset;
  meta.val_len = static_cast<int>(piece.bytes);
  meta.option = static_cast<int>(tensor.dtype) | (packed ? op.codec->number : 0) << 8 |
                (tensor.asynchronous ? kAsynchronousBit : 0) |
                (!push && Pushes(op) ? kBehindPushBit : 0);
  meta.recv_key = tensor.index;
  meta.push_pull_operation = op.number + (op.pulls_sum() && !push ? 1 : 0);
  const ps::Key row_bytes = rows ? op.rows.row_bytes : 0;
  message.AddData(ps::SArray<ps::Key>(std::vector<ps::Key>{tensor.key, row_bytes}));
  if (!push) {
    message.AddData(ps::SArray<char>());
  } else if (!pending.payloads.empty()) {
    const Buffer& payload = pending.payloads[i];
    message.AddData(Shared(payload.data, payload.bytes, payload.owner));
  } else {
    message.AddData(Shared(const_cast<char*>(op.src) + piece.offset, piece.bytes, pending.op));
  }
  ps::Postoffice::Get()->van()->SendMsg(message);
}

// Runs on ps-lite's customer thread.
void ClassicWorker::Process(const ps::Message& message) {
  // Nobody asks a worker, and servers alone answer.
  if (message.meta.request || RoleOf(message.meta.sender) != Role::kServer) return;
  std::unique_lock<std::mutex> lock(mutex_);
  if (message.meta.simple_app) {
    std::vector<Over> over;
    const Status heard =
        errands_.Hear(RankOf(message.meta.sender), message.meta.body, NowUs(), &over);
    lock.unlock();
    if (!heard.ok()) Log(LogLevel::kWarning, NodeName(message.meta.sender) + ": " + heard.text());
    return FinishAll(over);
  }
  const auto timestamp = static_cast<size_t>(message.meta.timestamp);
  if (timestamp >= pending_.size() || !pending_[timestamp]) return;  // failed already
  Pending& pending = *pending_[timestamp];
  const bool unconfirmed = pending.unconfirmed != 0;
  const bool last = Take(message, &pending);
  if (!pending.status.ok()) {
    // Without the other answers, which may never come. The timestamp is not used again, for they
    // still may. What is still queued for other servers is sent as it is.
    const std::unique_ptr<Pending> failed = std::move(pending_[timestamp]);
    given_up_.Add(failed->op, failed->status);
    lock.unlock();
    if (failed->scheduled != 0) schedule_->Done(failed->scheduled);
    return;
  }
  if (pending.scheduled != 0 && unconfirmed && pending.unconfirmed == 0) {
    schedule_->Confirmed(pending.scheduled);
  }
  if (!last) return;
  std::unique_ptr<Pending> finished = std::move(pending_[timestamp]);
  free_timestamps_.push_back(static_cast<int>(timestamp));
  lock.unlock();
  Complete(std::move(finished), Status::Ok());
}

bool ClassicWorker::Take(const ps::Message& message, Pending* pending) {
  const ps::Meta& meta = message.meta;
  const Operation& op = *pending->op;
  const int server = RankOf(meta.sender);
  const auto found =
      std::lower_bound(pending->pieces.begin(), pending->pieces.end(), meta.addr,
                       [](const Piece& p, uint64_t offset) { return p.offset < offset; });
  const auto i = static_cast<size_t>(found - pending->pieces.begin());
  if (meta.key != op.tensor->traits.key) return false;
  if (i >= pending->pieces.size() || pending->pieces[i].server != server) return false;
  const bool value = !meta.push && Pulls(op);
  std::vector<bool>& in = value ? pending->answered : pending->confirmed;
  if (in[i]) return false;
  pending->moved_us = NowUs();
  const Piece& piece = pending->pieces[i];
  if (piece.offset != meta.addr || message.data.size() < 2) return false;
  const ps::SArray<char>& payload = message.data[1];
  if (meta.option != 0) {
    const TensorTraits& tensor = op.tensor->traits;
    Decode(std::string(payload.data(), payload.size()), &pending->status);
    pending->status = pending->status.About(
        {Subject::kTensor, tensor.key, "tensor '" + tensor.name + "' on " + NodeName(meta.sender)});
  } else if (value) {
    pending->status = TakeValue(payload, piece, i, pending->op.get());
    if (!pending->status.ok()) {
      pending->status = pending->status.Saying(NodeName(meta.sender) + " answered with " +
                                               pending->status.detail());
    }
  }
  in[i] = true;
  --(value ? pending->unanswered : pending->unconfirmed);
  return pending->unconfirmed == 0 && pending->unanswered == 0;
}

void ClassicWorker::Complete(std::unique_ptr<Pending> pending, const Status& status) {
  if (pending->scheduled != 0) schedule_->Done(pending->scheduled);
  pending->op->Finish(status);
}

void ClassicWorker::Fail(const Status& status) {
  std::vector<std::unique_ptr<Pending>> failed;
  std::vector<Over> over;
  GivenUp given_up;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.ok()) return;
    failure_ = status;
    errands_.Fail(status, &over);
    given_up = std::move(given_up_);
    for (auto& pending : pending_) {
      if (pending) failed.push_back(std::move(pending));
    }
  }
  FinishAll(over);
  for (auto& pending : failed) Complete(std::move(pending), status);
  given_up.Finish(status);
  if (schedule_ != nullptr) schedule_->Flush();
}

void ClassicWorker::WatchForStalls() {
  const auto turn =
      std::chrono::microseconds(std::min(options_.stall.FirstQuestion(0) / 4, kTurnUs));
  std::unique_lock<std::mutex> lock(mutex_);
  int64_t ticked_us = NowUs();
  while (!leaves_.wait_for(lock, turn, [this] { return leaving_ || !failure_.ok(); })) {
    const int64_t now_us = NowUs();
    const int64_t pause_us = OwnPause_us(std::exchange(ticked_us, now_us), now_us);
    for (const auto& pending : pending_) {
      if (pending != nullptr) LeaveOut(pause_us, now_us, &pending->moved_us, &pending->ask_at_us);
    }
    errands_.Tick(now_us);
    AskAboutLongest(now_us);
  }
}

void ClassicWorker::AskAboutLongest(int64_t now_us) {
  Pending* longest = nullptr;
  for (const auto& pending : pending_) {
    if (pending == nullptr || now_us < pending->ask_at_us) continue;
    pending->ask_at_us = options_.stall.NextQuestion(pending->since_us, pending->moved_us, now_us);
    if (longest == nullptr || pending->since_us < longest->since_us) longest = pending.get();
  }
  if (longest == nullptr) return;
  const TensorTraits& tensor = longest->op->tensor->traits;
  size_t i = 0;
  while (i + 1 < longest->pieces.size() && longest->confirmed[i] && longest->answered[i]) ++i;
  errands_.AskAbout(longest->pieces[i].server,
                    {0, MissingLetter::Kind::kPiece, tensor.key, longest->pieces[i].offset},
                    "tensor '" + tensor.name + "'", "has not sent it all", longest->since_us,
                    longest->moved_us, now_us);
}

std::string ClassicWorker::Waiting() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string lines = errands_.Waiting(NowUs());
  for (const auto& pending : pending_) {
    if (pending == nullptr) continue;
    const size_t open = std::max(pending->unconfirmed, pending->unanswered);
    lines += "tensor '" + pending->op->tensor->traits.name + "': for " +
             std::to_string((NowUs() - pending->since_us) / 1000000) + " s, " +
             std::to_string(pending->pieces.size() - open) + " of " +
             std::to_string(pending->pieces.size()) + " pieces are done\n";
  }
  return lines;
}

std::string ClassicWorker::Figures() {
  if (schedule_ == nullptr) return "{}";
  LinkFigures all;
  all.peer = "all servers";
  all.blocks = schedule_->blocks();
  return FiguresJson("worker", options_.rank, Name(PolicyKind::kProphet), {all},
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

}  // namespace mercury
