// One lane's view of an endpoint that all lanes of a process share: WorkerStreams or Aggregator,
// which know the link to a peer in a lane as LinkOf(peer, lane, lanes). No lane owns a tensor: each
// carries the next packet when its link has room, so that a slow one delays nothing but its own.
//
// A lane that has asked for a packet and got none waits; whoever has one for that peer calls one
// of those that wait, and none if it will soon ask itself. A lane that takes one and leaves more
// calls another, too: it cannot tell yet whether its link takes all.
//
// Thread-safety: LaneEndpoint as the endpoint that it shows, WaitingLanes none.
// Ownership: the endpoint is shared by its lanes. Invariant: while there is a packet for a peer,
// each lane whose link to it has room will ask again, or one of them has been called.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "links/endpoint.h"

namespace mercury {

inline int LinkOf(int peer, int lane, int lanes) { return peer * lanes + lane; }

class LaneEndpoint : public Endpoint {
 public:
  LaneEndpoint(std::shared_ptr<Endpoint> shared, int lane, int lanes)
      : shared_(std::move(shared)), lane_(lane), lanes_(lanes) {}

  Status OnHeader(int peer, const Header& header, int64_t now_us, char** target) override {
    return shared_->OnHeader(Link(peer), header, now_us, target);
  }
  Status OnPacket(int peer, const Header& header, int64_t now_us) override {
    return shared_->OnPacket(Link(peer), header, now_us);
  }
  bool Next(int peer, int64_t now_us, OutPacket* out) override {
    return shared_->Next(Link(peer), now_us, out);
  }
  void OnPath(int peer, int64_t round_trip_us, double bytes_per_second) override {
    shared_->OnPath(Link(peer), round_trip_us, bytes_per_second);
  }
  int64_t WakeAt(int peer) const override { return shared_->WakeAt(Link(peer)); }

 private:
  int Link(int peer) const { return LinkOf(peer, lane_, lanes_); }

  const std::shared_ptr<Endpoint> shared_;
  const int lane_, lanes_;
};

class WaitingLanes {
 public:
  // `wake` is called with whatever the endpoint has locked.
  using Wake = std::function<void(int lane)>;

  WaitingLanes(int peers, int lanes, Wake wake)
      : lanes_(lanes), wake_(std::move(wake)), waits_(static_cast<size_t>(peers * lanes), 0) {}

  // The lane asks for a packet.
  void Asks(int peer, int lane) { At(peer, lane) = 0; }
  // It has got none.
  void Waits(int peer, int lane) { At(peer, lane) = 1; }
  // There is something for the peer. `by`: the lane whose turn it is; where its link has room, it
  // asks before it rests.
  void Offer(int peer, int by) {
    if (lanes_ == 1 || std::exchange(At(peer, by), 0) != 0) return;
    for (int lane = 0; lane < lanes_; ++lane) {
      if (std::exchange(At(peer, lane), 0) != 0) return wake_(lane);
    }
  }

 private:
  char& At(int peer, int lane) { return waits_[static_cast<size_t>(LinkOf(peer, lane, lanes_))]; }

  const int lanes_;
  const Wake wake_;
  std::vector<char> waits_;
};

}  // namespace mercury
