// Which packets a tensor consists of, and on which server and lane each of them is summed: one
// rule, shared by all nodes.
//
// A tensor is cut into slots of equal size (the last may be shorter), at most `packet_bytes` each,
// and as many as a multiple of the servers, so that each server has the same number of bytes,
// unless that made slots smaller than kSlotBytesMin. Slot i belongs to server (start + i) % N,
// start being chosen by the key.
//
// Thread-safety: pure functions. Invariants: slots cover [0, bytes) exactly, in order, and begin
// at multiples of 64 bytes (so no element is split); a tensor of size 0 has one slot of length 0,
// so that its rounds still synchronise.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mercury {

constexpr uint64_t kSlotBytesMin = 2048;

struct Placement {
  uint64_t bytes = 0;
  uint64_t slot_bytes = 0;  // of all slots but the last
  uint64_t slots = 0;
  uint64_t start = 0;
  uint64_t servers = 1;
  uint64_t lanes = 1;

  Placement() = default;
  Placement(uint64_t key, uint64_t tensor_bytes, uint64_t packet_bytes, int num_servers,
            int num_lanes);

  uint64_t Offset(uint64_t slot) const { return slot * slot_bytes; }
  uint64_t Length(uint64_t slot) const;
  int Server(uint64_t slot) const { return static_cast<int>((start + slot) % servers); }
  int Lane(uint64_t slot) const { return static_cast<int>(slot / servers % lanes); }
};

// The slots of one server and lane, numbered 0, 1, ... in order of offset.
struct Share {
  Placement of;
  uint64_t first = 0;   // slot number of ours number 0
  uint64_t stride = 1;  // from one of ours to the next
  uint64_t count = 0;

  Share() = default;
  Share(const Placement& placement, int server, int lane);

  uint64_t Slot(uint64_t mine) const { return first + mine * stride; }
  // Which of ours holds `offset`; false if none does.
  bool Find(uint64_t offset, uint64_t* mine) const;
  uint64_t Bytes() const;
};

}  // namespace mercury
