#include "packets/placement.h"

#include <algorithm>

#include "base/packet_alignment.h"
#include "transport/home_server.h"

namespace mercury {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace

Placement::Placement(uint64_t key, uint64_t tensor_bytes, uint64_t packet_bytes, int num_servers,
                     int num_lanes)
    : bytes(tensor_bytes),
      start(static_cast<uint64_t>(HomeServer(key, num_servers))),
      servers(static_cast<uint64_t>(num_servers)),
      lanes(static_cast<uint64_t>(num_lanes)) {
  const uint64_t most =
      std::max(packet_bytes / kPacketAlignment * kPacketAlignment, kPacketAlignment);
  const uint64_t least = std::min(kSlotBytesMin, most);
  const uint64_t needed = std::max<uint64_t>((bytes + most - 1) / most, 1);
  const uint64_t even = RoundUp(needed, servers);
  const uint64_t sensible = std::max(needed, bytes / least);
  const uint64_t wanted = std::max<uint64_t>(std::min(even, sensible), 1);
  slot_bytes = std::max(RoundUp((bytes + wanted - 1) / wanted, kPacketAlignment), kPacketAlignment);
  slots = std::max<uint64_t>((bytes + slot_bytes - 1) / slot_bytes, 1);
}

uint64_t Placement::Length(uint64_t slot) const {
  return std::min(slot_bytes, bytes - std::min(bytes, Offset(slot)));
}

Share::Share(const Placement& placement, int server, int lane) : of(placement) {
  const uint64_t row = (static_cast<uint64_t>(server) + of.servers - of.start) % of.servers;
  first = row + static_cast<uint64_t>(lane) * of.servers;
  stride = of.servers * of.lanes;
  count = first < of.slots ? (of.slots - first + stride - 1) / stride : 0;
}

bool Share::Find(uint64_t offset, uint64_t* mine) const {
  if (of.slot_bytes == 0) return false;
  const uint64_t slot = offset / of.slot_bytes;
  if (slot < first || (slot - first) % stride != 0) return false;
  *mine = (slot - first) / stride;
  return *mine < count;
}

uint64_t Share::Bytes() const {
  if (count == 0) return 0;
  return (count - 1) * of.slot_bytes + of.Length(Slot(count - 1));
}

}  // namespace mercury
