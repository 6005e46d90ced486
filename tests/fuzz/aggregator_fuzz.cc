// What two workers that know the token may send a server: a link's state machine from the first
// packet on. The first two bytes choose the server's options; then come pieces: a byte says whose
// (bit 7), whether both are sent what there is for them afterwards (bit 6), and how many bytes
// follow.
#include <memory>
#include <string>
#include <vector>

#include "byte_link.h"
#include "fuzz.h"
#include "packets/aggregator.h"

using namespace mercury;

namespace {

constexpr uint64_t kBytesMax = 4 << 10;
constexpr size_t kPacketBytes = 512;
unsigned kept = 0;

// Touches every byte, as sending does.
void Drain(Aggregator* aggregator, int worker) {
  OutPacket out;
  for (int i = 0; aggregator->Next(worker, 0, &out); ++i) {
    FUZZ_REQUIRE(i < 1000000);
    const Header& h = out.header;
    FUZZ_REQUIRE(h.length == 0 || out.payload != nullptr);
    for (size_t at = 0; at < h.length; ++at) kept += static_cast<uint8_t>(out.payload[at]);
    Header back;  // and a worker of ours understands it
    FUZZ_REQUIRE(Decode(Encode(h).data(), kPacketBytes, &back).ok());
    FUZZ_REQUIRE(h.kind == PacketKind::kSum || h.kind == PacketKind::kError ||
                 h.kind == PacketKind::kAnswer || h.kind == PacketKind::kAck ||
                 h.kind == PacketKind::kTaken || h.kind == PacketKind::kRowSum ||
                 h.kind == PacketKind::kCodedSum);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  AggregatorOptions options;
  options.num_workers = 2;
  options.policy = static_cast<PolicyKind>(data[0] % 5);
  options.deterministic = (data[0] & 0x80) != 0;
  options.levels_max = (data[0] & 0x40) != 0 ? 2 : 4096;
  options.unit_bytes = uint64_t{data[1]} * 16 + 1;
  options.packet_bytes = kPacketBytes;
  options.bytes_max = kBytesMax;
  options.tensors_max = 3;
  auto aggregator = std::make_unique<Aggregator>(options);
  ByteLink links[2] = {{aggregator.get(), 0, kPacketBytes, false},
                       {aggregator.get(), 1, kPacketBytes, false}};
  for (size_t at = 2; at < size;) {
    const uint8_t piece = data[at++];
    const size_t bytes = std::min<size_t>(piece & 63, size - at);
    ByteLink& link = links[piece >> 7];
    link.Feed(data + at, bytes, static_cast<int64_t>(at));
    at += bytes;
    if (!link.status().ok()) {
      const Code code = link.status().code();
      FUZZ_REQUIRE(code == Code::kCorrupt || code == Code::kExhausted);
      Header goodbye;
      goodbye.kind = PacketKind::kGoodbye;
      FUZZ_REQUIRE(aggregator->OnPacket(piece >> 7, goodbye, 0).ok());
    }
    FUZZ_REQUIRE(aggregator->pool().bytes() <= kBytesMax);
    FUZZ_REQUIRE(aggregator->tensors() <= 6);
    if ((piece & 0x40) != 0) {
      Drain(aggregator.get(), 0);
      Drain(aggregator.get(), 1);
    }
  }
  OutPacket last;  // may outlive the server
  aggregator->Next(0, 0, &last);
  Drain(aggregator.get(), 1);
  aggregator.reset();
  for (size_t i = 0; i < last.header.length; ++i) kept += static_cast<uint8_t>(last.payload[i]);
  return 0;
}
