#include "links/wire.h"

#include <cstring>

#include "base/crc32c.h"
#include "base/little_endian.h"

namespace mercury {
namespace {

constexpr uint8_t kMark[2] = {'M', 'P'};

size_t PayloadMax(PacketKind kind, size_t packet_bytes_max) {
  switch (kind) {
    case PacketKind::kData:
    case PacketKind::kSum:
    case PacketKind::kCodedSum:
    case PacketKind::kPush:
    case PacketKind::kFirst:
    case PacketKind::kRows:
    case PacketKind::kRowSum:
    case PacketKind::kLetter:
    case PacketKind::kPart:
    case PacketKind::kCodedPart:
    case PacketKind::kGiven:
      return packet_bytes_max;
    case PacketKind::kDeclare:
      return kDeclarationBytesMax;
    case PacketKind::kError:
      return kFailureBytesMax;
    case PacketKind::kAnswer:
      return 4096;  // more workers than a job may have
    case PacketKind::kFetch:
    case PacketKind::kGoodbye:
    case PacketKind::kAsk:
    case PacketKind::kAck:
    case PacketKind::kNumber:
    case PacketKind::kReceived:
    case PacketKind::kTaken:
    case PacketKind::kStands:
    case PacketKind::kResumed:
    case PacketKind::kWanted:
    case PacketKind::kBehind:
      return 0;
  }
  return 0;
}

}  // namespace

HeaderBytes Encode(const Header& header) {
  HeaderBytes bytes;
  Store<uint32_t>(&bytes[0], header.tensor);
  Store<uint32_t>(&bytes[4], header.length);
  Store<uint64_t>(&bytes[8], header.offset);
  Store<int32_t>(&bytes[16], header.priority);
  bytes[20] = static_cast<uint8_t>(header.kind);
  bytes[21] = header.round;
  bytes[22] = kMark[0];
  bytes[23] = kMark[1];
  return bytes;
}

uint32_t PacketCrc(uint32_t payload_crc, const HeaderBytes& header) {
  return Crc32c(payload_crc, header.data(), header.size());
}

Status Decode(const uint8_t* bytes, size_t packet_bytes_max, Header* header) {
  if (bytes[22] != kMark[0] || bytes[23] != kMark[1]) {
    return Status::Corrupt("a packet does not begin where it should");
  }
  if (bytes[20] < static_cast<uint8_t>(PacketKind::kData) ||
      bytes[20] > static_cast<uint8_t>(PacketKind::kBehind)) {
    return Status::Corrupt("a packet of the unknown kind " + std::to_string(bytes[20]));
  }
  header->tensor = Load<uint32_t>(&bytes[0]);
  header->length = Load<uint32_t>(&bytes[4]);
  header->offset = Load<uint64_t>(&bytes[8]);
  header->priority = Load<int32_t>(&bytes[16]);
  header->kind = static_cast<PacketKind>(bytes[20]);
  header->round = bytes[21];
  if (header->length > PayloadMax(header->kind, packet_bytes_max)) {
    return Status::Corrupt("a packet of " + std::to_string(header->length) + " bytes, of kind " +
                           std::to_string(bytes[20]));
  }
  return Status::Ok();
}

}  // namespace mercury
