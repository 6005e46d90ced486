// One lane's view of an endpoint that all lanes of a process share: WorkerStreams or Aggregator,
// which know the link to a peer in a lane as LinkOf(peer, lane, lanes). No lane owns a tensor: each
// carries the next packet when its link has room, so that a slow one delays nothing but its own.
//
// Thread-safety: as the endpoint that it shows. Ownership: the endpoint is shared by its lanes.
#pragma once

#include <memory>
#include <utility>

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
  void OnFull(int peer, int64_t now_us) override { shared_->OnFull(Link(peer), now_us); }
  int64_t WakeAt(int peer) const override { return shared_->WakeAt(Link(peer)); }

 private:
  int Link(int peer) const { return LinkOf(peer, lane_, lanes_); }

  const std::shared_ptr<Endpoint> shared_;
  const int lane_, lanes_;
};

}  // namespace mercury
