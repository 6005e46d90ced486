// A server's end: sums the workers' packets slot by slot, and has each sum sent to every worker the
// moment its last copy is in.
//
//   slot:  empty --first bytes--> summing --last worker's last byte--> empty (its sum is ready)
//
// Where a slot comes in several packets, what all copies have of it goes back before the rest is
// there: when something more urgent comes in between, the rest may take its time.
//
// A sum is kept as the slot's value until the next one replaces it, so that a worker may fetch it;
// before the first sum, the value is what a worker has given as the first one, and who fetches
// before there is one waits. What is pushed to an asynchronous tensor changes the value at once.
// Tensors are made by the first worker that declares them; the others must declare the same. What
// is wrong with one tensor fails that tensor on every worker; what is wrong with a packet fails the
// link.
//
// Thread-safety, I/O, clock: see endpoint.h. Ownership: buffers come from the pool; a sum is shared
// by those it is still to be sent to. Invariants: every worker gets every sum that it wants exactly
// once and in full, or the tensor's failure; a slot never sums two rounds at a time; nothing that
// is shared is written to.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "links/endpoint.h"
#include "packets/declaration.h"
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
  struct Named;

  std::string NoMemory(const std::string& what) const;
  Status Declare(int worker, const Header& header);
  std::unique_ptr<Tensor> NewTensor(int worker, const Declaration& declared) const;
  Status BeginData(Peer* peer, int worker, const Header& header, char** target);
  Status BeginRows(Peer* peer, int worker, const Header& header, char** target);
  Status CheckRound(const Tensor& tensor, uint64_t mine, int worker, uint64_t at,
                    const Header& header) const;
  Status EndData(Peer* peer, int worker, const Header& header, int64_t now_us);
  Status EndRows(Peer* peer, int worker, const Header& header, int64_t now_us);
  void EndFirst(Peer* peer, int worker);
  void Applied(Peer* peer, int worker, Kind kind);
  void Acknowledge(Peer* peer, int worker, uint64_t bytes);
  void AnswerPart(Tensor* tensor, uint64_t mine);
  void CopyComplete(Tensor* tensor, uint64_t mine, bool last_of_all);
  void SlotComplete(Tensor* tensor, uint64_t mine);
  void Enqueue(Tensor* tensor, uint64_t mine, const Block& sum, uint32_t from, uint8_t round);
  void GiveValue(Tensor* tensor, uint64_t mine, int worker, int32_t priority);
  void GiveWaiting(Tensor* tensor, uint64_t mine);
  void SayTaken(Tensor* tensor, uint64_t mine, int worker);
  void NextSum(Peer* peer, int worker, OutPacket* out);
  void NextRows(Peer* peer, int worker, OutPacket* out);
  void Sent(Peer* peer, int worker);
  Status Fetch(Peer* peer, int worker, const Header& header);
  Status Answer(Peer* peer, int worker, const Header& header);
  void FailTensor(Tensor* tensor, const Status& status);
  static void SendError(Peer* peer, uint32_t number, const Status& status);
  void FailIfDeparted(Tensor* tensor, uint64_t mine);

  const AggregatorOptions options_;
  PacketPool pool_;
  PacketTrace trace_;
  std::map<std::pair<uint64_t, bool>, std::unique_ptr<Tensor>> tensors_;  // by key, and rows
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace mercury
