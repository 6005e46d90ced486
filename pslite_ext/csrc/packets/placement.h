// Which slots a tensor consists of, and on which server each of them is summed: one rule, shared by
// all nodes. Which lane carries a slot is no rule: one that is free does (lane_endpoint.h).
//
// A whole array is cut into slots of equal numbers of elements (the last may be shorter), of at
// most `packet_bytes` each as they are summed, and as many as a multiple of the servers' turns, so
// that each server has its share, unless that made slots smaller than kSlotBytesMin. A tensor that
// is summed by rows is cut into ranges of rows, kRowSlots of them for each turn of a server, so
// that the first rows' sums come back while the last ones leave. Slots go to the servers in turn,
// from one that the key chooses.
//
// Thread-safety: pure functions. Invariants: slots cover [0, elements) exactly, in order; of whole
// arrays they begin at multiples of kPacketAlignment bytes, of rows at rows; a tensor without
// elements has one slot without any, so that its rounds still synchronise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/server_shares.h"

namespace mercury {

constexpr uint64_t kSlotBytesMin = 2048;
constexpr uint64_t kRowSlots = 32;

struct Placement {
  uint64_t elements = 0;
  uint64_t slot_elements = 0;  // of all slots but the last
  uint64_t slots = 0;
  uint64_t start = 0;  // whose turn the first is
  ServerShares servers;

  Placement() = default;
  // Of whole arrays.
  Placement(uint64_t key, uint64_t its_elements, size_t element_bytes, uint64_t packet_bytes,
            const ServerShares& server_shares);
  static Placement OfRows(uint64_t key, uint64_t its_elements, uint64_t row_elements,
                          const ServerShares& server_shares);

  uint64_t Begin(uint64_t slot) const { return slot * slot_elements; }
  uint64_t Elements(uint64_t slot) const;
  // The rows of a slot, where it has whole ones: from `first` to before `end`.
  struct RowRange {
    int64_t first = 0;
    int64_t end = 0;
  };
  RowRange Rows(uint64_t slot, uint64_t row_elements) const {
    return {static_cast<int64_t>(Begin(slot) / row_elements),
            static_cast<int64_t>((Begin(slot) + Elements(slot)) / row_elements)};
  }
  int Server(uint64_t slot) const { return servers.Server(start + slot); }

 private:
  void Cut(uint64_t its_elements, uint64_t wanted, uint64_t together);
};

// The slots of one server, or of several, numbered 0, 1, ... in order of offset.
struct Share {
  Placement of;
  std::vector<uint64_t> turns;  // of each cycle, from the tensor's first slot on, which are ours
  uint64_t count = 0;

  Share() = default;
  Share(const Placement& placement, int server) : Share(placement, std::vector<int>{server}) {}
  Share(const Placement& placement, const std::vector<int>& servers);

  uint64_t Slot(uint64_t mine) const {
    return mine / turns.size() * of.servers.turns() + turns[mine % turns.size()];
  }
  uint64_t Begin(uint64_t mine) const { return of.Begin(Slot(mine)); }
  uint64_t Elements(uint64_t mine) const { return of.Elements(Slot(mine)); }
  Placement::RowRange Rows(uint64_t mine, uint64_t row_elements) const {
    return of.Rows(Slot(mine), row_elements);
  }
  // Which of ours is that slot, or holds that element; false if none does.
  bool FindSlot(uint64_t slot, uint64_t* mine) const;
  bool Find(uint64_t element, uint64_t* mine) const {
    return of.slot_elements != 0 && FindSlot(element / of.slot_elements, mine);
  }
  // Of all of ours, where a slot's elements take so much; only the last slot may be shorter.
  template <typename Size>
  uint64_t Total(const Size& size) const {
    return count == 0 ? 0 : (count - 1) * size(of.slot_elements) + size(Elements(count - 1));
  }
  uint64_t Elements() const {
    return Total([](uint64_t elements) { return elements; });
  }
};

}  // namespace mercury
