// The classic path: push, confirmation, pull, answer, as ps-lite messages over the ZMQ van.
//
// ClassicWorker turns an operation on a tensor into messages per piece and completes it when the
// last answer is in; ClassicServer puts requests into a ServerStore and sends its replies. A
// message:
//   head    StoreOperation | messages of this share << 8
//                                   key     the tensor's 64-bit key     addr   offset of the piece
//   push    push or pull       val_len bytes of the piece          option dtype | compression << 8
//   | recv_key  tensor's index   push_pull_operation  dispatch number          asynchronous << 16
//   data[0] {key, row bytes}   data[1] payload; in an answer option is a Code, and data[1] its text
//
// Thread-safety: all public functions from any thread. Ownership: `keep` holds the arrays' memory
// until ZeroMQ has let go of it, even if the operation has failed long before. Invariants: every
// operation's `done` is called exactly once; after Fail every operation fails at once with the
// first error.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "messages/classic_schedule.h"
#include "messages/partition.h"
#include "messages/server_store.h"
#include "ps/ps.h"

namespace mercury {

struct TensorInfo {
  uint64_t key = 0;
  uint64_t index = 0;  // in the order of announcement
  std::string name;
  DType dtype = DType::kFloat32;
  uint64_t elements = 0;
  bool asynchronous = false;
  // The engine runs a tensor's operations one after another, so these need no lock.
  Compression compression = Compression::kNone;
  float threshold = 0.5F;
  std::vector<float> residual;

  uint64_t bytes() const { return elements * ElementBytes(dtype); }
};

struct ClassicLimits {
  int num_servers = 1;
  uint64_t split_bytes = 4000000;
  uint64_t piece_bytes_max = uint64_t{64} << 20;
  // Gradients go through prophet's queue; otherwise at once.
  bool prophet = false;
  int profile_steps = 50;
  std::string profile_text;
};

class ClassicWorker : public ps::SimpleApp {
 public:
  using Done = std::function<void(const Status&)>;
  // Rows of a finished sparse operation, one encoded set per piece, ascending.
  using RowsDone = std::function<void(const Status&, std::vector<Buffer>)>;

  explicit ClassicWorker(const ClassicLimits& limits);
  ~ClassicWorker() override;

  void Init(std::shared_ptr<TensorInfo> tensor, const char* src, std::shared_ptr<void> keep,
            Done done);
  void Push(std::shared_ptr<TensorInfo> tensor, const char* src, std::shared_ptr<void> keep,
            Done done);
  void Pull(std::shared_ptr<TensorInfo> tensor, char* dst, std::shared_ptr<void> keep, Done done);
  // `priority` counts where there is a queue.
  void PushPull(std::shared_ptr<TensorInfo> tensor, const char* src, char* dst, int priority,
                std::shared_ptr<void> keep, Done done);
  // `rows`: ascending, unique; the sum of the round comes back.
  void PushPullRows(std::shared_ptr<TensorInfo> tensor, const int64_t* rows, size_t num_rows,
                    const char* values, uint32_t row_bytes, RowsDone done);
  // A command to all servers; done when each has answered.
  void Command(int head, const std::string& body, Done done);
  // Numbers for `count` operations that this worker dispatches now; also those that go as packets.
  int TakeNumbers(int count) { return next_number_.fetch_add(count); }

  void Fail(const Status& status);
  // Of prophet's queue: "{}" and nothing if there is none.
  std::string Figures(int rank);
  std::string Profile();

 private:
  struct Pending;

  void Process(const ps::Message& message) override;
  void Begin(std::unique_ptr<Pending> op);
  void Schedule(std::unique_ptr<Pending> op, int priority);
  void SendPieces(int slot, const Pending& op, bool push);
  void Compressed(Pending* op);
  // Takes the answer in; true when it was the operation's last.
  bool Take(const ps::Message& message, Pending* op);
  void Complete(std::unique_ptr<Pending> op, const Status& status);

  const ClassicLimits limits_;
  std::atomic<int> next_number_{1};
  std::mutex mutex_;  // guards what follows
  Status failure_;
  std::vector<std::unique_ptr<Pending>> slots_;  // by ps-lite's timestamp
  std::vector<int> free_slots_;
  std::unordered_map<uint64_t, std::string> names_;  // of what was scheduled, by key
  std::unique_ptr<ClassicSchedule> schedule_;        // last: its thread uses the rest
};

class ClassicServer {
 public:
  ClassicServer(int num_workers, uint64_t bytes_max);
  ~ClassicServer();
  void Departed(int worker);

 private:
  void Handle(const ps::KVMeta& meta, const ps::KVPairs<char>& data);
  void Send(const std::vector<StoreReply>& replies);

  std::mutex mutex_;  // guards store_ and open_
  ServerStore store_;
  uint64_t next_ticket_ = 1;
  std::unordered_map<uint64_t, ps::KVMeta> open_;
  std::unique_ptr<ps::KVServer<char>> app_;  // last: its thread ends first
};

}  // namespace mercury
