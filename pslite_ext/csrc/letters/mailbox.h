// One link's letters: those waiting to be sent, and the one that is arriving.
//
//   out: letters, in order, in pieces of a packet
//   in:  pieces -> a letter
//
// Thread-safety: none; its lane owns it. No I/O. Invariants: no memory is allocated for a letter
// above the limit; pieces are contiguous.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "links/endpoint.h"

namespace mercury {

class Mailbox {
 public:
  Mailbox(size_t packet_bytes, size_t letter_bytes_max)
      : packet_bytes_(packet_bytes), letter_bytes_max_(letter_bytes_max) {}

  void Post(std::string letter) {
    letters_.push_back(std::make_shared<const std::string>(std::move(letter)));
  }
  bool Next(OutPacket* out);
  bool empty() const { return letters_.empty(); }
  size_t unsent() const { return letters_.size(); }

  // As PacketSink's, of packets of kind kLetter. A letter that is whole is put into `letter`.
  Status OnHeader(const Header& header, char** target);
  void OnPacket(const Header& header, std::optional<std::string>* letter);

 private:
  const size_t packet_bytes_, letter_bytes_max_;
  std::deque<std::shared_ptr<const std::string>> letters_;
  size_t sent_ = 0;  // of the first letter
  std::string coming_;
  size_t come_ = 0;
};

}  // namespace mercury
