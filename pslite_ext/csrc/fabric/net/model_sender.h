// Models on their way to other nodes, packet by packet; each link has its own queue.
//
// A few nodes are served at once: enough to fill the link even if some are slow, and few enough for
// the first to be done early. Thirty at once have kept heartbeats from getting through.
//
// A model does not change while it is being sent: what may be sent is never written. A letter
// goes first, which says what comes. A model that still comes is passed on as far as it is there,
// and so are updates that come to the server through its replica. Of those, some go at once, by
// turns: a slow chain that came first does not hold up a fast one, and what a link carries is seen.
//
// Thread-safety: none; the lane owns it. Invariants: each peer gets one model after another, and at
// most `kUpdatesAtOnce` transfers of updates at once; peers are served in the order in which they
// began to wait; transfer numbers differ from those of the scheduler's hops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "fabric/net/part.h"

namespace mercury::fabric {

constexpr size_t kModelsAtOnce = 4;
constexpr size_t kUpdatesAtOnce = 12;  // fewer than a link may have (dock.h)
constexpr uint32_t kNotOfHops = uint32_t{1} << 31;

class ModelSender {
 public:
  ModelSender(size_t packet_bytes, Outbox* outbox) : packet_bytes_(packet_bytes), outbox_(outbox) {}

  // The letter says all but the transfer's number. Nothing happens if there is no link. `share`: of
  // this node's way out, that it takes.
  void Send(int peer, ModelLetter letter, Cargo cargo, double share = 1);
  void PassOn(int peer, ModelLetter letter, std::shared_ptr<const Inflow> inflow);
  void PassOn(int peer, UpdatesLetter letter, std::shared_ptr<const Inflow> inflow);
  size_t waiting(int peer) const;
  double share() const;  // of the way out, that all take which have not left
  void CountNoMore();    // those that are on their way now
  void Abandon();        // all of them
  bool IsNext(int peer) const;
  // As Part's.
  bool Next(int peer, double now_s, OutPacket* out);
  // So long did the last model that has left take.
  double takes_s() const { return takes_s_; }
  void Gone(int peer);
  // Of what is passed on: these will not be sent to their ends.
  void Drop(const std::function<bool(const UpdatesLetter&)>& these);

 private:
  struct Sending {
    std::variant<ModelLetter, UpdatesLetter> letter;
    Cargo kept;
    double share = 1;
    std::shared_ptr<const Inflow> inflow;  // null: all of it is there
    bool by_packets = false;               // somebody passes it on
    int64_t number = 0;
    size_t offset = 0;
    bool announced = false;
    bool dropped = false;
    double began_s = 0;

    Cargo cargo() const {
      Cargo its = kept;
      if (inflow != nullptr) its.codec = inflow->codec;  // known with the first bytes
      return its;
    }
    bool broken() const { return dropped || (inflow != nullptr && inflow->broken()); }
    size_t there() const {
      return inflow == nullptr ? kept.bytes() : cargo().shape().BytesOf(inflow->there());
    }
    // A packet, or a letter.
    bool has_next() const { return !announced || broken() || offset < there(); }
  };
  struct Queue {
    int peer = 0;
    std::deque<Sending> waiting;
    size_t turn = 0;  // of several that go at once, whose it is

    // The place of one of which a packet or a letter can go now; the end: none.
    size_t Next() const;
  };
  void Add(int peer, Sending sending);
  template <typename L>
  static Sending Passed(L letter, std::shared_ptr<const Inflow> inflow);
  template <typename Queues>
  static auto Find(Queues& queues, int peer) {
    return std::find_if(queues.begin(), queues.end(), [&](auto& q) { return q.peer == peer; });
  }

  const size_t packet_bytes_;
  Outbox* const outbox_;
  uint32_t transfers_ = kNotOfHops;
  double takes_s_ = 0;
  std::vector<Queue> queues_;  // none is empty; the peer that began to wait first is first
};

}  // namespace mercury::fabric
