// A leader's two ends on one lane: its streams to the servers, and the sums of its host, to whose
// workers it is what a server is to others. Its peers are the servers, and then the host's workers
// in their order, of whom the leader itself is the first and has no link.
//
// Thread-safety: as the two are. Ownership: both.
#pragma once

#include <memory>
#include <utility>

#include "links/endpoint.h"

namespace mercury {

class LeaderEndpoint : public Endpoint {
 public:
  LeaderEndpoint(std::unique_ptr<Endpoint> streams, std::unique_ptr<Endpoint> host_sums,
                 int servers)
      : streams_(std::move(streams)), host_sums_(std::move(host_sums)), servers_(servers) {}

  Status OnHeader(int peer, const Header& header, int64_t now_us, char** target) override {
    return Of(peer)->OnHeader(Number(peer), header, now_us, target);
  }
  Status OnPacket(int peer, const Header& header, int64_t now_us) override {
    return Of(peer)->OnPacket(Number(peer), header, now_us);
  }
  bool Next(int peer, int64_t now_us, OutPacket* out) override {
    return Of(peer)->Next(Number(peer), now_us, out);
  }
  void OnPath(int peer, int64_t round_trip_us, double bytes_per_second) override {
    Of(peer)->OnPath(Number(peer), round_trip_us, bytes_per_second);
  }
  void OnFull(int peer, int64_t now_us) override { Of(peer)->OnFull(Number(peer), now_us); }
  int64_t WakeAt(int peer) const override { return Of(peer)->WakeAt(Number(peer)); }

 private:
  Endpoint* Of(int peer) const { return peer < servers_ ? streams_.get() : host_sums_.get(); }
  int Number(int peer) const { return peer < servers_ ? peer : peer - servers_; }

  const std::unique_ptr<Endpoint> streams_, host_sums_;
  const int servers_;
};

}  // namespace mercury
