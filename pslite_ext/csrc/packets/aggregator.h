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
// Tensors are made by the first worker that declares them; the others must declare the same. A
// worker's numbers for them are those of all its links. What is wrong with one tensor fails that
// tensor on every worker; what is wrong with a packet fails the link.
//
// Links are numbered as lane_endpoint.h says. A slot's packets come over one link, in order, and
// its sum leaves over one that is free when it begins.
//
// Thread-safety: all functions from any thread, one at a time for each link. I/O, clock: see
// endpoint.h. Ownership: buffers come from the pool; a sum is shared by those it is still to be
// sent to. Invariants: every worker gets every sum that it wants exactly once and in full, or the
// tensor's failure; a slot never sums two rounds at a time; nothing that is shared is written to.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "packets/declaration.h"
#include "packets/lane_calls.h"
#include "packets/lane_turn.h"
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
  LaneCalls::Wake wake;                     // needed for more than one lane
  PacketPool::Allocate allocate = nullptr;  // for tests
};

class Aggregator : public Endpoint {
 public:
  explicit Aggregator(const AggregatorOptions& options);
  ~Aggregator() override;

  Status OnHeader(int link, const Header& header, int64_t now_us, char** target) override;
  Status OnPacket(int link, const Header& header, int64_t now_us) override;
  bool Next(int link, int64_t now_us, OutPacket* out) override;
  void OnFull(int link, int64_t now_us) override;
  void OnPath(int link, int64_t round_trip_us, double bytes_per_second) override;
  // How large packets to a worker are at most; 0: as large as they can be.
  void SetPacketBytes(int worker, uint64_t bytes);

  const PacketPool& pool() const { return pool_; }
  size_t tensors() const;
  // Sums that wait to be sent to a worker, by priority.
  std::vector<std::pair<int32_t, size_t>> Depths(int worker) const;

 private:
  struct SummedTensor;
  struct Peer;
  struct Receiving;
  struct Slot;
  struct Arrived;
  struct Ready;
  struct Named;

  std::string NoMemory(const std::string& what) const;
  Status Declare(int worker, const Receiving& link, const Header& header);
  std::unique_ptr<SummedTensor> NewTensor(int worker, const Declaration& declared) const;
  Status BeginData(Receiving* link, int worker, const Header& header, char** target);
  Status BeginRows(Receiving* link, int worker, const Header& header, char** target);
  Status CheckRound(const SummedTensor& tensor, uint64_t mine, int worker, uint64_t at,
                    const Header& header) const;
  // Whether its copies are kept until they are whole.
  bool Keeps(const SummedTensor& tensor, PacketKind kind) const;
  // `adds`: a slot's sum is free, and what has come is to be added to it once the turn is over.
  Status EndData(Receiving* link, int worker, const Header& header, int64_t now_us, bool* adds);
  Status EndRows(Receiving* link, int worker, const Header& header, int64_t now_us);
  void AddArrived(int lane, SummedTensor* tensor, uint64_t mine);
  void EndFirst(SummedTensor* tensor, uint64_t mine, int worker);
  void Applied(SummedTensor* tensor, uint64_t mine, int worker, PacketKind kind);
  void Acknowledge(SummedTensor* tensor, uint64_t mine, int worker, uint64_t bytes);
  void AnswerPart(SummedTensor* tensor, uint64_t mine);
  void CopyComplete(SummedTensor* tensor, uint64_t mine, bool last_of_all);
  void SlotComplete(SummedTensor* tensor, uint64_t mine);
  void Enqueue(SummedTensor* tensor, uint64_t mine, const Block& sum, uint32_t from, uint8_t round);
  void GiveValue(SummedTensor* tensor, uint64_t mine, int worker, int32_t priority);
  void GiveWaiting(SummedTensor* tensor, uint64_t mine);
  void SayTaken(SummedTensor* tensor, uint64_t mine, int worker);
  // Whether all of it that is ready has been sent.
  bool NextSum(const Peer& peer, int worker, Ready* ready, int64_t now_us, OutPacket* out);
  bool NextRows(const Peer& peer, int worker, Ready* ready, int64_t now_us, OutPacket* out);
  void Sent(const Ready& ready, int worker);
  Status Fetch(int worker, const Header& header);
  Status Answer(int worker, const Header& header);
  void FailTensor(SummedTensor* tensor, const Status& status);
  void SendError(int worker, uint32_t number, const Status& status);
  void Send(int worker, OutPacket packet);
  void Queue(int worker, int32_t priority, Ready ready);
  void FailIfDeparted(SummedTensor* tensor, uint64_t mine);
  // It has finished and will send no more: tensors that wait for it fail.
  void Leaves(int worker);
  void SetBytes(int worker, uint64_t bytes);

  const AggregatorOptions options_;
  PacketPool pool_;
  mutable std::mutex mutex_;  // guards what follows
  bool torn_ = false;
  PacketTrace trace_;
  std::map<std::pair<uint64_t, bool>, std::unique_ptr<SummedTensor>> tensors_;  // by key, and rows
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<std::unique_ptr<Receiving>> links_;
  LaneCalls calls_;
  int lane_ = 0;  // whose turn it is
};

}  // namespace mercury
