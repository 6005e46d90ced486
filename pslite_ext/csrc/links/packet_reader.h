// A stream of bytes becomes packets: where the next bytes belong, and what they mean.
//
// Payloads are received into place. What follows one is read together with it, into a small
// buffer from which headers and short packets are taken without further calls of the system.
//
// Thread-safety: none. No I/O: the owner reads into Targets() and says with Advance() how much it
// was. Invariants: the sink sees OnHeader and OnPacket in turn; after an error, nothing more.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "links/wire.h"

namespace mercury {

class PacketSink {
 public:
  virtual ~PacketSink() = default;
  // Where the payload goes; *target stays nullptr for a payload that is dropped. Not asked for the
  // target of an empty payload.
  virtual Status OnHeader(const Header& header, char** target) = 0;
  virtual Status OnPacket(const Header& header) = 0;
};

class PacketReader {
 public:
  PacketReader(size_t packet_bytes_max, bool checksum, PacketSink* sink)
      : packet_bytes_max_(packet_bytes_max), checksum_(checksum), sink_(sink) {}

  // Fills at most two pieces and says how many.
  int Targets(iovec* pieces);
  // `bytes` have been read into the targets.
  Status Advance(size_t bytes);
  // Bytes that are missing of the packet under way, or of a header.
  size_t missing() const;
  // Whether a packet has begun and not ended.
  bool in_packet() const { return header_have_ != 0; }

 private:
  Status Take(const char* data, size_t bytes);
  Status BeginPacket();
  Status EndPacket();
  void CountPayload(size_t bytes);

  const size_t packet_bytes_max_;
  const bool checksum_;
  PacketSink* const sink_;
  std::array<char, 2048> ahead_;
  size_t ahead_room_ = 0;    // of the last Targets
  size_t payload_room_ = 0;  // of the last Targets
  std::vector<char> dropped_;

  std::array<uint8_t, kHeaderBytes> raw_header_{};
  size_t header_have_ = 0;
  Header header_;
  char* target_ = nullptr;
  size_t payload_left_ = 0;
  uint32_t crc_ = 0;
  std::array<uint8_t, kChecksumBytes> raw_checksum_{};
  size_t checksum_have_ = 0;
};

}  // namespace mercury
