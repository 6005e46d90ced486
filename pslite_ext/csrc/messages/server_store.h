// What a server keeps: for every piece of every tensor its value, the round being summed, and who
// waits.
//
// Synchronous tensors: a push is answered when all workers have pushed the round, and the value
// becomes the sum. Asynchronous ones: a push is added to the value and answered at once. If the
// worker has pushed this round, its pull waits for the round's sum; otherwise it gets the current
// value, once there is one.
//
//   round of a piece:  empty --push--> summing --last push--> empty (value replaced, pushes
//   answered, then pulls)
//
// So that sums are the same in every run, a round's pushes are kept and added in the order of ranks
// when the last one is in.
//
// Thread-safety: none; one thread owns it. No I/O: requests go in, replies come out. Ownership: a
// value is shared with the replies that carry it and never written again while shared. Invariants:
// every request gets exactly one reply, now or later; memory for values and sums stays below
// `bytes_max`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/buffer.h"
#include "base/status.h"
#include "messages/classic_wire.h"
#include "sums/codec.h"
#include "sums/sparse_sum.h"
#include "sums/sum_kernels.h"

namespace mercury {

struct StoreRequest {
  uint64_t ticket = 0;  // the caller's name for this request
  int worker = 0;       // rank
  StoreOperation operation = StoreOperation::kPush;
  uint64_t key = 0;
  uint64_t offset = 0;  // of the piece in the tensor, bytes
  uint64_t bytes = 0;   // of the piece, uncompressed
  DType dtype = DType::kFloat32;
  const Codec* codec = nullptr;  // not null: the payload is its parameter and coded elements
  bool asynchronous = false;
  uint32_t row_bytes = 0;  // > 0: row-sparse, the payload is a set of rows (sparse_sum.h)
  Buffer payload;
};

struct StoreReply {
  uint64_t ticket = 0;
  Status status;
  Buffer value;  // of a pull
};

class ServerStore {
 public:
  // bytes_max 0: no cap. `deterministic`: rounds are summed in the order of ranks.
  ServerStore(int num_workers, uint64_t bytes_max, bool deterministic)
      : num_workers_(num_workers), bytes_max_(bytes_max), deterministic_(deterministic) {}

  void Handle(StoreRequest request, std::vector<StoreReply>* replies);
  // `worker` has finished and will push no more: rounds that wait for it fail.
  void Departed(int worker, std::vector<StoreReply>* replies);
  // Whom those wait for that have pushed, or pulled, this piece; nobody: it is not waited for.
  std::vector<int> Missing(uint64_t key, uint64_t offset) const;
  uint64_t bytes() const { return bytes_; }

 private:
  struct StoredPiece {
    uint64_t bytes = 0;
    DType dtype = DType::kFloat32;
    uint32_t row_bytes = 0;
    bool asynchronous = false;
    int first_worker = 0;  // who told us the shape, for messages
    Buffer value, sum;
    const Codec* back = nullptr;  // as what the sum under way is rounded; null: it is not
    bool has_value = false;
    std::unique_ptr<SparseSum> rows;  // of a row-sparse tensor, the sum under way
    std::vector<StoreRequest> kept;   // of the round, by rank; where their order counts
    std::vector<bool> pushed;
    std::vector<uint64_t> waiting_pushes;
    std::vector<uint64_t> waiting_pulls;  // for the first value
    std::vector<uint64_t> round_pulls;    // for the sum of the round, by who has pushed it
  };
  using PieceKey = std::pair<uint64_t, uint64_t>;  // key, offset

  Status Check(const StoreRequest& request, const StoredPiece& piece) const;
  Status Init(const StoreRequest& request, StoredPiece* piece, std::vector<StoreReply>* replies);
  Status Push(StoreRequest* request, StoredPiece* piece, std::vector<StoreReply>* replies);
  Status PushAsync(StoreRequest* request, StoredPiece* piece, std::vector<StoreReply>* replies);
  Status Keep(StoreRequest* request, StoredPiece* piece);
  Status AddKept(StoredPiece* piece);
  Status AddPush(StoreRequest* request, StoredPiece* piece, bool first);
  Status AddRows(const StoreRequest& request, StoredPiece* piece);
  void DropRows(StoredPiece* piece);
  Status Accumulate(StoreRequest* request, Buffer* sum, bool first);
  Status Round(StoredPiece* piece);
  // What has come stays, without being copied.
  Status Hold(Buffer payload, Buffer* held);
  bool IsFull(size_t bytes) const;
  Status Full() const;
  Status Reserve(size_t bytes, Buffer* buffer);
  void Release(Buffer* buffer);
  void Publish(StoredPiece* piece, Buffer value, std::vector<StoreReply>* replies);
  void FailKey(uint64_t key, const Status& status, std::vector<StoreReply>* replies);
  static void AnswerAll(std::vector<uint64_t>* tickets, const Buffer& value,
                        std::vector<StoreReply>* replies);
  static void FailAll(std::vector<uint64_t>* tickets, const Status& status,
                      std::vector<StoreReply>* replies);
  void FailRound(StoredPiece* piece, const Status& status, std::vector<StoreReply>* replies);
  Status WaitsForDeparted(const StoredPiece& piece) const;

  const int num_workers_;
  const uint64_t bytes_max_;
  const bool deterministic_;
  uint64_t bytes_ = 0;
  std::map<PieceKey, StoredPiece> pieces_;
  std::set<int> departed_;
  std::unordered_map<uint64_t, Status> failed_keys_;
};

}  // namespace mercury
