// From packets to the events of a tensor, a peer and a round: first and last packet, first and last
// sum, whichever way and in whichever lane they go at this end; on a worker also when the tensor
// was handed over.
//
// Thread-safety: none; an endpoint owns it, and locks. No I/O, no clock. Ownership: the ring is its
// user's. Invariant: two events each way and round, whatever the number of packets, and a worker's
// one more.
#pragma once

#include <unordered_map>

#include "links/endpoint.h"
#include "packets/placement.h"
#include "trace/trace_ring.h"

namespace mercury {

class PacketTrace {
 public:
  // `overhead`: bytes of each packet beyond its payload. Without a ring nothing is done.
  PacketTrace(TraceRing* ring, bool on_server, uint64_t overhead, int lanes = 1)
      : ring_(ring), on_server_(on_server), overhead_(overhead), one_lane_(lanes == 1) {}

  // A peer that is not the node of its number.
  void Call(int peer, uint32_t node) { nodes_[peer] = node; }
  // It is a leader's, of its host's sums, which are a server of their own in traces.
  void SumsHost() { by_host_ = true; }
  // What follows of this key and peer belongs to the push of this number and to its pull.
  void Begin(int peer, uint32_t key, uint64_t number, bool initial, bool asynchronous) {
    if (ring_ == nullptr) return;
    Flow* flow = FlowOf(peer, key);
    const bool again = flow->number == static_cast<int32_t>(number) && flow->initial == initial;
    // Each lane says it before its own first packet.
    if (!again) *flow = Flow{static_cast<int32_t>(number), initial, asynchronous, {}, {}};
  }
  // A worker's tensor waits for its turn from now on.
  void HandedOver(int peer, uint32_t key, int64_t now_us) {
    if (ring_ != nullptr) NoteHandedOver(peer, key, now_us);
  }
  // As Begin, from what a worker says in front of its packets: a number (`round` 1: of a first
  // value), or a fetch's own.
  void Announced(int peer, uint32_t key, const Header& header, bool asynchronous) {
    if (header.kind == PacketKind::kNumber) {
      Begin(peer, key, header.offset, header.round != 0, asynchronous);
    }
    if (header.kind == PacketKind::kFetch) Begin(peer, key, header.offset - 1, false, asynchronous);
  }
  // A packet is there; `slot_done`: its slot's last.
  void Received(int peer, uint32_t key, const Share& share, uint64_t bytes, bool slot_done,
                int64_t now_us) {
    if (ring_ != nullptr) Note(peer, key, share, bytes, slot_done, now_us);
  }
  // A packet goes to its link, which adds the event when it sends it. Where there are several
  // lanes, one may be late with the first packet when another has sent the last: then the event is
  // now.
  void Sending(int peer, uint32_t key, const Share& share, bool slot_done, int64_t now_us,
               OutPacket* packet) {
    if (ring_ != nullptr) Mark(peer, key, share, slot_done, now_us, packet);
  }

 private:
  struct Passed {
    uint64_t bytes = 0;
    uint64_t slots = 0;
  };
  struct Flow {
    int32_t number = -1;  // not known
    bool initial = false, asynchronous = false;
    Passed in, out;
  };

  void NoteHandedOver(int peer, uint32_t key, int64_t now_us);
  void Note(int peer, uint32_t key, const Share& share, uint64_t bytes, bool slot_done,
            int64_t now_us);
  void Mark(int peer, uint32_t key, const Share& share, bool slot_done, int64_t now_us,
            OutPacket* packet);
  TraceEvent Event(int peer, uint32_t key, bool sum, const Flow& flow) const;
  Flow* FlowOf(int peer, uint32_t key) {
    return &flows_[uint64_t{key} << 32 | static_cast<uint32_t>(peer)];
  }

  TraceRing* const ring_;
  const bool on_server_;
  const uint64_t overhead_;
  const bool one_lane_;
  int64_t latest_us_ = 0;  // of all that was told: a lane's turn has one time for all it sends
  std::unordered_map<uint64_t, Flow> flows_;
  std::unordered_map<int, uint32_t> nodes_;
  bool by_host_ = false;
};

}  // namespace mercury
