// One worker's end, whose packets are taken and given as if they went over links.
//
// Thread-safety: none. Ownership: the worker owns its streams; what was asked is the test's.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness.h"
#include "packets/coded_operation.h"
#include "packets/worker_streams.h"

namespace mercury::testing {

inline WorkerStreamsOptions WorkerOptions(PolicyKind kind = PolicyKind::kPriority) {
  WorkerStreamsOptions o;
  o.policy.kind = kind;
  o.policy.packet_bytes = 1024;
  o.policy.unit_bytes = DefaultUnitBytes(kind);
  o.policy.credit.fixed_bytes = 1 << 20;
  o.stall.warn_us = 5000000;
  return o;
}

// A tensor of bytes, and what became of its operations.
struct Asked {
  std::shared_ptr<Tensor> tensor;
  std::string src, dst;
  std::vector<Status> outcomes;
};

class LoneWorker {
 public:
  explicit LoneWorker(const WorkerStreamsOptions& options)
      : options_(options),
        streams(options, [this](const std::string& line) { reports.push_back(line); }) {}

  std::unique_ptr<Asked> Tensor(uint64_t key, size_t bytes, bool asynchronous = false) {
    auto asked = std::make_unique<Asked>();
    TensorTraits d;
    d.key = key;
    d.shape = {bytes};
    d.dtype = DType::kUint8;
    d.name = "t" + std::to_string(key);
    d.asynchronous = asynchronous;
    asked->tensor = std::make_shared<mercury::Tensor>(d);
    for (size_t i = 0; i < bytes; ++i) asked->src.push_back(static_cast<char>(i * 7 + key));
    asked->dst.assign(bytes, '?');
    return asked;
  }
  std::shared_ptr<Operation> Operation_(Asked* asked, int32_t priority = 0, bool fetch = false) {
    auto op = std::make_shared<Operation>();
    op->tensor = asked->tensor;
    op->src = fetch ? nullptr : asked->src.data();
    op->dst = asked->dst.data();
    op->priority = priority;
    if (fetch) op->kind = Operation::Kind::kPull;
    op->done = [asked](const Status& status) { asked->outcomes.push_back(status); };
    return op;
  }
  // The sum of a row of eight bytes.
  std::shared_ptr<Operation> Row(Asked* asked, int64_t number) {
    auto op = Operation_(asked);
    op->kind = Operation::Kind::kRows;
    op->rows = {&number, 1, asked->src.data(), 8};
    REQUIRE_OK(
        CodeOperation(PlacementOf(*op, options_.policy.packet_bytes, options_.shares), op.get()));
    op->rows.numbers = nullptr;  // its set has it
    return op;
  }
  void Submit(Asked* asked, int32_t priority = 0, bool fetch = false) {
    streams.Submit(Operation_(asked, priority, fetch), now_us);
  }
  // As many as there are, but no more than that.
  std::vector<OutPacket> Take(size_t most, int link = 0) {
    std::vector<OutPacket> all;
    OutPacket out;
    while (all.size() < most && streams.Next(link, now_us, &out)) all.push_back(out);
    return all;
  }
  std::vector<OutPacket> Drain(int link = 0) {
    std::vector<OutPacket> all = Take(10000, link);
    REQUIRE_TRUE(all.size() < 10000);
    return all;
  }
  Status Receive(Header header, const std::string& payload, int server = 0) {
    header.length = static_cast<uint32_t>(payload.size());
    char* target = nullptr;
    Status status = streams.OnHeader(server, header, now_us, &target);
    if (!status.ok()) return status;
    if (target != nullptr && !payload.empty()) std::memcpy(target, payload.data(), payload.size());
    return streams.OnPacket(server, header, now_us);
  }
  Status Sum(uint32_t tensor, uint64_t offset, uint8_t round, const std::string& payload,
             int server = 0) {
    Header h;
    h.kind = PacketKind::kSum;
    h.tensor = tensor;
    h.offset = offset;
    h.round = round;
    return Receive(h, payload, server);
  }
  Status Text(PacketKind kind, uint32_t tensor, uint64_t offset, const std::string& text,
              int link = 0) {
    Header h;
    h.kind = kind;
    h.tensor = tensor;
    h.offset = offset;
    return Receive(h, text, link);
  }

 private:
  const WorkerStreamsOptions options_;

 public:
  WorkerStreams streams;
  std::vector<std::string> reports;
  int64_t now_us = 1000;
};

}  // namespace mercury::testing
