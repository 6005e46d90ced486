// What the scheduler and its nodes say to each other, letter by letter: in order and late, and not
// at all while the wire of a node is cut.
//
// Thread-safety: none. Time is the network's. Ownership: a letter is whatever its receiver does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "packets/packet_network.h"

namespace mercury::testing {

class ControlWires {
 public:
  ControlWires(Network* network, Random* random) : network_(network), random_(random) {}

  void Send(int node, bool to_scheduler, std::function<void()> hear) {
    Wire& wire = wires_[{node, to_scheduler}];
    wire.letters.push_back(std::move(hear));
    const int64_t now_us = network_->now_us();
    wire.last_us = std::max(wire.last_us, now_us + DelayUs());
    network_->After(wire.last_us - now_us, [this, node, to_scheduler, &wire] {
      ++wire.there;
      if (cut_.count(node) == 0 && !(to_scheduler && stopped_)) Deliver(&wire);
    });
  }
  // The scheduler hears nothing for a while, and then all at once.
  void Stop(bool stopped) {
    stopped_ = stopped;
    for (auto& [of, wire] : wires_) {
      const auto [node, to_scheduler] = of;
      if (!stopped && to_scheduler && cut_.count(node) == 0) Deliver(&wire);
    }
  }
  // The scheduler is no more: of what it has said to each node, the last is lost.
  void LoseSome() {
    for (auto& [of, wire] : wires_) {
      if (of.second) continue;
      const size_t stays = random_->Below(wire.letters.size() + 1);
      for (size_t i = stays; i < wire.letters.size(); ++i) wire.letters[i] = [] {};
    }
  }
  // Another process is in the place of one that was cut off: what that one is told is lost.
  void Renew(int node) {
    if (cut_.erase(node) == 0) return;
    for (const bool to_scheduler : {true, false}) {
      for (auto& letter : wires_[{node, to_scheduler}].letters) letter = [] {};
    }
    Mend(node);
  }
  void Cut(int node) { cut_.insert(node); }
  void Mend(int node) {
    cut_.erase(node);
    for (const bool to_scheduler : {true, false}) {
      if (!(to_scheduler && stopped_)) Deliver(&wires_[{node, to_scheduler}]);
    }
  }

 private:
  struct Wire {
    std::deque<std::function<void()>> letters;
    size_t there = 0;  // of the letters, that have come as far as the cut
    int64_t last_us = 0;
  };

  // Less than MembershipTimes::afterlife_ms() in all: whoever is heard after that is alive.
  int64_t DelayUs() {
    return random_->OneIn(20) ? random_->Between(0, 4000) : random_->Between(20, 1500);
  }
  static void Deliver(Wire* wire) {
    for (; wire->there != 0; --wire->there) {
      const std::function<void()> hear = std::move(wire->letters.front());
      wire->letters.pop_front();
      hear();
    }
  }

  Network* const network_;
  Random* const random_;
  std::map<std::pair<int, bool>, Wire> wires_;  // by node, and which way
  std::set<int> cut_;
  bool stopped_ = false;
};

}  // namespace mercury::testing
