// What a hostile server may send a worker that has four tensors under way. The first byte chooses
// the policy; then come pieces: a byte says what the worker does afterwards (bits 6 and 7) and how
// many bytes of the server precede that.
#include <memory>
#include <string>
#include <vector>

#include "byte_link.h"
#include "fuzz.h"
#include "packets/coded_operation.h"
#include "packets/worker_streams.h"

using namespace mercury;

namespace {

constexpr size_t kPacketBytes = 1024;
unsigned kept = 0;

struct Asked {
  std::shared_ptr<Tensor> tensor;
  bool under_way = false;
};

// The arrays are as large as the tensor, so that a sanitizer sees every byte beyond.
void Submit(WorkerStreams* streams, Asked* asked, bool fetch) {
  if (asked->under_way) return;
  asked->under_way = true;
  const TensorTraits& d = asked->tensor->traits;
  auto arrays = std::make_shared<std::vector<char>>(2 * d.bytes() + 1);
  std::fill(arrays->begin(), arrays->end(), 's');
  auto op = std::make_shared<Operation>();
  auto dst = std::make_shared<std::unique_ptr<char[]>>(new char[d.bytes()]);
  op->tensor = asked->tensor;
  op->src = fetch ? nullptr : arrays->data();
  op->dst = dst->get();
  op->priority = static_cast<int32_t>(d.key);
  if (fetch) op->kind = Operation::Kind::kPull;
  if (!fetch && d.key == 1) op->kind = Operation::Kind::kPush;
  if (!fetch && d.key == 2) op->kind = Operation::Kind::kFirstValue;
  const int64_t rows[] = {0, 3};
  if (!fetch && d.key == 3) {
    op->kind = Operation::Kind::kRows;
    op->rows = {rows, 2, arrays->data(), 100};
  }
  const Placement placement = PlacementOf(*op, kPacketBytes, ServerShares(1));
  FUZZ_REQUIRE(CodeOperation(placement, op.get()).ok());
  op->keep = std::make_shared<std::pair<decltype(arrays), decltype(dst)>>(arrays, dst);
  op->done = [asked, arrays](const Status& status) {
    FUZZ_REQUIRE(asked->under_way);  // once
    FUZZ_REQUIRE(status.ok() == status.text().empty());
    for (const char c : *arrays) FUZZ_REQUIRE(c == 's');
    asked->under_way = false;
  };
  streams->Submit(std::move(op), 0);
}

void Drain(WorkerStreams* streams, int64_t now_us) {
  OutPacket out;
  for (int i = 0; streams->Next(0, now_us, &out); ++i) {
    FUZZ_REQUIRE(i < 100000);
    for (size_t at = 0; at < out.header.length; ++at) kept += static_cast<uint8_t>(out.payload[at]);
    Header back;
    FUZZ_REQUIRE(Decode(Encode(out.header).data(), kPacketBytes, &back).ok());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  WorkerStreamsOptions options;
  options.num_workers = 2;
  options.stall = {1000, 3000};
  options.stalled = [](int worker, const std::string& line) {
    FUZZ_REQUIRE(worker >= 0 && !line.empty());
  };
  options.policy.kind = static_cast<PolicyKind>(data[0] % 6);
  options.policy.packet_bytes = kPacketBytes;
  options.policy.unit_bytes = 3000;
  if ((data[0] & 0x80) != 0) options.policy.credit.fixed_bytes = 2000;
  Asked asked[4];  // outlives the streams
  WorkerStreams streams(options, [](const std::string& line) { FUZZ_REQUIRE(!line.empty()); });
  ByteLink link(&streams, 0, kPacketBytes, false);
  const uint64_t elements[] = {0, 100, 1500, 9000};
  for (uint64_t i = 0; i < 4; ++i) {
    TensorTraits d;
    d.key = i;
    d.shape = {elements[i]};
    d.dtype = DType::kUint8;
    d.name = "t" + std::to_string(i);
    asked[i].tensor = std::make_shared<Tensor>(d);
    Submit(&streams, &asked[i], false);
  }
  int64_t now_us = 0;
  Drain(&streams, now_us);
  for (size_t at = 1; at < size;) {
    const uint8_t piece = data[at++];
    const size_t bytes = std::min<size_t>(piece & 63, size - at);
    link.Feed(data + at, bytes, now_us);
    at += bytes;
    if (!link.status().ok()) {
      FUZZ_REQUIRE(link.status().code() == Code::kCorrupt);
      break;
    }
    now_us += 50000;
    const int then = piece >> 6;
    if (then == 1) Drain(&streams, now_us);
    if (then == 2) streams.Tick(now_us);
    for (Asked& a : asked) {
      if (then == 3) Submit(&streams, &a, (piece & 1) != 0);
    }
  }
  streams.Fail(Status::Closed("the link has failed"));
  for (const Asked& a : asked) FUZZ_REQUIRE(!a.under_way);
  FUZZ_REQUIRE(streams.under_way() == 0);
  Drain(&streams, now_us);
  return 0;
}
