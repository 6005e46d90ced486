// What the two ends of a data link have in common: packets come in, packets are asked for. A
// worker's end is WorkerStreams, a server's is Aggregator; links and tests drive them alike.
//
// Thread-safety: none; one lane owns an endpoint. No I/O, no clock: `now_us` is passed in.
// Ownership: an OutPacket keeps its payload alive.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/never.h"
#include "base/status.h"
#include "links/payload_checks.h"
#include "links/wire.h"
#include "trace/trace_event.h"

namespace mercury {

// Whether a packet is the first or the last of its tensor, and the event that says so: `event` is
// the first's, with the length that the last's will have.
struct TraceMark {
  bool first = false, last = false;
  uint8_t last_operation = 0;
  TraceEvent event;
};

struct OutPacket {
  bool checked = false;  // the link says before it asks: the packet will have a check
  Header header;
  const char* payload = nullptr;
  std::shared_ptr<PayloadChecks> checks;  // of the block that the payload is a part of; may be null
  uint32_t at = 0;                        // in that block
  std::shared_ptr<const void> keep;
  TraceMark trace;
};

// A packet that carries text, or nothing.
inline OutPacket TextPacket(PacketKind kind, uint32_t tensor, uint64_t offset, std::string text) {
  auto owned = std::make_shared<const std::string>(std::move(text));
  OutPacket out;
  out.header.kind = kind;
  out.header.tensor = tensor;
  out.header.offset = offset;
  out.header.length = static_cast<uint32_t>(owned->size());
  out.payload = owned->data();
  out.keep = std::move(owned);
  return out;
}

class Endpoint {
 public:
  virtual ~Endpoint() = default;
  // As PacketSink's, for the link to `peer` (a rank). An error closes the link.
  virtual Status OnHeader(int peer, const Header& header, int64_t now_us, char** target) = 0;
  virtual Status OnPacket(int peer, const Header& header, int64_t now_us) = 0;
  // The next packet for `peer`; false: none now.
  virtual bool Next(int peer, int64_t now_us, OutPacket* out) = 0;
  // What the kernel knows of the path: its shortest round trip, and how fast it delivered lately
  // (0: it was not busy).
  virtual void OnPath(int /*peer*/, int64_t /*round_trip_us*/, double /*bytes_per_second*/) {}
  // The link to `peer` takes no more for now; it asks when there is room.
  virtual void OnFull(int /*peer*/, int64_t /*now_us*/) {}
  // When Next may change its mind about `peer` by time alone.
  virtual int64_t WakeAt(int /*peer*/) const { return kNever; }
};

}  // namespace mercury
