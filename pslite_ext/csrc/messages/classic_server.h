// A server's half of the classic path: puts the requests of ps-lite's messages into a ServerStore
// and sends its replies. classic_worker.h has the messages' layout.
//
// Thread-safety: all functions from any thread. Ownership: requests that wait are this object's.
// Invariant: every request of a worker is answered exactly once.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "letters/clerk.h"
#include "messages/server_store.h"
#include "ps/ps.h"
#include "transport/classic_path.h"

namespace mercury {

class ClassicServer {
 public:
  explicit ClassicServer(const ClassicOptions& options);
  ~ClassicServer();
  void Departed(int worker);

 private:
  void Handle(const ps::KVMeta& meta, const ps::KVPairs<char>& data);
  void Send(const std::vector<StoreReply>& replies);
  void HandleLetter(const ps::SimpleData& command);
  void Send(int worker, const JobLetter& letter);

  std::mutex mutex_;  // guards what follows
  ServerStore store_;
  Clerk clerk_;
  uint64_t next_ticket_ = 1;
  std::unordered_map<uint64_t, ps::KVMeta> open_;
  std::unordered_map<int, ps::SimpleData> last_letter_;  // by worker
  std::unique_ptr<ps::KVServer<char>> app_;              // last: its thread ends first
};

}  // namespace mercury
