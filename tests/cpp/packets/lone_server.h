// One server's aggregator, to which packets are given as if they had come over links.
//
// Thread-safety: none. Ownership: as the aggregator's.
#pragma once

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "harness.h"
#include "packets/aggregator.h"

namespace mercury::testing {

struct Got {
  Header header;
  std::string payload;
};

inline int allocations_left = -1;  // -1: any number
inline void* Allocate(size_t alignment, size_t bytes) {
  if (allocations_left == 0) return nullptr;
  if (allocations_left > 0) --allocations_left;
  return std::aligned_alloc(alignment, bytes);
}

inline AggregatorOptions Options(int workers) {
  AggregatorOptions o;
  o.num_workers = workers;
  o.packet_bytes = 1024;
  allocations_left = -1;
  o.allocate = Allocate;
  return o;
}

// One server, to which packets are given as if they had come over a link.
class LoneServer {
 public:
  explicit LoneServer(const AggregatorOptions& options) : aggregator(options) {}

  int64_t now_us = 0;

  Status Send(int worker, Header header, const std::string& payload = "") {
    header.length = static_cast<uint32_t>(payload.size());
    char* target = nullptr;
    Status status = aggregator.OnHeader(worker, header, now_us, &target);
    if (!status.ok()) return status;
    if (target != nullptr && !payload.empty()) std::memcpy(target, payload.data(), payload.size());
    return aggregator.OnPacket(worker, header, now_us);
  }
  // Only the header of a packet of tensor 0 has come: where the rest is to go.
  char* Begin(int worker, PacketKind kind, uint32_t length, Header* header) {
    header->kind = kind;
    header->round = 1;
    header->length = length;
    char* target = nullptr;
    CHECK_OK(aggregator.OnHeader(worker, *header, now_us, &target));
    REQUIRE_TRUE(target != nullptr);
    return target;
  }
  Status Send(int worker, PacketKind kind, uint32_t number) {
    Header h;
    h.kind = kind;
    h.tensor = number;
    return Send(worker, h);
  }
  Status Declare(int worker, uint32_t number, uint64_t key, uint64_t elements,
                 DType dtype = DType::kUint8, uint64_t row_elements = 0) {
    Declaration d;
    d.key = key;
    d.elements = elements;
    d.row_elements = row_elements;
    d.dtype = dtype;
    d.codec = PlainCodec(dtype).number;
    d.name = "t" + std::to_string(key);
    Header h;
    h.kind = PacketKind::kDeclare;
    h.tensor = number;
    return Send(worker, h, Encode(d));
  }
  Status Data(int worker, uint32_t number, uint64_t offset, uint8_t round,
              const std::string& payload, int32_t priority = 0) {
    Header h;
    h.tensor = number;
    h.offset = offset;
    h.round = round;
    h.priority = priority;
    return Send(worker, h, payload);
  }
  std::vector<Got> Drain(int worker) {
    std::vector<Got> all;
    OutPacket out;
    while (aggregator.Next(worker, 0, &out)) {
      all.push_back({out.header, std::string(out.payload, out.header.length)});
      REQUIRE_TRUE(all.size() < 10000);
    }
    return all;
  }
  // What a worker is told of a tensor's failure; code kOk: nothing, or too much.
  Status ErrorTo(int worker) {
    const auto got = Drain(worker);
    if (got.size() != 1 || got[0].header.kind != PacketKind::kError) return Status::Ok();
    Status status;
    Decode(got[0].payload, &status);
    return status;
  }

  Aggregator aggregator;
};

inline std::string Of(size_t bytes, char value) { return std::string(bytes, value); }

}  // namespace mercury::testing
