// Which packets a tensor consists of, and on which server and lane each of them is summed: one
// rule, shared by all nodes.
//
// A tensor is cut into slots of equal size (the last may be shorter), at most `packet_bytes` each,
// and as many as a multiple of the servers' turns, so that each server has its share of the bytes,
// unless that made slots smaller than kSlotBytesMin. Slots go to the servers in turn, from one that
// the key chooses.
//
// Thread-safety: pure functions. Invariants: slots cover [0, bytes) exactly, in order, and begin
// at multiples of 64 bytes (so no element is split); a tensor of size 0 has one slot of length 0,
// so that its rounds still synchronise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/server_shares.h"

namespace mercury {

constexpr uint64_t kSlotBytesMin = 2048;

struct Placement {
  uint64_t bytes = 0;
  uint64_t slot_bytes = 0;  // of all slots but the last
  uint64_t slots = 0;
  uint64_t start = 0;  // whose turn the first is
  uint64_t lanes = 1;
  ServerShares servers;

  Placement() = default;
  Placement(uint64_t key, uint64_t tensor_bytes, uint64_t packet_bytes,
            const ServerShares& server_shares, int num_lanes);

  uint64_t Offset(uint64_t slot) const { return slot * slot_bytes; }
  uint64_t Length(uint64_t slot) const;
  int Server(uint64_t slot) const { return servers.Server(start + slot); }
  int Lane(uint64_t slot) const { return static_cast<int>(slot / servers.turns() % lanes); }
};

// The slots of one server and lane, numbered 0, 1, ... in order of offset.
struct Share {
  Placement of;
  uint64_t lane = 0;
  std::vector<uint64_t> turns;  // of each cycle, from the tensor's first slot on, which are ours
  uint64_t count = 0;

  Share() = default;
  Share(const Placement& placement, int server, int in_lane);

  uint64_t Slot(uint64_t mine) const {
    const uint64_t cycle = mine / turns.size() * of.lanes + lane;
    return cycle * of.servers.turns() + turns[mine % turns.size()];
  }
  // Which of ours holds `offset`; false if none does.
  bool Find(uint64_t offset, uint64_t* mine) const;
  uint64_t Bytes() const;
  // Of the server's lanes, how many hold some of the tensor.
  uint64_t lanes() const;
};

}  // namespace mercury
