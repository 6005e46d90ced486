// Models on their way to other nodes, packet by packet; each link has its own queue.
//
// A few nodes are served at once: enough to fill the link even if some are slow, and few enough for
// the first to be done early. Thirty at once have kept heartbeats from getting through.
//
// A model does not change while it is being sent: vectors in a cargo are never written. After its
// last packet, a letter follows that says what it was.
//
// Thread-safety: none; the lane owns it. Invariants: each peer gets one model after another; peers
// are served in the order in which they began to wait; transfer numbers differ from those of the
// scheduler's hops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "fabric/net/part.h"

namespace mercury::fabric {

constexpr size_t kModelsAtOnce = 4;
constexpr uint32_t kNotOfHops = uint32_t{1} << 31;

class ModelSender {
 public:
  ModelSender(size_t packet_bytes, Outbox* outbox) : packet_bytes_(packet_bytes), outbox_(outbox) {}

  // The letter says all but the transfer's number. Nothing happens if there is no link.
  void Send(int peer, ModelLetter letter, Cargo cargo);
  size_t waiting(int peer) const;
  size_t peers() const { return queues_.size(); }  // to which something is on its way
  bool IsNext(int peer) const;
  // As Part's.
  bool Next(int peer, OutPacket* out);
  void Gone(int peer);

 private:
  struct Sending {
    ModelLetter said_after;
    Cargo cargo;
    size_t offset = 0;
  };
  struct Queue {
    int peer = 0;
    std::deque<Sending> models;
  };
  template <typename Queues>
  static auto Find(Queues& queues, int peer) {
    return std::find_if(queues.begin(), queues.end(), [&](auto& q) { return q.peer == peer; });
  }

  const size_t packet_bytes_;
  Outbox* const outbox_;
  uint32_t transfers_ = kNotOfHops;
  std::vector<Queue> queues_;  // none is empty; the peer that began to wait first is first
};

}  // namespace mercury::fabric
