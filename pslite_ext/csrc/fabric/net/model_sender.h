// Models on their way to other nodes, packet by packet; each link has its own queue.
//
// A model that is being sent stays as it was: vectors in a cargo are never written. When the last
// packet of one has been handed over, the letter that says what it was is.
//
// Thread-safety: none; the lane owns it. Invariant: to each peer, one model after another.
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "fabric/net/part.h"

namespace mercury::fabric {

class ModelSender {
 public:
  ModelSender(size_t packet_bytes, Outbox* outbox) : packet_bytes_(packet_bytes), outbox_(outbox) {}

  // The letter's waybill says all but the transfer's number. Nothing happens if there is no link.
  void Send(int peer, const Waybill& waybill, Cargo cargo);
  size_t waiting(int peer) const;
  size_t peers() const { return sending_.size(); }  // to which something is on its way
  // As Part's.
  bool Next(int peer, OutPacket* out);
  void Gone(int peer) { sending_.erase(peer); }

 private:
  struct Sending {
    Letter said_after;
    Cargo cargo;
    size_t offset = 0;
  };

  const size_t packet_bytes_;
  Outbox* const outbox_;
  int64_t transfers_ = 0;
  std::map<int, std::deque<Sending>> sending_;
};

}  // namespace mercury::fabric
