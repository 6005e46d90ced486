// A server's ends on one lane: of its own slots, and of those of lost servers whose place it has
// taken. Peers are the workers of the first, then those of the second, and so on.
//
// Thread-safety: as the ends are; Set on the lane's thread. Ownership: the ends. Invariant: there
// is no link to a peer of an end that is not there.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "links/endpoint.h"

namespace mercury {

class ShardsEndpoint : public Endpoint {
 public:
  explicit ShardsEndpoint(int workers) : workers_(workers) {}
  // Null: it is not there any more.
  void Set(size_t number, std::unique_ptr<Endpoint> end) {
    if (ends_.size() <= number) ends_.resize(number + 1);
    ends_[number] = std::move(end);
  }

  Status OnHeader(int peer, const Header& header, int64_t now_us, char** target) override {
    return Of(peer)->OnHeader(peer % workers_, header, now_us, target);
  }
  Status OnPacket(int peer, const Header& header, int64_t now_us) override {
    return Of(peer)->OnPacket(peer % workers_, header, now_us);
  }
  bool Next(int peer, int64_t now_us, OutPacket* out) override {
    return Of(peer)->Next(peer % workers_, now_us, out);
  }
  void OnPath(int peer, int64_t round_trip_us, double bytes_per_second) override {
    Of(peer)->OnPath(peer % workers_, round_trip_us, bytes_per_second);
  }
  void OnFull(int peer, int64_t now_us) override { Of(peer)->OnFull(peer % workers_, now_us); }
  int64_t WakeAt(int peer) const override { return Of(peer)->WakeAt(peer % workers_); }

 private:
  Endpoint* Of(int peer) const { return ends_[static_cast<size_t>(peer / workers_)].get(); }

  const int workers_;
  std::vector<std::unique_ptr<Endpoint>> ends_;
};

}  // namespace mercury
