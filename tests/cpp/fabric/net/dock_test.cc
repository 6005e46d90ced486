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
Status Bring(const OutPacket& packet, Dock* to, std::optional<Come>* letter, int64_t now_us = 0) {
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

// That transfer `number` comes, of one vector or two.
std::shared_ptr<const Inflow> Announced(Dock* dock, int64_t number, bool two = false) {
  std::shared_ptr<const Inflow> inflow;
  REQUIRE_OK(dock->Announce(number, AbortedLetter{number}, two, {}, &inflow));
  return inflow;
}

}  // namespace

TEST(a_transfer_comes_whole) {
  Dock dock(kPacket);
  constexpr size_t kMany = kBlockElements + 20;  // a block, and a shorter one
  dock.Expect({kMany, true});
  Cargo cargo;
  Vector sum(kMany), step(kMany);
  for (size_t i = 0; i < kMany; ++i) sum[i] = static_cast<float>(i), step[i] = -sum[i];
  cargo.sum = std::make_shared<const Vector>(sum);
  cargo.step = std::make_shared<const Vector>(step);
  const std::shared_ptr<const Inflow> inflow = Announced(&dock, 9, true);
  std::optional<Come> arrived;
  size_t there = 0;
  for (size_t offset = 0; offset < cargo.bytes();) {
    CHECK_FALSE(arrived.has_value());
    const OutPacket packet = PartOf(cargo, 9, offset, kPacket);
    REQUIRE_OK(Bring(packet, &dock, &arrived, static_cast<int64_t>(offset)));
    offset += packet.header.length;
    // What is there of both is a beginning, and can go on.
    CHECK_TRUE(inflow->there() >= there);
    there = inflow->there();
    CHECK_TRUE(there <= offset / 8);
    CHECK_TRUE(inflow->shape().BytesOf(there) <= offset);
    if (there > 0) {
      CHECK_EQ((*inflow->sum)[there - 1], sum[there - 1]);
      CHECK_EQ((*inflow->step)[there - 1], step[there - 1]);
    }
  }
  REQUIRE_TRUE(arrived.has_value() && arrived->haul.has_value());
  CHECK_EQ(std::get<AbortedLetter>(arrived->letter).number, 9);
  CHECK_TRUE(*arrived->haul->cargo.sum == sum);
  CHECK_TRUE(*arrived->haul->cargo.step == step);
  CHECK_EQ(arrived->haul->longest.first_us, 0);
  CHECK_TRUE(arrived->haul->longest.last_us > 0);
  CHECK_TRUE(inflow->whole() && !inflow->broken());
  CHECK_EQ(inflow->shape().BytesOf(kMany), cargo.bytes());
}

TEST(what_is_coded_comes_as_half_the_bytes) {
  const mercury::Codec* bf16 = mercury::FindCompression("bf16");
  REQUIRE_TRUE(bf16 != nullptr && CargoCodec(bf16->number) == bf16);
  Dock dock(kPacket);
  dock.Expect({50, true, bf16});
  const Cargo cargo{std::make_shared<const Vector>(50, 1.5F),
                    std::make_shared<const Vector>(50, 1.001F), bf16};
  CHECK_EQ(cargo.bytes(), 200U);
  std::optional<Come> arrived;
  Announced(&dock, 9, true);
  for (size_t offset = 0; offset < cargo.bytes();) {
    const OutPacket packet = PartOf(cargo, 9, offset, 7);  // no whole number of elements
    CHECK_TRUE(packet.header.kind == mercury::PacketKind::kCodedPart);
    CHECK_EQ(packet.header.length, offset % 100 == 96 ? 4U : 6U);
    REQUIRE_OK(Bring(packet, &dock, &arrived));
    offset += packet.header.length;
  }
  REQUIRE_TRUE(arrived.has_value() && arrived->haul.has_value());
  CHECK_EQ(arrived->haul->cargo.bytes(), 200U);
  CHECK_TRUE(*arrived->haul->cargo.sum == *cargo.sum);
  CHECK_TRUE(*arrived->haul->cargo.step == Vector(50, 1.0F));

  // A model beside it is not coded; nothing changes on its way.
  const auto coded = mercury::PacketKind::kCodedPart;
  for (const int64_t number : {1, 2, 3}) Announced(&dock, number);
  CHECK_OK(Bring(Part(1, 0, 60), &dock, &arrived));
  CHECK_STATUS(Code::kCorrupt, Bring(Part(1, 60, 20, coded), &dock, &arrived));
  CHECK_OK(Bring(Part(2, 0, 60, coded), &dock, &arrived));
  CHECK_STATUS(Code::kCorrupt, Bring(Part(2, 60, 20), &dock, &arrived));
  CHECK_STATUS(Code::kCorrupt, Bring(Part(2, 60, 41, coded), &dock, &arrived));
  dock.Expect({50, true});
  CHECK_STATUS(Code::kCorrupt, Bring(Part(3, 0, 20, coded), &dock, &arrived));
}

TEST(only_elements_that_stand_alone_travel_coded) {
  for (const char* name : {"int8", "1bit", "2bit"}) {
    CHECK_TRUE(CargoCodec(mercury::FindCompression(name)->number) == nullptr);
  }
  for (const int64_t number : {int64_t{-1}, int64_t{0}, int64_t{12}, int64_t{290}}) {
    CHECK_TRUE(CargoCodec(number) == nullptr);
  }
}

TEST(nothing_is_taken_that_does_not_fit_or_was_not_announced) {
  std::optional<Come> arrived;
  std::shared_ptr<const Inflow> inflow;
  Dock fresh(kPacket);
  CHECK_STATUS(Code::kCorrupt,
               fresh.Announce(1, Letter(), false, {}, &inflow));  // none is expected
  Dock dock(kPacket);
  dock.Expect({4});
  CHECK_STATUS(Code::kCorrupt,
               dock.Announce(1, Letter(), true, {}, &inflow));  // of one vector only
  CHECK_STATUS(Code::kCorrupt, Bring(Part(1, 0, 4), &dock, &arrived));
  Announced(&dock, 1);
  CHECK_STATUS(Code::kCorrupt, dock.Announce(1, Letter(), false, {}, &inflow));
  CHECK_STATUS(Code::kCorrupt, Bring(Part(1, 4, 4), &dock, &arrived));   // not the beginning
  CHECK_STATUS(Code::kCorrupt, Bring(Part(1, 0, 20), &dock, &arrived));  // more than a model
  CHECK_STATUS(Code::kCorrupt, Bring(Part(1, 0, 3), &dock, &arrived));   // no whole element
  CHECK_STATUS(Code::kCorrupt, Bring(Part(1, 0, 0), &dock, &arrived));
  CHECK_OK(Bring(Part(1, 0, 16), &dock, &arrived));
  CHECK_TRUE(arrived.has_value());
  CHECK_STATUS(Code::kCorrupt, Bring(Part(1, 16, 16), &dock, &arrived));  // it is over
  for (size_t number = 1; number <= kTransfersMost; ++number) {
    inflow = Announced(&dock, static_cast<int64_t>(number));
  }
  std::shared_ptr<const Inflow> more;
  CHECK_STATUS(Code::kCorrupt, dock.Announce(99, Letter(), false, {}, &more));
  CHECK_FALSE(inflow->broken());
  dock.Forget(static_cast<int64_t>(kTransfersMost));
  CHECK_TRUE(inflow->broken());
  CHECK_OK(dock.Announce(99, Letter(), false, {}, &more));

  Header header;
  char* target = nullptr;
  header.kind = mercury::PacketKind::kData;
  CHECK_STATUS(Code::kCorrupt, dock.OnHeader(header, 0, &target));
}

TEST(what_comes_is_broken_when_the_link_is_no_more) {
  std::shared_ptr<const Inflow> inflow;
  {
    Dock dock(kPacket);
    dock.Expect({4});
    inflow = Announced(&dock, 1);
  }
  CHECK_TRUE(inflow->broken());
}

TEST(a_stripe_is_put_where_it_belongs) {
  Dock dock(kPacket);
  Landing landing;
  landing.sum = std::make_shared<Vector>(10, 1.0F);
  landing.stripe = {1, 2, 10};  // blocks of five
  dock.Expect({landing.stripe.elements(), false});
  std::shared_ptr<const Inflow> inflow;
  REQUIRE_OK(dock.Announce(9, AbortedLetter{9}, false, landing, &inflow));
  std::optional<Come> arrived;
  CHECK_STATUS(Code::kCorrupt, Bring(Part(9, 0, 24), &dock, &arrived));  // more than its block
  CHECK_OK(Bring(Part(9, 0, 8), &dock, &arrived));
  CHECK_EQ(inflow->there(), 2);
  CHECK_OK(Bring(Part(9, 8, 12), &dock, &arrived));
  REQUIRE_TRUE(arrived.has_value() && arrived->haul.has_value());
  CHECK_EQ(arrived->haul->cargo.bytes(), 20);
  CHECK_TRUE(*landing.sum == (Vector{1, 1, 1, 1, 1, 0, 0, 0, 0, 0}));
}
