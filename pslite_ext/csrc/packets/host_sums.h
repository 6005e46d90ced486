// The sums of one host's workers, as the leader's streams use them: its own copy goes in, the
// host's copy of a slot comes out once all have brought theirs, and the job's sum goes back to all.
// The host's aggregator is one (aggregator_host.cc).
//
// Thread-safety: all functions from any thread; nothing of the streams is called from them.
// Ownership: blocks are shared. Invariant: a slot is taken, and its sum given, once a round.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "packets/packet_pool.h"
#include "transport/operation.h"

namespace mercury {

// What the leader's streams hear of them, with nothing locked. `lane`: whose turn it is.
struct HostEvents {
  // Of the slots on that server, in their order, so many can be sent in this round.
  std::function<void(uint64_t key, int server, uint64_t slots, uint8_t round, int lane)> ready;
  std::function<void(uint64_t key, const Status& status)> failed;
};

class HostSums {
 public:
  virtual ~HostSums() = default;
  // The leader's own copy is there. `ready`: as of HostEvents, by server. An error: the tensor has
  // failed.
  virtual Status Begin(const std::shared_ptr<Operation>& op, uint8_t round,
                       std::vector<uint64_t>* ready) = 0;
  // More of the leader's own copy is there: what can be sent then, by server.
  virtual std::vector<uint64_t> More(const Operation& op) = 0;
  // The host's copy of a slot, and whether anybody wants its sum.
  virtual Status Take(const Operation& op, uint64_t slot, Block* copy, bool* wanted) = 0;
  // Where the slot's sum is to come. An error: there is no memory, or the tensor has failed.
  virtual Status Room(const Operation& op, uint64_t slot, Block* room) = 0;
  // It has, of so many workers; null: it is made, and nobody wanted it.
  virtual void Give(const Operation& op, uint64_t slot, const Block& sum, int workers,
                    int lane) = 0;
  // The tensor has failed for the job.
  virtual void Fail(const TensorTraits& traits, const Status& status, int lane) = 0;
  // Nothing is summed any more: of all that has begun, the leader's own copies are let go of.
  virtual void LetGo() = 0;
  // One byte for each worker of the job, 1: the sum waits for its copy.
  virtual std::string Missing(uint64_t key) = 0;
};

}  // namespace mercury
