#include "fabric/net/dock.h"

#include <cstring>

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;
using mercury::Code;
using mercury::Header;
using mercury::OutPacket;
using mercury::Status;

namespace {

constexpr size_t kPacket = 64;

// As a link would bring it; the letter that is whole with it.
Status Bring(const OutPacket& packet, Dock* to, std::optional<Letter>* letter, int64_t now_us = 0) {
  char* target = nullptr;
  Status status = to->OnHeader(packet.header, now_us, &target);
  if (!status.ok()) return status;
  std::memcpy(target, packet.payload, packet.header.length);
  return to->OnPacket(packet.header, now_us, letter);
}

OutPacket Part(uint32_t number, uint64_t offset, uint32_t length) {
  static const char bytes[1024] = {};
  OutPacket packet;
  packet.header.kind = mercury::PacketKind::kPart;
  packet.header.tensor = number;
  packet.header.offset = offset;
  packet.header.length = length;
  packet.payload = bytes;
  return packet;
}

}  // namespace

TEST(a_transfer_comes_whole) {
  Dock dock(kPacket);
  dock.Expect(20, true);
  Cargo cargo;
  cargo.sum = std::make_shared<const Vector>(20, 1.5F);
  cargo.step = std::make_shared<const Vector>(20, 2.5F);
  Haul haul;
  std::optional<Letter> letter;
  for (size_t offset = 0; offset < cargo.bytes();) {
    // Halves of a vector are none.
    if (offset != 80) CHECK_STATUS(Code::kCorrupt, dock.Take(9, &haul));
    if (offset == 80) break;
    const OutPacket packet = PartOf(cargo, 9, offset, kPacket);
    REQUIRE_OK(Bring(packet, &dock, &letter, static_cast<int64_t>(offset)));
    offset += packet.header.length;
  }
  for (size_t offset = 80; offset < cargo.bytes();) {
    const OutPacket packet = PartOf(cargo, 9, offset, kPacket);
    REQUIRE_OK(Bring(packet, &dock, &letter, static_cast<int64_t>(offset)));
    offset += packet.header.length;
  }
  REQUIRE_OK(dock.Take(9, &haul));
  CHECK_TRUE(*haul.cargo.sum == *cargo.sum);
  CHECK_TRUE(*haul.cargo.step == *cargo.step);
  CHECK_EQ(haul.first_us, 0);
  CHECK_EQ(haul.last_us, 144);
  CHECK_STATUS(Code::kCorrupt, dock.Take(9, &haul));  // once
}

TEST(nothing_is_taken_that_does_not_fit) {
  std::optional<Letter> letter;
  Dock fresh(kPacket);
  CHECK_STATUS(Code::kCorrupt, Bring(Part(1, 0, 4), &fresh, &letter));  // nothing is expected
  Dock dock(kPacket);
  dock.Expect(4, false);
  CHECK_STATUS(Code::kCorrupt, Bring(Part(1, 4, 4), &dock, &letter));   // not the beginning
  CHECK_STATUS(Code::kCorrupt, Bring(Part(1, 0, 20), &dock, &letter));  // more than a model
  CHECK_STATUS(Code::kCorrupt, Bring(Part(1, 0, 3), &dock, &letter));   // no whole element
  CHECK_STATUS(Code::kCorrupt, Bring(Part(1, 0, 0), &dock, &letter));
  for (uint32_t number = 1; number <= kTransfersMost; ++number) {
    CHECK_OK(Bring(Part(number, 0, 16), &dock, &letter));
  }
  CHECK_STATUS(Code::kCorrupt, Bring(Part(1, 16, 16), &dock, &letter));  // one vector only
  CHECK_STATUS(Code::kCorrupt, Bring(Part(99, 0, 16), &dock, &letter));
  dock.Forget(1);
  CHECK_OK(Bring(Part(99, 0, 16), &dock, &letter));

  Header header;
  char* target = nullptr;
  header.kind = mercury::PacketKind::kData;
  CHECK_STATUS(Code::kCorrupt, dock.OnHeader(header, 0, &target));
}
