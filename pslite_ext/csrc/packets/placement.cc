#include "packets/placement.h"

#include <algorithm>

#include "base/packet_alignment.h"

namespace mercury {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace

Placement::Placement(uint64_t key, uint64_t tensor_bytes, uint64_t packet_bytes,
                     const ServerShares& server_shares, int num_lanes)
    : bytes(tensor_bytes),
      start(server_shares.HomeTurn(key)),
      lanes(static_cast<uint64_t>(num_lanes)),
      servers(server_shares) {
  const uint64_t most =
      std::max(packet_bytes / kPacketAlignment * kPacketAlignment, kPacketAlignment);
  const uint64_t least = std::min(kSlotBytesMin, most);
  const uint64_t needed = std::max<uint64_t>((bytes + most - 1) / most, 1);
  const uint64_t even = RoundUp(needed, servers.turns());
  const uint64_t sensible = std::max(needed, bytes / least);
  const uint64_t wanted = std::max<uint64_t>(std::min(even, sensible), 1);
  slot_bytes = std::max(RoundUp((bytes + wanted - 1) / wanted, kPacketAlignment), kPacketAlignment);
  slots = std::max<uint64_t>((bytes + slot_bytes - 1) / slot_bytes, 1);
}

uint64_t Placement::Length(uint64_t slot) const {
  return std::min(slot_bytes, bytes - std::min(bytes, Offset(slot)));
}

Share::Share(const Placement& placement, int server, int in_lane)
    : of(placement), lane(static_cast<uint64_t>(in_lane)), turns(of.servers.TurnsOf(server)) {
  const uint64_t cycle = of.servers.turns();
  for (uint64_t& turn : turns) turn = (turn + cycle - of.start) % cycle;
  std::sort(turns.begin(), turns.end());
  // Whole cycles of all lanes, and then, in this lane's, what is left.
  const uint64_t round = cycle * of.lanes;
  count = of.slots / round * turns.size();
  const uint64_t left = of.slots % round, before = lane * cycle;
  for (const uint64_t turn : turns) count += before + turn < left ? 1 : 0;
}

bool Share::Find(uint64_t offset, uint64_t* mine) const {
  if (of.slot_bytes == 0) return false;
  const uint64_t slot = offset / of.slot_bytes;
  const uint64_t cycle = slot / of.servers.turns();
  if (cycle % of.lanes != lane) return false;
  const uint64_t turn = slot % of.servers.turns();
  const auto at = std::lower_bound(turns.begin(), turns.end(), turn);
  if (at == turns.end() || *at != turn) return false;
  *mine = cycle / of.lanes * turns.size() + static_cast<uint64_t>(at - turns.begin());
  return *mine < count;
}

uint64_t Share::Bytes() const {
  if (count == 0) return 0;
  return (count - 1) * of.slot_bytes + of.Length(Slot(count - 1));
}

uint64_t Share::lanes() const {
  if (turns.empty() || turns.front() >= of.slots) return 0;
  return std::min(of.lanes, (of.slots - turns.front() - 1) / of.servers.turns() + 1);
}

}  // namespace mercury
