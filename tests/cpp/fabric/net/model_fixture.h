// A part with the model whose letters are recorded, and what it is told.
#pragma once

#include <vector>

#include "fabric/net/model_part.h"
#include "fabric/net/recorder.h"
#include "harness.h"

namespace mercury::fabric::testing {

inline ModelOptions OptionsOf(Role role, double momentum, bool replica) {
  return {role, 5, {momentum, false}, replica, 16, 6, 2, {}, 0};
}

struct ModelFixture {
  Recorder outbox;
  ModelPart part;
  explicit ModelFixture(const ModelOptions& options) : part(options, Vector(6, 1), &outbox) {}
  explicit ModelFixture(Role role = Role::kServer, double momentum = 0, bool replica = false)
      : ModelFixture(OptionsOf(role, momentum, replica)) {}

  void Hear(int peer, const Letter& letter, const Haul& haul = {}) {
    CHECK_OK(part.Hear(peer, letter, haul, 0));
  }
  void Expect(const std::vector<Placed>& updates) {
    Order order = MakeOrder(Order::kExpect, kServerNode);
    order.updates = updates;
    Hear(kSchedulerPeer, order);
  }
  Vector Sent(int peer) { return SentBy(&part, &outbox, peer, 0); }
};

}  // namespace mercury::fabric::testing
