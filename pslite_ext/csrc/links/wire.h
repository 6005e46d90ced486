// Packets as they lie on a data link. docs/wire-format.md says the same for people.
//
//  0        4        8                 16       20  21  22    24
//  | tensor | length | offset          | prio-  |kind|rnd|"MP"| payload (length) | CRC-32C |
//  |        |        |                 | rity   |    |   |    |                  | if asked|
//
// Little-endian. `tensor` is the number that the worker gave it on this link, by declaring it;
// `offset` and `length` are bytes of the tensor; `priority` is MXNet's, larger is more urgent;
// `round` is the number of the sum, modulo 256. The CRC covers the payload, then the header: a
// payload that goes over several links is summed once.
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
#include "sums/sum_kernels.h"

namespace mercury {

constexpr uint16_t kWireVersion = 5;
constexpr size_t kHeaderBytes = 24;
constexpr size_t kChecksumBytes = 4;
constexpr size_t kTensorNameBytesMax = 512;
constexpr uint64_t kTensorBytesMax = uint64_t{1} << 44;

enum class Kind : uint8_t {
  kData = 1,       // worker -> server: a piece of this worker's tensor
  kSum = 2,        // server -> worker: a piece of the sum
  kDeclare = 3,    // worker -> server: what tensor a number stands for
  kFetch = 4,      // worker -> server: send the last sum once more
  kError = 5,      // server -> worker: a tensor has failed of what the payload says (base/status.h)
  kGoodbye = 6,    // either: nothing more will come; offset 0: all is done, 1: the job has failed
  kAsk = 7,        // worker -> server: whom does this tensor wait for?
  kAnswer = 8,     // server -> worker: payload is one byte for each worker, 1: has not sent it all
  kAck = 9,        // server -> worker: `offset` more bytes of a tensor are there (some policies)
  kNumber = 10,    // worker -> server: its next push has the dispatch number `offset` (traces)
  kReceived = 11,  // either: `offset` bytes of this link have reached the sender, in all
  kLetter = 12,    // MLfabric, either: a piece of a letter of `tensor` bytes, at `offset`
  kPart = 13,      // MLfabric, either: bytes of transfer number `tensor`, at `offset`
};

struct Header {
  uint32_t tensor = 0;
  uint32_t length = 0;
  uint64_t offset = 0;
  int32_t priority = 0;
  Kind kind = Kind::kData;
  uint8_t round = 0;
};
using HeaderBytes = std::array<uint8_t, kHeaderBytes>;

HeaderBytes Encode(const Header& header);
// A packet's checksum; `payload_crc` is Crc32c(0, payload).
uint32_t PacketCrc(uint32_t payload_crc, const HeaderBytes& header);
// `packet_bytes_max` bounds the payload of data and sums.
Status Decode(const uint8_t* bytes, size_t packet_bytes_max, Header* header);

struct Declaration {
  uint64_t key = 0;
  uint64_t elements = 0;
  DType dtype = DType::kFloat32;
  uint32_t index = 0;  // of the parameter, in traces
  std::string name;

  uint64_t bytes() const { return elements * ElementBytes(dtype); }
};

std::string Encode(const Declaration& declaration);
Status Decode(const char* bytes, size_t size, Declaration* declaration);

}  // namespace mercury
