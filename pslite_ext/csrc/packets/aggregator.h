// A server's end: sums the workers' packets slot by slot, and has each sum sent to every worker the
// moment its last copy is in. Of several workers of a host, one copy may stand for all (hosts.h).
// It is also what a host's own workers are summed by (aggregator_host.cc).
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
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "packets/awaited.h"
#include "packets/declaration.h"
#include "packets/host_sums.h"
#include "packets/hosts.h"
#include "packets/lane_calls.h"
#include "packets/lane_turn.h"
#include "packets/packet_pool.h"
#include "packets/packet_trace.h"
#include "packets/placement.h"
#include "policy/policy.h"
#include "policy/urgency_queue.h"

namespace mercury {

constexpr size_t kTensorsMax = size_t{1} << 20;  // of a worker, with what it gives to newcomers

struct AggregatorOptions {
  int num_workers = 1;             // for which there are places
  std::set<int> absent, new_ones;  // of them: who is not there; and who is as yet a newcomer
  ServerShares shares;
  int server = 0;
  Hosts hosts;
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
  // Who leaves is missed by nobody, nor who is lost: from then on, sums are those of the others.
  bool elastic = false;
  // It takes the place of a server that is lost: workers say first where they stand.
  bool resumes = false;
  TraceRing* trace = nullptr;  // null: nothing is traced
  uint64_t trace_overhead = kHeaderBytes;
  std::shared_ptr<LentMemory> lends;  // where sums lie; null: nobody borrows
  LaneCalls::Wake wake;               // needed for more than one lane
  Awaited::Says slow;                 // hears of a worker that sums wait for
  // Hears of a worker with which others cannot go on (aggregator_resumes.cc).
  std::function<void(int worker)> unfit;
  // Of a host's sums (aggregator_host.cc): the ranks of its workers, of whom the first is this
  // process; the servers whose slots they are summed for; who hears of them. Empty: of a server.
  std::vector<int> ranks;
  std::vector<int> servers;
  HostEvents above;
  PacketPool::Allocate allocate = nullptr;  // for tests

  // The host's that `leader` leads, once the shares are known.
  void OfHost(const Hosts& of, int leader);
};

class Aggregator : public Endpoint, public HostSums {
 public:
  explicit Aggregator(const AggregatorOptions& options);
  ~Aggregator() override;

  Status OnHeader(int link, const Header& header, int64_t now_us, char** target) override;
  Status OnPacket(int link, const Header& header, int64_t now_us) override;
  bool Next(int link, int64_t now_us, OutPacket* out) override;
  void OnFull(int link, int64_t now_us) override;
  void OnPath(int link, int64_t round_trip_us, double bytes_per_second) override;
  // Of a host's sums:
  Status Begin(const std::shared_ptr<Operation>& op, uint8_t round,
               std::vector<uint64_t>* ready) override;
  std::vector<uint64_t> More(const Operation& op) override;
  Status Take(const Operation& op, uint64_t slot, Block* copy, bool* wanted) override;
  Status Room(const Operation& op, uint64_t slot, Block* room) override;
  void Give(const Operation& op, uint64_t slot, const Block& sum, int workers, int lane) override;
  void Fail(const TensorTraits& traits, const Status& status, int lane) override;
  void LetGo() override;
  std::string Missing(uint64_t key) override;
  // The job goes on without it: nobody waits for its copies any more. What had come of them stays
  // in the sums under way, whole packets of it.
  void Drop(int worker, int lane);
  // aggregator_newcomers.cc: another has the place of one that is out; it is in from now on.
  void Expect(int worker);
  Status LetIn(int worker, int lane);
  void Release(uint64_t key);
  // A tensor of which something is here that no worker has; empty: there is none. Whether that
  // stays so, or only until it has been fetched.
  struct Held {
    std::string tensor;
    bool for_good = false;
    bool fetched = false;  // others were, and may be on their way
    void Add(const Held& other) {
      if (tensor.empty() || other.for_good) tensor = other.tensor;
      for_good = for_good || other.for_good;
      fetched = fetched || other.fetched;
    }
  };
  Held OnlyHere() const;
  // How large packets to a worker are at most; 0: as large as they can be.
  void SetPacketBytes(int worker, uint64_t bytes);

  const PacketPool& pool() const { return pool_; }
  size_t tensors() const;
  // For how many thousandths of the time sums have waited for it alone, lately.
  int AwaitedPermille(int worker) const;
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
  struct HostNews;

  int RankOfPeer(int worker) const {
    return options_.ranks.empty() ? worker : options_.ranks[static_cast<size_t>(worker)];
  }
  static bool Alike(const Declaration& a, const Declaration& b);
  Status Differ(const SummedTensor& tensor, int worker, const Declaration& declared) const;
  SummedTensor* TensorOf(const Operation& op) const;
  // Of those that are in the job.
  bool AllAreIn(const Slot& slot) const;
  bool AllOthersAreIn(const Slot& slot) const;
  bool IsReady(const SummedTensor& tensor, uint64_t mine) const;
  uint64_t CountReady(SummedTensor* tensor, int server);
  void OthersComplete(SummedTensor* tensor, uint64_t mine);
  void TellAbove(int lane);
  std::string NoMemory(const std::string& what) const;
  Status Declare(int worker, const Receiving& link, const Header& header);
  SummedTensor* Known(int worker, const Declaration& declared);
  std::unique_ptr<SummedTensor> NewTensor(int worker, const Declaration& declared);
  Status BeginData(Receiving* link, int worker, const Header& header, char** target);
  Status BeginRows(Receiving* link, int worker, const Header& header, char** target);
  Status CheckRound(const SummedTensor& tensor, uint64_t mine, int worker, uint64_t at,
                    const Header& header) const;
  Status CheckCounted(const SummedTensor& tensor, uint64_t mine, int worker, int workers) const;
  // Whether its copies are kept until they are whole.
  bool Keeps(const SummedTensor& tensor, PacketKind kind) const;
  // `adds`: a slot's sum is free, and what has come is to be added to it once the turn is over.
  Status EndData(Receiving* link, int worker, const Header& header, int64_t now_us, bool* adds);
  Status EndRows(Receiving* link, int worker, const Header& header, int64_t now_us);
  Status TakePacket(int number, const Header& header, int64_t now_us, SummedTensor** adds_to,
                    uint64_t* mine);
  void AddArrived(int lane, SummedTensor* tensor, uint64_t mine);
  void CopyCame(Slot* slot, int worker, int workers, int64_t now_us);
  void EndFirst(SummedTensor* tensor, uint64_t mine, int worker);
  void Applied(SummedTensor* tensor, uint64_t mine, int worker, PacketKind kind);
  void Acknowledge(SummedTensor* tensor, uint64_t mine, int worker, uint64_t bytes);
  void AnswerPart(SummedTensor* tensor, uint64_t mine);
  static bool LevelsWorkers(const AggregatorOptions& options);
  void Level(SummedTensor* tensor, int worker, const Receiving& link, const Header& header);
  bool Begins(SummedTensor* tensor, uint64_t mine, int worker, const Named& named, PacketKind kind);
  // Whether the worker's copy is in, by itself or in what stands for its host.
  bool IsIn(const SummedTensor& tensor, uint64_t mine, int worker) const;
  void CopyComplete(SummedTensor* tensor, uint64_t mine, int workers, bool last_of_all);
  void SlotComplete(SummedTensor* tensor, uint64_t mine);
  void Enqueue(SummedTensor* tensor, uint64_t mine, const Block& sum, const Codec* codec,
               uint32_t from, uint8_t round, int workers);
  void GiveValue(SummedTensor* tensor, uint64_t mine, int worker, int32_t priority);
  void GiveWaiting(SummedTensor* tensor, uint64_t mine);
  void SayTaken(SummedTensor* tensor, uint64_t mine, int worker, int workers);
  // Whether all of it that is ready has been sent.
  bool NextSum(const Peer& peer, int worker, Ready* ready, int64_t now_us, OutPacket* out);
  bool NextRows(const Peer& peer, int worker, Ready* ready, int64_t now_us, OutPacket* out);
  void Sent(const Ready& ready, int worker);
  Status Fetch(int worker, const Header& header);
  Status Answer(int worker, const Header& header);
  Status Failed(int worker, const Receiving& link, const Header& header);
  void FailTensor(SummedTensor* tensor, const Status& status);
  void SendError(int worker, uint32_t number, const Status& status);
  void Send(int worker, OutPacket packet);
  void Queue(int worker, int32_t priority, Ready ready);
  void FailIfDeparted(SummedTensor* tensor, uint64_t mine);
  Status Resume(int worker, const Header& header);
  Status BeginGiven(Receiving* link, int worker, const Header& header, char** target);
  Status EndGiven(Receiving* link, int worker, const Header& header);
  void AskForSum(SummedTensor* tensor, uint64_t mine);
  void TryResume(SummedTensor* tensor, uint64_t mine);
  void Resumed(SummedTensor* tensor, uint64_t mine);
  void SayResumed(SummedTensor* tensor, uint64_t mine, int worker);
  static bool Stands(const SummedTensor& tensor, uint64_t mine);
  void AskForValue(SummedTensor* tensor, uint64_t mine);
  void DropFromResumption(SummedTensor* tensor, uint64_t mine, int worker);
  // It has finished and will send no more: tensors that wait for it fail, or do without.
  void Leaves(int worker);
  static Status NoFirstValue();
  static bool MaySay(const Peer& peer, PacketKind kind);
  bool AwaitsFirst(const Slot& slot) const;
  void DropNow(int worker);
  void DropFrom(SummedTensor* tensor, int worker, bool had_copies);
  void DropFromSum(SummedTensor* tensor, uint64_t mine, int worker);
  void SetBytes(int worker, uint64_t bytes);

  const AggregatorOptions options_;
  const bool levels_workers_;  // it tells workers that are behind with something
  PacketPool pool_;
  mutable std::mutex mutex_;  // guards what follows
  bool torn_ = false;
  PacketTrace trace_;
  Awaited awaited_;
  std::map<std::pair<uint64_t, bool>, std::unique_ptr<SummedTensor>> tensors_;  // by key, and rows
  uint64_t kept_ = 0;  // bytes of all values of whole arrays, once they are there
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<std::unique_ptr<Receiving>> links_;
  LaneCalls calls_;
  int live_;  // workers that are in the job
  std::vector<HostNews> news_;
  int lane_ = 0;  // whose turn it is
};

}  // namespace mercury
