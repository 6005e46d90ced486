// Models on their way to other nodes, packet by packet; each link has its own queue.
//
// They go to a few nodes at once: enough to fill a link though some are slow, and the first have it
// early. Thirty at once have kept heartbeats from getting through.
//
// A model that is being sent stays as it was: vectors in a cargo are never written. When the last
// packet of one has been handed over, the letter that says what it was is.
//
// Thread-safety: none; the lane owns it. Invariants: to each peer, one model after another; peers
// in the order in which they began to wait; numbers of transfers are none of the scheduler's hops'.
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "fabric/net/part.h"

namespace mercury::fabric {

constexpr size_t kModelsAtOnce = 4;
constexpr uint32_t kNotOfHops = uint32_t{1} << 31;

class ModelSender {
 public:
  ModelSender(size_t packet_bytes, Outbox* outbox) : packet_bytes_(packet_bytes), outbox_(outbox) {}

  // The letter's waybill says all but the transfer's number. Nothing happens if there is no link.
  void Send(int peer, const Waybill& waybill, Cargo cargo);
  size_t waiting(int peer) const;
  size_t peers() const { return sending_.size(); }  // to which something is on its way
  bool IsNext(int peer) const;
  // As Part's.
  bool Next(int peer, OutPacket* out);
  void Gone(int peer);

 private:
  struct Sending {
    Letter said_after;
    Cargo cargo;
    size_t offset = 0;
  };

  const size_t packet_bytes_;
  Outbox* const outbox_;
  uint32_t transfers_ = kNotOfHops;
  std::map<int, std::deque<Sending>> sending_;
  std::deque<int> order_;  // of peers
};

}  // namespace mercury::fabric
