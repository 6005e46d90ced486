#include "links/wire.h"

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "harness.h"
#include "hex.h"

using namespace mercury;  // NOLINT: a test
using mercury::testing::Hex;

namespace {

Header Sample() {
  Header h;
  h.tensor = 0x04030201;
  h.length = 0x00010000;
  h.offset = 0x0000000fa0b0c0d0;
  h.priority = -2;
  h.kind = PacketKind::kSum;
  h.round = 0xfe;
  return h;
}

bool Same(const Header& a, const Header& b) {
  return a.tensor == b.tensor && a.length == b.length && a.offset == b.offset &&
         a.priority == b.priority && a.kind == b.kind && a.round == b.round;
}

constexpr size_t kAny = ~uint32_t{0};

}  // namespace

// These bytes are the format: whoever changes them makes a new version of it (kWireVersion).
TEST(golden_bytes_of_a_header) {
  CHECK_EQ(kWireVersion, 12);
  CHECK_EQ(kHeaderBytes, 24U);
  const HeaderBytes bytes = Encode(Sample());
  CHECK_EQ(Hex(bytes.data(), bytes.size()),
           "01020304"
           "00000100"
           "d0c0b0a00f000000"
           "feffffff"
           "02"
           "fe"
           "4d50");
}

// Of the payload first, then of the header.
TEST(golden_check_sum_of_a_packet) {
  const std::string payload = "the payload";
  const HeaderBytes header = Encode(Sample());
  const uint32_t crc = PacketCrc(Crc32c(0, payload.data(), payload.size()), header);
  const std::string all = payload + std::string(header.begin(), header.end());
  CHECK_EQ(crc, Crc32c(0, all.data(), all.size()));
  CHECK_EQ(crc, 0x0b0eb63dU);
}

TEST(golden_numbers_of_the_kinds) {
  const PacketKind kinds[] = {
      PacketKind::kData,   PacketKind::kSum,     PacketKind::kDeclare,  PacketKind::kFetch,
      PacketKind::kError,  PacketKind::kGoodbye, PacketKind::kAsk,      PacketKind::kAnswer,
      PacketKind::kAck,    PacketKind::kNumber,  PacketKind::kReceived, PacketKind::kLetter,
      PacketKind::kPart,   PacketKind::kPush,    PacketKind::kFirst,    PacketKind::kTaken,
      PacketKind::kRows,   PacketKind::kRowSum,  PacketKind::kCodedSum, PacketKind::kCodedPart,
      PacketKind::kStands, PacketKind::kResumed, PacketKind::kWanted,   PacketKind::kGiven,
      PacketKind::kBehind};
  for (size_t i = 0; i < std::size(kinds); ++i) CHECK_EQ(static_cast<size_t>(kinds[i]), i + 1);
}

TEST(headers_come_back_as_they_were) {
  mercury::testing::Random random;
  for (int trial = 0; trial < 3000; ++trial) {
    Header h;
    h.tensor = static_cast<uint32_t>(random());
    h.length = static_cast<uint32_t>(random());
    h.offset = random();
    h.priority = static_cast<int32_t>(random());
    h.kind = random.OneIn(2) ? PacketKind::kData : PacketKind::kSum;
    h.round = static_cast<uint8_t>(random());
    Header back;
    const HeaderBytes bytes = Encode(h);
    CHECK_OK(Decode(bytes.data(), kAny, &back));
    CHECK_TRUE(Same(h, back));
  }
}

TEST(whatever_is_accepted_is_what_encode_makes) {
  mercury::testing::Random random;
  int accepted = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    HeaderBytes bytes = Encode(Sample());
    for (uint64_t edits = random.Below(4); edits != 0; --edits) {
      bytes[random.Below(bytes.size())] =
          static_cast<uint8_t>(random.OneIn(2) ? random() : random.Below(12));
    }
    Header h;
    const Status status = Decode(bytes.data(), 1 << 20, &h);
    CHECK_EQ(status.ok(), status.text().empty());
    if (!status.ok()) {
      CHECK_STATUS(Code::kCorrupt, status);
      continue;
    }
    ++accepted;
    CHECK_TRUE(Encode(h) == bytes);
  }
  CHECK_TRUE(accepted > 1000);
}

TEST(lengths_are_bounded_by_kind) {
  struct {
    PacketKind kind;
    uint32_t most;
  } const bounds[] = {{PacketKind::kData, 5000},
                      {PacketKind::kSum, 5000},
                      {PacketKind::kDeclare, 40 + 512},
                      {PacketKind::kFetch, 0},
                      {PacketKind::kError, 1024},
                      {PacketKind::kGoodbye, 0},
                      {PacketKind::kAsk, 0},
                      {PacketKind::kAnswer, 4096},
                      {PacketKind::kAck, 0},
                      {PacketKind::kNumber, 0},
                      {PacketKind::kReceived, 0},
                      {PacketKind::kLetter, 5000},
                      {PacketKind::kPart, 5000},
                      {PacketKind::kPush, 5000},
                      {PacketKind::kFirst, 5000},
                      {PacketKind::kTaken, 0},
                      {PacketKind::kRows, 5000},
                      {PacketKind::kRowSum, 5000},
                      {PacketKind::kCodedSum, 5000},
                      {PacketKind::kCodedPart, 5000},
                      {PacketKind::kStands, 0},
                      {PacketKind::kResumed, 0},
                      {PacketKind::kWanted, 0},
                      {PacketKind::kGiven, 5000},
                      {PacketKind::kBehind, 0}};
  for (const auto& [kind, most] : bounds) {
    Header h;
    h.kind = kind;
    h.length = most;
    CHECK_OK(Decode(Encode(h).data(), 5000, &h));
    for (const uint32_t length : {most + 1, ~uint32_t{0}}) {
      h.length = length;
      CHECK_STATUS(Code::kCorrupt, Decode(Encode(h).data(), 5000, &h));
    }
  }
}

TEST(unknown_kinds_and_marks_are_refused) {
  for (int kind = 0; kind < 256; ++kind) {
    HeaderBytes bytes = Encode(Header());
    bytes[20] = static_cast<uint8_t>(kind);
    Header h;
    CHECK_EQ(Decode(bytes.data(), kAny, &h).ok(), kind >= 1 && kind <= 25);
  }
  for (const size_t at : {22, 23}) {
    HeaderBytes bytes = Encode(Header());
    bytes[at] ^= 1;
    Header h;
    CHECK_STATUS(Code::kCorrupt, Decode(bytes.data(), kAny, &h));
  }
}
