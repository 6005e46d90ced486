// An outbox that remembers what was said to whom, for tests of the parts that nodes play.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "fabric/net/part.h"
#include "fabric/net/peers.h"

namespace mercury::fabric::testing {

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

  std::map<int, std::vector<Letter>> said;
  std::set<int> gone;
};

inline Letter OrderLetter(const Order& order) {
  Letter letter;
  letter.kind = Letter::Kind::kOrder;
  letter.order = order;
  return letter;
}

inline Haul Of(const Vector& sum) {
  Haul haul;
  haul.cargo.sum = std::make_shared<const Vector>(sum);
  return haul;
}

inline Letter Delivered(int64_t number, Goal goal, const std::vector<int64_t>& places) {
  Letter letter;
  letter.kind = Letter::Kind::kDelivered;
  letter.waybill.number = number;
  letter.waybill.goal = goal;
  letter.waybill.places = places;
  return letter;
}

}  // namespace mercury::fabric::testing
