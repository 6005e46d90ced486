// A worker's part whose letters are recorded, and what it is told.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/net/recorder.h"
#include "fabric/net/worker_part.h"
#include "harness.h"

namespace mercury::fabric::testing {

constexpr size_t kPacket = 16;

struct WorkerFixture {
  Recorder outbox;
  std::vector<std::pair<int64_t, Fate>> settled;
  std::vector<int64_t> got;
  int64_t reign = 0;                    // of the last one
  std::shared_ptr<const Vector> model;  // the last one
  WorkerPart worker;

  explicit WorkerFixture(double momentum = 0, size_t servers = 1, int replicas = 0)
      : worker(0, momentum, kPacket, &outbox,
               {[this](UpdateId id, Fate fate) { settled.emplace_back(id.number, fate); },
                [this](const Edition& edition, const auto& what) {
                  got.push_back(edition.version);
                  reign = edition.reign;
                  model = what;
                }},
               {}, nullptr, 10, servers, replicas) {}

  void Hear(int peer, const Letter& letter, const Haul& haul = {}) {
    CHECK_OK(worker.Hear(peer, letter, haul, 0));
  }
  bool Next(int peer, double now_s, OutPacket* packet) {
    return NextOf(&worker, &outbox, peer, now_s, packet);
  }
  // All that goes to `peer` now, as floats.
  Vector Sent(int peer, double now_s = 100) {
    return SentBy(&worker, &outbox, peer, now_s, [](const OutPacket& packet, size_t before) {
      CHECK_EQ(packet.header.offset, before);
    });
  }
};

inline Order Send(int64_t number, int64_t place, int to, bool to_aggregator) {
  Order order = MakeOrder(Order::kSend, 0);
  order.hop.to = to;
  order.hop.to_aggregator = to_aggregator;
  order.hop.places = {place};
  order.hop.update = {0, number};
  return order;
}

inline ModelLetter Model(int64_t version, int64_t wish) {
  return {1, false, version, 0, {}, wish, {}, false};
}

}  // namespace mercury::fabric::testing
