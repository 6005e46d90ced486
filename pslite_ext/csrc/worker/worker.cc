#include "worker/worker.h"

#include <utility>

#include "trace/trace_log.h"
#include "trace/trace_text.h"

namespace mercury {

Status Worker::OpenTensor(TensorTraits traits, uint64_t parameter,
                          std::shared_ptr<Tensor>* tensor) {
  const bool further = traits.key != parameter;
  const Status status = tensors_.Open(std::move(traits), parameter, tensor);
  if (status.ok() && !further) Note(tensor->get());
  return status;
}

Status Worker::SetCompression(Tensor* tensor, const std::string& kind, float threshold) const {
  Compression compression = Compression::kNone;
  if (kind == "1bit") {
    compression = Compression::kOneBit;
  } else if (kind == "2bit") {
    compression = Compression::kTwoBit;
  } else if (kind != "none") {
    return Status::InvalidArgument("compression is '" + kind + "', not none, 1bit or 2bit");
  }
  if (compression != Compression::kNone && tensor->traits.dtype != DType::kFloat32) {
    return Status::InvalidArgument("tensor '" + tensor->traits.name +
                                   "' is not float32: only float32 can be compressed");
  }
  tensor->compression = compression;
  tensor->threshold = threshold;
  return Status::Ok();
}

bool Worker::SumsInPackets(const Tensor& tensor) const {
  const bool packets = at(Way::kPackets) != nullptr;
  return ChooseWay(Operation::Kind::kSum, tensor, packets).way == Way::kPackets;
}

std::shared_ptr<Operation> Worker::NewOperation(Operation::Kind kind,
                                                std::shared_ptr<Tensor> tensor, int32_t priority) {
  auto op = std::make_shared<Operation>();
  op->tensor = std::move(tensor);
  op->priority = priority;
  op->kind = kind;
  if (op->tensor == nullptr) return op;  // a command
  Tensor& its = *op->tensor;
  const Choice choice = ChooseWay(kind, its, at(Way::kPackets) != nullptr);
  op->kind = choice.kind;
  op->way = choice.way;
  op->compression = its.compression;
  op->threshold = its.threshold;
  if (kind == Operation::Kind::kSum || kind == Operation::Kind::kPush) {
    its.last_sum = op->way;
  }
  if (kind == Operation::Kind::kRows) Note(&its);
  return op;
}

void Worker::Submit(std::shared_ptr<Operation> op) {
  op->fail_if_dropped = true;
  Transport* transport = at(op->way);
  transport->Submit(std::move(op));
}

Transport* Worker::main() const {
  Transport* packets = at(Way::kPackets);
  return packets != nullptr ? packets : at(Way::kMessages);
}

void Worker::Note(Tensor* tensor) {
  TraceLog* log = TraceLog::Active();
  if (log == nullptr || std::exchange(tensor->noted, true)) return;
  const TensorTraits& traits = tensor->traits;
  log->Note(TraceKeyNote(traits.index, traits.bytes(), traits.priority, traits.name));
}

}  // namespace mercury
