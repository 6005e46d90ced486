// A worker's half of the classic path: push, pull, confirmation, answer, as ps-lite messages over
// the ZMQ van. An operation on a tensor becomes a message for each piece, and is over when the last
// answer is in. Each piece's pull goes right behind its push and waits on the server for the sum,
// so that sums come back while gradients still leave. A message:
//   head     StoreOperation, and 8 bits above it how many messages share this server's part
//   key      the tensor's 64-bit key             addr      offset of the piece
//   push     push or pull                        val_len   bytes of the piece
//   option   dtype, 8 bits above it compression, the bits above in classic_wire.h; in an
//            answer whether it failed
//   recv_key the tensor's index                  push_pull_operation   dispatch number
//   data[0]  {key, row bytes}                    data[1]   payload; of a failure what it says
//   (base/status.h)
//
// Thread-safety: all public functions from any thread. Ownership: what was handed to ZeroMQ holds
// the operation whose memory it is. Invariants: every operation's `done` is called exactly once, of
// one that fails while the job goes on when ZeroMQ has let go of its memory; after Fail every
// operation fails at once with the first error.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "letters/errands.h"
#include "messages/classic_schedule.h"
#include "messages/partition.h"
#include "ps/ps.h"
#include "transport/classic_path.h"
#include "transport/given_up.h"

namespace mercury {

class ClassicWorker : public ps::SimpleApp, public Transport {
 public:
  explicit ClassicWorker(const ClassicOptions& options);
  ~ClassicWorker() override;

  // `priority` counts where there is a queue.
  void Submit(std::shared_ptr<Operation> op) override;
  void Fail(const Status& status) override;
  // Of prophet's queue.
  std::string Figures() override;
  std::string Profile() override;
  std::string Waiting() override;

 private:
  struct Pending;

  void Process(const ps::Message& message) override;
  void Begin(std::unique_ptr<Pending> pending);
  void Schedule(std::unique_ptr<Pending> pending);
  void SendAll(int timestamp, const Pending& pending);
  void SendPiece(int timestamp, const Pending& pending, size_t i, int messages, bool push);
  std::vector<Piece> PiecesOf(const Tensor& tensor, size_t element_bytes,
                              uint64_t piece_bytes_max) const;
  // What is sent instead of the operation's memory.
  Status Compressed(Pending* pending) const;
  Status SetsOfRows(Pending* pending) const;
  // Takes the answer in; true when it was the operation's last.
  bool Take(const ps::Message& message, Pending* pending);
  void Complete(std::unique_ptr<Pending> pending, const Status& status);
  void SubmitCommand(std::shared_ptr<Operation> op);
  void SendLetter(int server, const JobLetter& letter);
  // In a thread of its own: asks the server which worker a long-stalled operation waits for, and
  // logs it.
  void WatchForStalls();
  void AskAboutLongest(int64_t now_us);

  const ClassicOptions options_;
  std::mutex mutex_;  // guards what follows
  Status failure_;
  Errands errands_;
  const int letters_;                              // their timestamp: ps-lite counts answers by it
  std::vector<std::unique_ptr<Pending>> pending_;  // by ps-lite's timestamp
  std::vector<int> free_timestamps_;
  GivenUp given_up_;                                 // may still be being sent
  std::unordered_map<uint64_t, std::string> names_;  // of what was scheduled, by key
  bool leaving_ = false;
  std::condition_variable leaves_;
  std::thread watch_;
  std::unique_ptr<ClassicSchedule> schedule_;  // last: its thread uses the rest
};

}  // namespace mercury
