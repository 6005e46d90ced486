// A server's end: sums the workers' packets slot by slot, and has each sum sent to every worker the
// moment its last copy is in.
//
//   slot:  empty --first bytes--> summing --last worker's last byte--> empty (its sum is ready)
//
// Where a slot comes in several packets, what all copies have of it goes back before the rest is
// there: when something more urgent comes in between, the rest may take its time.
//
// The first copy of a slot becomes the sum without being copied. A sum is kept until the next one
// replaces it, so that a worker may fetch it again. Tensors are made by the first worker that
// declares them; the others must declare the same. What is wrong with one tensor fails that tensor
// on every worker; what is wrong with a packet fails the link.
//
// Thread-safety, I/O, clock: see endpoint.h. Ownership: buffers come from the pool; a sum is shared
// by those it is still to be sent to. Invariants: every worker gets every sum exactly once and in
// full, or the tensor's failure; a slot never sums two rounds at a time; nothing that is shared is
// written to.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "links/endpoint.h"
#include "packets/packet_pool.h"
#include "packets/packet_trace.h"
#include "packets/placement.h"
#include "policy/policy.h"
#include "policy/urgency_queue.h"

namespace mercury {

constexpr size_t kTensorsMax = 65536;  // of a worker

struct AggregatorOptions {
  int num_workers = 1;
  ServerShares shares;
  int server = 0;
  int lanes = 1;
  int lane = 0;
  PolicyKind policy = PolicyKind::kPriority;
  uint64_t unit_bytes = 0;
  uint64_t packet_bytes = 64 << 10;
  uint64_t bytes_max = 0;  // in buffers; 0: no cap
  size_t tensors_max = kTensorsMax;
  size_t levels_max = kPriorityLevelsMax;
  bool adapt_packets = false;  // smaller ones to workers with slow links
  // Sums are made in the order of ranks, whatever the order of arrival, and so are the same, bit
  // for bit, in every run. Costs a buffer for each worker and slot, and that a sum is made late.
  bool deterministic = false;
  TraceRing* trace = nullptr;  // null: nothing is traced
  uint64_t trace_overhead = kHeaderBytes;
  std::shared_ptr<LentMemory> lends;        // where sums lie; null: nobody borrows
  PacketPool::Allocate allocate = nullptr;  // for tests
};

class Aggregator : public Endpoint {
 public:
  explicit Aggregator(const AggregatorOptions& options);
  ~Aggregator() override;

  Status OnHeader(int worker, const Header& header, int64_t now_us, char** target) override;
  Status OnPacket(int worker, const Header& header, int64_t now_us) override;
  bool Next(int worker, int64_t now_us, OutPacket* out) override;
  // The worker has finished and will send no more: tensors that wait for it fail.
  void Departed(int worker);
  void OnPath(int worker, int64_t round_trip_us, double bytes_per_second) override;
  // How large packets to a worker are at most; 0: as large as they can be.
  void SetPacketBytes(int worker, uint64_t bytes);

  const PacketPool& pool() const { return pool_; }
  size_t tensors() const { return tensors_.size(); }
  // Sums that wait to be sent to a worker, by priority.
  std::vector<std::pair<int32_t, size_t>> Depths(int worker) const;

 private:
  struct Tensor;
  struct Peer;
  struct Slot;
  struct Ready;

  std::string NoMemory(const std::string& what) const;
  Status Declare(int worker, const Header& header);
  Status BeginData(Peer* peer, int worker, const Header& header, char** target);
  void EndData(Peer* peer, int worker, int64_t now_us);
  void AnswerPart(Tensor* tensor, uint64_t mine);
  void SlotComplete(Tensor* tensor, uint64_t mine);
  void Enqueue(Tensor* tensor, uint64_t mine, const Block& sum, uint32_t from, uint8_t round);
  Status Fetch(Peer* peer, const Header& header);
  Status Answer(Peer* peer, int worker, const Header& header);
  void FailTensor(Tensor* tensor, const Status& status);
  static void SendError(Peer* peer, uint32_t number, const Status& status);
  void FailIfDeparted(Tensor* tensor, uint64_t mine);

  const AggregatorOptions options_;
  PacketPool pool_;
  PacketTrace trace_;
  std::unordered_map<uint64_t, std::unique_ptr<Tensor>> tensors_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace mercury
