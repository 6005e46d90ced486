// What workers ask of a server on the classic path: 12 bytes say what a request is, what follows is
// its payload. Each request gets one answer, and memory stays within its bound.
#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "fuzz.h"
#include "messages/server_store.h"

using namespace mercury;

namespace {

constexpr int kWorkers = 2;
constexpr uint64_t kBytesMax = 4096;
constexpr size_t kHeadBytes = 12;

void Take(std::vector<StoreReply>* replies, std::set<uint64_t>* open) {
  for (const StoreReply& reply : *replies) {
    FUZZ_REQUIRE(open->erase(reply.ticket) == 1);
    FUZZ_REQUIRE(reply.status.ok() == reply.status.text().empty());
  }
  replies->clear();
}

StoreRequest Request(const uint8_t* head, size_t payload_bytes) {
  StoreRequest request;
  request.worker = head[0] % kWorkers;
  request.operation = static_cast<StoreOperation>(head[1]);
  request.key = head[2] % 4;
  request.offset = head[3] % 2;
  // Most often what the payload is, so that sums are reached; else whatever is claimed.
  uint32_t claimed;
  std::memcpy(&claimed, head + 4, sizeof(claimed));
  request.bytes = claimed == 0 ? payload_bytes : claimed;
  request.dtype = static_cast<DType>(head[8]);
  const Codec* codec = FindCodec(head[9]);
  if (codec != nullptr && !codec->plain) request.codec = codec;
  request.asynchronous = (head[10] & 1) != 0;
  request.row_bytes = head[11];
  return request;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Of the first request's bits, one that says nothing there.
  ServerStore store(kWorkers, kBytesMax, size > 10 && (data[10] & 2) != 0);
  std::set<uint64_t> open;
  std::vector<StoreReply> replies;
  uint64_t ticket = 0;
  while (size > kHeadBytes) {
    const uint8_t* head = data;
    const size_t payload_bytes = std::min<size_t>(head[kHeadBytes], size - kHeadBytes - 1);
    data += kHeadBytes + 1;
    size -= kHeadBytes + 1;
    StoreRequest request = Request(head, payload_bytes);
    request.payload = Buffer::Allocate(payload_bytes);
    if (payload_bytes != 0) std::memcpy(request.payload.data, data, payload_bytes);
    data += payload_bytes;
    size -= payload_bytes;
    request.ticket = ++ticket;
    open.insert(ticket);
    store.Handle(std::move(request), &replies);
    Take(&replies, &open);
    FUZZ_REQUIRE(store.bytes() <= kBytesMax);
  }
  for (int worker = 0; worker < kWorkers; ++worker) store.Departed(worker, &replies);
  Take(&replies, &open);
  return 0;
}
