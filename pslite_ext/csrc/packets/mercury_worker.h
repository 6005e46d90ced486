// A worker's half of the data plane: its lanes, its links to all servers, and the tensors that it
// has summed.
//
// Thread-safety: all functions from any thread, but Start and Stop from one each. Ownership: lanes.
// Invariants: every operation's `done` is called exactly once; after Fail every operation fails at
// once with the first error.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "links/dialer.h"
#include "links/lane.h"
#include "packets/mercury_options.h"
#include "packets/operation.h"
#include "packets/worker_streams.h"

namespace mercury {

class MercuryWorker {
 public:
  MercuryWorker(const MercuryOptions& options, PlaneEvents events);
  ~MercuryWorker();

  // `ready` follows when all links to all servers are up.
  Status Start(const std::vector<Address>& servers);
  // Says goodbye to the servers: after Fail, that it is not because the work is done.
  void Stop();

  // The same tensor for the same key; kInvalidArgument if it was another one before.
  Status Tensor(const Declaration& declaration, std::shared_ptr<PacketTensor>* tensor);
  // `number`: of this push, or pull, in the order of dispatch.
  // src: summed over all workers into dst, which may be the same memory. `keep` holds both.
  void PushPull(std::shared_ptr<PacketTensor> tensor, const char* src, char* dst, int priority,
                std::shared_ptr<void> keep, Operation::Done done, int32_t number = 0);
  // The last sum once more; this worker must have taken part in it.
  void Fetch(std::shared_ptr<PacketTensor> tensor, char* dst, int priority,
             std::shared_ptr<void> keep, Operation::Done done, int32_t number = 0);
  void Fail(const Status& status);
  // The live figures, as a JSON object.
  std::string Figures();
  // prophet's, for the next run; empty if there is none.
  std::string Profile();

 private:
  struct Slice;
  void Submit(const std::shared_ptr<Operation>& op);
  void Dial(Slice* slice, int server, const Address& address);

  const MercuryOptions options_;
  const PlaneEvents events_;
  const HmacKey key_;
  std::vector<std::unique_ptr<Slice>> slices_;  // by lane
  std::atomic<int> links_missing_{0};
  std::mutex mutex_;  // guards what follows
  Status failure_;
  bool stopped_ = false;
  std::unordered_map<uint64_t, std::shared_ptr<PacketTensor>> tensors_;
};

}  // namespace mercury
