// An end of links on which letters travel beside other packets: letters go first, and are heard
// here; all else is another endpoint's.
//
// Thread-safety, I/O, clock: see endpoint.h. Ownership: the other endpoint, and a mailbox for each
// peer. Invariant: nothing is sent to a peer before something is posted to it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "letters/mailbox.h"
#include "links/endpoint.h"

namespace mercury {

class LetterEndpoint : public Endpoint {
 public:
  struct Hears {
    // An error closes the link.
    std::function<Status(int peer, const std::string& letter, int64_t now_us)> letter;
    // The peer says goodbye: its work is done, or the job has failed.
    std::function<void(int peer, bool done)> goodbye;
  };
  LetterEndpoint(std::unique_ptr<Endpoint> rest, size_t packet_bytes, size_t letter_bytes_max,
                 Hears hears)
      : rest_(std::move(rest)),
        packet_bytes_(packet_bytes),
        letter_bytes_max_(letter_bytes_max),
        hears_(std::move(hears)) {}

  // Whoever takes the peer's place has heard nothing of it.
  void Forget(int peer) { mailboxes_.erase(peer); }
  void Post(int peer, std::string letter) { Of(peer)->Post(std::move(letter)); }
  size_t Unsent(int peer) { return Of(peer)->unsent(); }

  Status OnHeader(int peer, const Header& header, int64_t now_us, char** target) override {
    if (header.kind == PacketKind::kLetter) return Of(peer)->OnHeader(header, target);
    return rest_->OnHeader(peer, header, now_us, target);
  }
  Status OnPacket(int peer, const Header& header, int64_t now_us) override;
  bool Next(int peer, int64_t now_us, OutPacket* out) override {
    return Of(peer)->Next(out) || rest_->Next(peer, now_us, out);
  }
  void OnPath(int peer, int64_t round_trip_us, double bytes_per_second) override {
    rest_->OnPath(peer, round_trip_us, bytes_per_second);
  }
  void OnFull(int peer, int64_t now_us) override { rest_->OnFull(peer, now_us); }
  int64_t WakeAt(int peer) const override { return rest_->WakeAt(peer); }

 private:
  Mailbox* Of(int peer) {
    return &mailboxes_.try_emplace(peer, packet_bytes_, letter_bytes_max_).first->second;
  }

  const std::unique_ptr<Endpoint> rest_;
  const size_t packet_bytes_, letter_bytes_max_;
  const Hears hears_;
  std::map<int, Mailbox> mailboxes_;
};

}  // namespace mercury
