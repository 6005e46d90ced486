// A worker's half of the data plane: its streams, its lanes, and its links to all servers.
//
// Thread-safety: all functions from any thread, but Start and Stop from one each. Ownership:
// streams and lanes. Invariants: every operation's `done` is called exactly once; after Fail every
// operation fails at once with the first error.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "links/dialer.h"
#include "links/lane.h"
#include "packets/mercury_options.h"
#include "packets/worker_streams.h"
#include "transport/transport.h"

namespace mercury {

class MercuryWorker : public Transport {
 public:
  MercuryWorker(const MercuryOptions& options, PlaneEvents events);
  ~MercuryWorker() override;

  // `ready` follows when all links to all servers are up.
  Status Start(const std::vector<Address>& servers);
  // Says goodbye to the servers: after Fail, that it is not because the work is done.
  void Stop();

  // In packets; a command as letters in the first lane.
  void Submit(std::shared_ptr<Operation> op) override;
  void Fail(const Status& status) override;
  std::string Figures() override;
  std::string Profile() override;
  std::string Waiting() override;

 private:
  struct Slice;
  void Dial(Slice* slice, int server, const Address& address);
  void SubmitCommand(const std::shared_ptr<Operation>& op);
  void FailNow(const Status& status);
  std::unique_ptr<Endpoint> WithLetters(Slice* slice, std::unique_ptr<Endpoint> streams);

  const MercuryOptions options_;
  const PlaneEvents events_;
  const HmacKey key_;
  std::shared_ptr<WorkerStreams> streams_;
  std::vector<std::unique_ptr<Slice>> slices_;  // by lane
  std::atomic<int> links_missing_{0};
  std::mutex mutex_;  // guards what follows
  Status failure_;
  bool stopped_ = false;
};

}  // namespace mercury
