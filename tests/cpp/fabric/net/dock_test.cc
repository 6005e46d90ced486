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

OutPacket Part(uint32_t number, uint64_t offset, uint32_t length,
               mercury::PacketKind kind = mercury::PacketKind::kPart) {
  static const char bytes[1024] = {};
  OutPacket packet;
  packet.header.kind = kind;
  packet.header.tensor = number;
  packet.header.offset = offset;
  packet.header.length = length;
  packet.payload = bytes;
  return packet;
}

}  // namespace

TEST(a_transfer_comes_whole) {
  Dock dock(kPacket);
  dock.Expect({20, true});
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

TEST(what_is_coded_comes_as_half_the_bytes) {
  const mercury::Codec* bf16 = mercury::FindCompression("bf16");
  REQUIRE_TRUE(bf16 != nullptr && CargoCodec(bf16->number) == bf16);
  Dock dock(kPacket);
  dock.Expect({50, true, bf16});
  const Cargo cargo{std::make_shared<const Vector>(50, 1.5F),
                    std::make_shared<const Vector>(50, 1.001F), bf16};
  CHECK_EQ(cargo.bytes(), 200U);
  std::optional<Letter> letter;
  for (size_t offset = 0; offset < cargo.bytes();) {
    const OutPacket packet = PartOf(cargo, 9, offset, 7);  // no whole number of elements
    CHECK_TRUE(packet.header.kind == mercury::PacketKind::kCodedPart);
    CHECK_EQ(packet.header.length, offset % 100 == 96 ? 4U : 6U);
    REQUIRE_OK(Bring(packet, &dock, &letter));
    offset += packet.header.length;
  }
  Haul haul;
  REQUIRE_OK(dock.Take(9, &haul));
  CHECK_EQ(haul.cargo.bytes(), 200U);
  CHECK_TRUE(*haul.cargo.sum == *cargo.sum);
  CHECK_TRUE(*haul.cargo.step == Vector(50, 1.0F));

  // A model beside it is not coded; nothing changes on its way.
  CHECK_OK(Bring(Part(1, 0, 60), &dock, &letter));
  CHECK_STATUS(Code::kCorrupt,
               Bring(Part(1, 60, 20, mercury::PacketKind::kCodedPart), &dock, &letter));
  CHECK_OK(Bring(Part(2, 0, 60, mercury::PacketKind::kCodedPart), &dock, &letter));
  CHECK_STATUS(Code::kCorrupt, Bring(Part(2, 60, 20), &dock, &letter));
  CHECK_STATUS(Code::kCorrupt,
               Bring(Part(2, 60, 41, mercury::PacketKind::kCodedPart), &dock, &letter));
  dock.Expect({50, true});
  CHECK_STATUS(Code::kCorrupt,
               Bring(Part(3, 0, 20, mercury::PacketKind::kCodedPart), &dock, &letter));
}

TEST(only_elements_that_stand_alone_travel_coded) {
  for (const char* name : {"int8", "1bit", "2bit"}) {
    CHECK_TRUE(CargoCodec(mercury::FindCompression(name)->number) == nullptr);
  }
  for (const int64_t number : {int64_t{-1}, int64_t{0}, int64_t{12}, int64_t{290}}) {
    CHECK_TRUE(CargoCodec(number) == nullptr);
  }
}

TEST(nothing_is_taken_that_does_not_fit) {
  std::optional<Letter> letter;
  Dock fresh(kPacket);
  CHECK_STATUS(Code::kCorrupt, Bring(Part(1, 0, 4), &fresh, &letter));  // nothing is expected
  Dock dock(kPacket);
  dock.Expect({4});
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
