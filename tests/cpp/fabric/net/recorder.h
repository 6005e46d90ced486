// An outbox that remembers what was said to whom, for tests of the parts that nodes play.
#pragma once

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fabric/net/part.h"
#include "fabric/net/peers.h"
#include "harness.h"

namespace mercury::fabric::testing {

template <typename L>
L As(const Letter& letter) {
  REQUIRE_TRUE(std::holds_alternative<L>(letter));
  return std::get<L>(letter);
}

struct Recorder : Outbox {
  void Post(int peer, const Letter& letter) override {
    if (Linked(peer)) said[peer].push_back(letter);
  }
  bool Linked(int peer) const override { return gone.count(peer) == 0; }

  // What was said to `peer` since the last call.
  std::vector<Letter> To(int peer) {
    std::vector<Letter> letters = std::move(said[peer]);
    said.erase(peer);
    return letters;
  }
  // That was one letter, an `L`.
  template <typename L>
  L OneTo(int peer) {
    const std::vector<Letter> letters = To(peer);
    REQUIRE_EQ(letters.size(), 1);
    return As<L>(letters[0]);
  }

  std::map<int, std::vector<Letter>> said;
  std::set<int> gone;
};

// The next packet of a part's, as a node's end asks for it: once more if something was announced.
template <typename Its>
bool NextOf(Its* part, Recorder* outbox, int peer, double now_s, OutPacket* packet) {
  const size_t said = outbox->said[peer].size();
  if (part->Next(peer, now_s, packet)) return true;
  return outbox->said[peer].size() > said && NextOf(part, outbox, peer, now_s, packet);
}

// All that goes to `peer` now, as floats; `each` sees a packet, and how many bytes were before it.
template <typename Its, typename Each>
Vector SentBy(Its* part, Recorder* outbox, int peer, double now_s, const Each& each) {
  std::string bytes;
  for (OutPacket packet; NextOf(part, outbox, peer, now_s, &packet); packet = OutPacket()) {
    each(packet, bytes.size());
    bytes.append(packet.payload, packet.header.length);
  }
  Vector values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <typename Its>
Vector SentBy(Its* part, Recorder* outbox, int peer, double now_s) {
  return SentBy(part, outbox, peer, now_s, [](const OutPacket&, size_t) {});
}

inline Haul Of(const Vector& sum) {
  Haul haul;
  haul.cargo.sum = std::make_shared<const Vector>(sum);
  return haul;
}

// Of a vector that is coming, so many bytes.
inline std::shared_ptr<Inflow> Beginning(const Vector& sum, size_t bytes) {
  auto inflow = std::make_shared<Inflow>();
  inflow->elements = sum.size();
  inflow->sum = std::make_shared<Vector>(sum);
  inflow->bytes = bytes;
  return inflow;
}

inline UpdatesLetter Updates(int64_t number, const std::vector<int64_t>& places) {
  return {number, false, Goal::kServer, false, false, places, {}};
}

}  // namespace mercury::fabric::testing
