#include "worker/worker.h"

#include <utility>

#include "trace/trace_log.h"
#include "trace/trace_text.h"

namespace mercury {
namespace {

// Keys are spread over all numbers, so that what is far from one is nobody's.
uint64_t SubjectOf(uint64_t key, uint64_t number) { return key + number * 0xd1342543de82ef95; }

Subject About(const TensorTraits& traits) {
  return {Subject::kTensor, traits.key,
          traits.label.empty() ? "tensor '" + traits.name + "'" : traits.label};
}

}  // namespace

Status Worker::OpenTensor(TensorTraits traits, uint64_t parameter,
                          std::shared_ptr<Tensor>* tensor) {
  const bool further = traits.key != parameter;
  if (deterministic_ && traits.asynchronous) {
    return Status::InvalidArgument(
        About(traits).label +
        " is asynchronous, so what workers push is added as it comes, and MERCURY_DETERMINISTIC=1 "
        "asks for the order of ranks: use 'dist_sync', or unset it");
  }
  Status status = tensors_.Open(std::move(traits), parameter, tensor);
  if (!status.ok()) return status;
  if (!further) Note(tensor->get());
  if ((*tensor)->gate == nullptr) Agree(tensor->get(), parameter);
  return Status::Ok();
}

std::shared_ptr<Operation> Worker::NewClaim(const Claim& claim, Subject about) {
  auto op = NewOperation(Operation::Kind::kCommand, nullptr, 0);
  op->command.claim = claim;
  op->command.about = std::move(about);
  return op;
}

Status Worker::NewModelClaim(uint64_t subject, std::string keys,
                             std::shared_ptr<Operation>* claim) {
  if (keys.size() > kClaimTextBytesMax) {
    return Status::InvalidArgument("the names and keys of this model's parameters have " +
                                   std::to_string(keys.size()) + " bytes together, more than " +
                                   std::to_string(kClaimTextBytesMax) +
                                   ": workers cannot compare them; use shorter names");
  }
  *claim = NewClaim({subject, Claim::Kind::kModel, std::move(keys)},
                    {Subject::kModel, subject, "the workers' models differ"});
  return Status::Ok();
}

std::shared_ptr<Operation> Worker::NewStepsClaim(uint64_t subject, std::string told) {
  return NewClaim({subject, Claim::Kind::kSteps, std::move(told)},
                  {Subject::kModel, subject, "the workers' optimizers differ"});
}

void Worker::Agree(Tensor* tensor, uint64_t parameter) {
  const TensorTraits& traits = tensor->traits;
  if (const auto first = tensors_.Find(parameter); first != nullptr && first->gate != nullptr) {
    tensor->gate = first->gate;  // what is true of a parameter is true of its rows
    return;
  }
  tensor->gate = std::make_shared<Gate>(
      About(traits), [this](std::shared_ptr<Operation> op) { transport_->Submit(std::move(op)); });
  if (OpenAsAgreed(tensor->gate.get())) return;
  Claims({traits.key, Claim::Kind::kTensor, Text(traits)}, tensor->gate);
}

// Of a sum that waits for all workers. Each time is a subject of its own: workers come to it one
// after the other.
void Worker::AgreeOnManner(const Operation& op, const std::shared_ptr<Gate>& gate) {
  const bool sums = op.kind == Operation::Kind::kSum || op.kind == Operation::Kind::kPush ||
                    op.kind == Operation::Kind::kRows;
  if (!sums || op.tensor->traits.asynchronous) return;
  const Manner manner = Manner::Of(op);
  uint64_t number;
  if (!gate->ClosesFor(manner, &number)) return;
  Claims({SubjectOf(gate->about().key, number), Claim::Kind::kSums, Text(manner)}, gate);
}

void Worker::Claims(const Claim& claim, const std::shared_ptr<Gate>& gate) {
  auto op = NewClaim(claim, gate->about());
  op->done = [gate](const Status& status) { gate->Decide(AsSeenBy(gate->about(), status)); };
  Submit(std::move(op));
}

Status Worker::AsSeenBy(const Subject& about, const Status& status) {
  const bool of_it = status.cause() == Code::kInvalidArgument && status.subject().Is(about);
  return of_it ? status.As(Code::kInvalidArgument) : status;
}

Status Worker::SetCompression(Tensor* tensor, const std::string& kind, float threshold) const {
  const Codec* codec = kind == "none" ? nullptr : FindCompression(kind);
  if (kind != "none" && codec == nullptr) {
    return Status::InvalidArgument("compression is '" + kind + "'; allowed: none, " +
                                   CompressionNames());
  }
  if (codec != nullptr && codec->dtype != tensor->traits.dtype) {
    return Status::InvalidArgument("tensor '" + tensor->traits.name + "' is not " +
                                   Name(codec->dtype) + ": only " + Name(codec->dtype) +
                                   " can be compressed");
  }
  tensor->codec = codec;
  tensor->parameter = threshold;
  return Status::Ok();
}

Status Worker::CheckRows(const Tensor& tensor, const Operation::Rows& rows) {
  const uint64_t bytes = tensor.traits.bytes();
  if (rows.row_bytes == 0 || bytes % rows.row_bytes != 0) {
    return Status::InvalidArgument(About(tensor.traits).label + " has no rows of " +
                                   std::to_string(rows.row_bytes) + " bytes");
  }
  const auto count = static_cast<int64_t>(bytes / rows.row_bytes);
  for (size_t i = 0; i < rows.count; ++i) {
    const int64_t row = rows.numbers[i];
    if (row < 0 || row >= count) {
      return Status::InvalidArgument(About(tensor.traits).label + " has " + std::to_string(count) +
                                     " rows, so no row " + std::to_string(row));
    }
    if (i != 0 && row <= rows.numbers[i - 1]) {
      return Status::InvalidArgument(About(tensor.traits).label + ": row " + std::to_string(row) +
                                     " comes after row " + std::to_string(rows.numbers[i - 1]) +
                                     ": give each row once, in ascending order");
    }
  }
  return Status::Ok();
}

std::shared_ptr<Operation> Worker::NewOperation(Operation::Kind kind,
                                                std::shared_ptr<Tensor> tensor, int32_t priority) {
  auto op = std::make_shared<Operation>();
  op->tensor = std::move(tensor);
  op->priority = priority;
  op->kind = kind;
  if (op->tensor == nullptr) return op;  // a command
  op->codec = op->tensor->codec;
  op->parameter = op->tensor->parameter;
  op->use = op->tensor->use;
  return op;
}

void Worker::Submit(std::shared_ptr<Operation> op) {
  if (outside_ && op->kind != Operation::Kind::kPull && op->kind != Operation::Kind::kCommand) {
    return op->Finish(Status::Closed(
        "this worker has come while the job runs, and has not been let in yet: call checkpoint "
        "before it trains (docs/elastic.md)"));
  }
  op->fail_if_dropped = true;
  if (op->kind == Operation::Kind::kRows) Note(op->tensor.get());
  const bool waits = op->tensor != nullptr && op->kind != Operation::Kind::kFirstValue;
  if (waits) NoteCodec(*op);
  if (waits && op->tensor->gate != nullptr) {
    const std::shared_ptr<Gate> gate = op->tensor->gate;
    AgreeOnManner(*op, gate);
    return gate->Take(std::move(op));
  }
  transport_->Submit(std::move(op));
}

void Worker::Note(Tensor* tensor) {
  TraceLog* log = TraceLog::Active();
  if (log == nullptr || std::exchange(tensor->noted, true)) return;
  const TensorTraits& traits = tensor->traits;
  log->Note(TraceKeyNote(traits.index, traits.bytes(), traits.priority, traits.name));
}

void Worker::NoteCodec(const Operation& op) {
  TraceLog* log = TraceLog::Active();
  if (log == nullptr || std::exchange(op.tensor->noted_codec, op.codec) == op.codec) return;
  const TensorTraits& traits = op.tensor->traits;
  log->Note(TraceWireNote(traits.index, op.codec != nullptr ? op.codec->name : Name(traits.dtype)));
}

}  // namespace mercury
