#include "packets/placement.h"

#include <algorithm>

#include "base/packet_alignment.h"

namespace mercury {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace

void Placement::Cut(uint64_t its_elements, uint64_t wanted, uint64_t together) {
  elements = its_elements;
  slot_elements = std::max(RoundUp((elements + wanted - 1) / wanted, together), together);
  slots = std::max<uint64_t>((elements + slot_elements - 1) / slot_elements, 1);
}

Placement::Placement(uint64_t key, uint64_t its_elements, size_t element_bytes,
                     uint64_t packet_bytes, const ServerShares& server_shares)
    : start(server_shares.HomeTurn(key)), servers(server_shares) {
  const uint64_t together = kPacketAlignment / element_bytes;
  const uint64_t most = std::max(packet_bytes / element_bytes / together * together, together);
  const uint64_t least = std::min(kSlotBytesMin / element_bytes, most);
  const uint64_t needed = std::max<uint64_t>((its_elements + most - 1) / most, 1);
  const uint64_t even = RoundUp(needed, servers.turns());
  const uint64_t sensible = std::max(needed, its_elements / least);
  Cut(its_elements, std::max<uint64_t>(std::min(even, sensible), 1), together);
}

Placement Placement::OfRows(uint64_t key, uint64_t its_elements, uint64_t row_elements,
                            const ServerShares& server_shares) {
  Placement rows;
  rows.start = server_shares.HomeTurn(key);
  rows.servers = server_shares;
  rows.Cut(its_elements, rows.servers.turns() * kRowSlots, row_elements);
  return rows;
}

uint64_t Placement::Elements(uint64_t slot) const {
  return std::min(slot_elements, elements - std::min(elements, Begin(slot)));
}

Share::Share(const Placement& placement, const std::vector<int>& servers) : of(placement) {
  for (const int server : servers) {
    const std::vector<uint64_t>& its = of.servers.TurnsOf(server);
    turns.insert(turns.end(), its.begin(), its.end());
  }
  const uint64_t cycle = of.servers.turns();
  for (uint64_t& turn : turns) turn = (turn + cycle - of.start) % cycle;
  std::sort(turns.begin(), turns.end());
  // Whole cycles, and then what is left.
  count = of.slots / cycle * turns.size();
  for (const uint64_t turn : turns) count += turn < of.slots % cycle ? 1 : 0;
}

bool Share::FindSlot(uint64_t slot, uint64_t* mine) const {
  const uint64_t cycle = slot / of.servers.turns();
  const uint64_t turn = slot % of.servers.turns();
  const auto at = std::lower_bound(turns.begin(), turns.end(), turn);
  if (at == turns.end() || *at != turn) return false;
  *mine = cycle * turns.size() + static_cast<uint64_t>(at - turns.begin());
  return *mine < count;
}

}  // namespace mercury
