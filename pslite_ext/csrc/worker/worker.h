// The one way in for all that a worker asks of its job, whatever asks (MXNet's engine, Python) and
// whatever carries it.
//
// Thread-safety: what takes a tensor, from the thread that orders its operations; the rest from
// any.
// Ownership: the transport is the node's and outlives this. Invariant: an operation that was
// submitted is finished exactly once.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "transport/claim.h"
#include "transport/gate.h"
#include "transport/transport.h"
#include "worker/tensors.h"

namespace mercury {

class Worker {
 public:
  // `deterministic`: sums are to be the same in every run. `outside`: this worker comes while the
  // job runs, and has not been let in.
  explicit Worker(Transport* transport, bool deterministic = false, bool outside = false)
      : transport_(transport), deterministic_(deterministic), outside_(outside) {}

  Tensors& tensors() { return tensors_; }
  // `traits` and `parameter` as Tensors::Open has them; the trace learns of the tensor. An
  // asynchronous one is refused where sums are to be the same in every run.
  Status OpenTensor(TensorTraits traits, uint64_t parameter, std::shared_ptr<Tensor>* tensor);
  Status SetCompression(Tensor* tensor, const std::string& kind, float threshold) const;
  // kInvalidArgument unless they are rows of this tensor, ascending.
  static Status CheckRows(const Tensor& tensor, const Operation::Rows& rows);

  // As the tensor is coded now; memory, `keep` and `done` are still to be filled in.
  static std::shared_ptr<Operation> NewOperation(Operation::Kind kind,
                                                 std::shared_ptr<Tensor> tensor, int32_t priority);
  // A first value goes at once; all else of a tensor once every worker has said that it has the
  // same tensor, and sums it in the same manner (letters/agreement.h).
  void Submit(std::shared_ptr<Operation> op);
  // Whether it may be submitted before all of it is ready, and then that more is.
  bool TakesChunks() const { return transport_->TakesChunks(); }
  void More(const std::shared_ptr<Operation>& op) { transport_->More(op); }
  // `status` as what it is for a parameter: if another worker has ended because all have not the
  // same, this one hears of that end before it hears why.
  static Status AsSeenBy(const Subject& about, const Status& status);
  // Says which keys this worker's model has, or what its optimizer has been told; over when all
  // workers have said the same. kInvalidArgument if that is too long to say.
  Status NewModelClaim(uint64_t subject, std::string keys, std::shared_ptr<Operation>* claim);
  std::shared_ptr<Operation> NewStepsClaim(uint64_t subject, std::string told);
  // worker_newcomers.cc: where this worker stands, for one that is let in, while nothing is under
  // way; and of that one: it is in.
  std::string Standing();
  Status Enter(const std::string& standing);
  std::string Figures() { return transport_->Figures(); }
  std::string Profile() { return transport_->Profile(); }
  // What is under way: a line for each.
  std::string Waiting() const { return transport_->Waiting(); }

 private:
  std::shared_ptr<Operation> NewClaim(const Claim& claim, Subject about);
  void Agree(Tensor* tensor, uint64_t parameter);
  void AgreeOnManner(const Operation& op, const std::shared_ptr<Gate>& gate);
  void Claims(const Claim& claim, const std::shared_ptr<Gate>& gate);
  static void Note(Tensor* tensor);
  static void NoteCodec(const Operation& op);

  bool OpenAsAgreed(Gate* gate);

  Transport* const transport_;
  const bool deterministic_;
  std::atomic<bool> outside_;
  Tensors tensors_;
  std::mutex mutex_;                         // guards what follows
  std::map<uint64_t, Gate::Agreed> agreed_;  // by key: what others had agreed on before it came
};

}  // namespace mercury
