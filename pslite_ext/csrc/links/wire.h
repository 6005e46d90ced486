// Packets as they lie on a data link. docs/wire-format.md says the same for people.
//
//  0        4        8                 16       20  21  22    24
//  | tensor | length | offset          | prio-  |kind|rnd|"MP"| payload (length) | CRC-32C |
//  |        |        |                 | rity   |    |   |    |                  | if asked|
//
// Little-endian. `tensor` is the number that the worker gave it on this link, by declaring it;
// `offset` is an element of the tensor, or, of rows, a place; `length` is the payload's,
// in bytes; `priority` is MXNet's, larger is more urgent, but of what a server sends of a sum, of
// how many workers that is; `round` is the number of the sum, modulo 256. The CRC covers the
// payload, then the header: a payload that goes over several links is summed once.
//
// Thread-safety: pure functions. Invariant: Decode(Encode(x)) == x; Decode accepts nothing that
// Encode cannot have made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/packet_alignment.h"
#include "base/status.h"

namespace mercury {

constexpr uint16_t kWireVersion = 12;
constexpr size_t kHeaderBytes = 24;
constexpr size_t kChecksumBytes = 4;
constexpr size_t kDeclarationBytesMax = 552;

enum class PacketKind : uint8_t {
  kData = 1,        // worker -> server: coded elements of this worker's tensor, for a sum
  kSum = 2,         // server -> worker: elements of the sum, plain
  kDeclare = 3,     // worker -> server: what tensor a number stands for
  kFetch = 4,       // worker -> server: send the value, once there is one
  kError = 5,       // either: a tensor has failed of what the payload says (base/status.h)
  kGoodbye = 6,     // either: nothing more will come; offset 0: all is done, 1: the job has failed
  kAsk = 7,         // worker -> server: whom does this tensor wait for?
  kAnswer = 8,      // server -> worker: payload is one byte for each worker, 1: has not sent it all
  kAck = 9,         // server -> worker: `offset` more bytes of a tensor are there (some policies)
  kNumber = 10,     // worker -> server: its next push has the dispatch number `offset` (traces)
  kReceived = 11,   // either: `offset` bytes of this link have reached the sender, in all
  kLetter = 12,     // MLfabric, either: a piece of a letter of `tensor` bytes, at `offset`
  kPart = 13,       // MLfabric, either: bytes of transfer number `tensor`, at `offset`
  kPush = 14,       // as kData, but the sum is not wanted: the slot's kTaken tells that it is made
  kFirst = 15,      // worker -> server: elements of the first value; answered by the slot's kTaken
  kTaken = 16,      // server -> worker: nothing more will come of the slot at `offset`
  kRows = 17,       // worker -> server: bytes of a slot's set of rows, for a sum
  kRowSum = 18,     // server -> worker: bytes of a slot's set of summed rows
  kCodedSum = 19,   // server -> worker: elements of the sum, coded as the number says
  kCodedPart = 20,  // MLfabric, either: as kPart, but elements coded as the job has them
  // Of a slot whose server is lost, with another that sums it from now on; `offset` is the slot:
  kStands =
      21,  // worker -> server: the sum of `round` is the last one it has (packets/resumption.h)
  kResumed = 22,  // server -> worker: it goes on after `round`
  kWanted = 23,   // server -> worker: others have not got the sum of `round`
  kGiven = 24,    // worker -> server: that sum, coded as the number says
  kBehind = 25,   // server -> worker: others have sent so many of the tensor's elements in `round`
};

struct Header {
  uint32_t tensor = 0;
  uint32_t length = 0;
  uint64_t offset = 0;
  int32_t priority = 0;
  PacketKind kind = PacketKind::kData;
  uint8_t round = 0;
};
using HeaderBytes = std::array<uint8_t, kHeaderBytes>;

HeaderBytes Encode(const Header& header);
// A packet's checksum; `payload_crc` is Crc32c(0, payload).
uint32_t PacketCrc(uint32_t payload_crc, const HeaderBytes& header);
// `packet_bytes_max` bounds the payload of data and sums.
Status Decode(const uint8_t* bytes, size_t packet_bytes_max, Header* header);

}  // namespace mercury
