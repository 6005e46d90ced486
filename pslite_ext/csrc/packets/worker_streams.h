// A worker's end: cuts tensors into packets, in the policy's order, for every server's links; puts
// the sums that come back into place; completes a tensor when all of it is in.
//
// Nothing is copied: packets point into the gradient (or the sets of its rows), sums are received
// into the output. What a codec changes is coded when its packet is made, and decoded when it has
// come, each by the lane that carries it. Gradient and output may be the same memory, because a
// part's sum comes only after the server has the whole part.
//
// Where other workers share its host (hosts.h), a sum's tensor that leaves the host does so once:
// the leader sends the host's copy of each slot instead of its own, and gives what comes back to
// all; the others send theirs to the leader, which is one more server to them.
//
// Links are numbered as lane_endpoint.h says. A slot's packets go over one link, in order; which
// one is decided when its first packet leaves. Policies that wait for whole units keep to the first
// lane, as the systems that they come from have one connection.
//
// Thread-safety: all functions from any thread, one at a time for each link; operations are
// finished with nothing locked. I/O, clock: see endpoint.h. Ownership: operations are held until
// their last packet and sum; one that fails is given up, and is over when its last packet has been
// let go of, or the job fails. Invariants: a tensor has one operation under way; a tensor is
// declared on a link before its first packet there; sums are taken once, in order within a slot,
// and only for what was sent.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "packets/host_sums.h"
#include "packets/hosts.h"
#include "packets/lane_calls.h"
#include "packets/lane_turn.h"
#include "packets/packet_pool.h"
#include "packets/packet_trace.h"
#include "packets/placement.h"
#include "policy/policy.h"
#include "policy/prophet/prophet_notes.h"
#include "transport/figures.h"
#include "transport/given_up.h"
#include "transport/operation.h"
#include "transport/over.h"
#include "transport/server_shares.h"
#include "transport/stall_times.h"

namespace mercury {

// Where the slots of an operation's tensor are.
Placement PlacementOf(const Operation& op, uint64_t packet_bytes, const ServerShares& shares);

struct WorkerStreamsOptions {
  ServerShares shares;
  int num_workers = 1;
  int rank = 0;
  Hosts hosts;
  std::shared_ptr<HostSums> host_sums;  // a leader's; null: this is none
  int lanes = 1;
  bool deterministic = false;
  PolicyOptions policy;
  StallTimes stall;
  Stalled stalled;             // null: nobody ends the job for that
  TraceRing* trace = nullptr;  // null: nothing is traced
  uint64_t trace_overhead = kHeaderBytes;
  // Sums are kept until the next ones are in: should a server be lost, others may want them.
  // So are values that are fetched, until there is a sum.
  bool keeps_sums = false;
  std::vector<bool> moved;    // by server: its slots have been summed elsewhere; empty: none have
  ProphetNotes::Write notes;  // null: nobody reads it
  LaneCalls::Wake wake;       // needed for more than one lane
};

class WorkerStreams : public Endpoint {
 public:
  // Called with a line that says which tensor waits for whom.
  using Report = std::function<void(const std::string&)>;

  WorkerStreams(const WorkerStreamsOptions& options, Report report);
  ~WorkerStreams() override;

  void Submit(std::shared_ptr<Operation> op, int64_t now_us);
  // More of it is ready. For the first lane, as Submit.
  void More(const std::shared_ptr<Operation>& op, int64_t now_us);
  Status OnHeader(int link, const Header& header, int64_t now_us, char** target) override;
  Status OnPacket(int link, const Header& header, int64_t now_us) override;
  bool Next(int link, int64_t now_us, OutPacket* out) override;
  void OnPath(int link, int64_t round_trip_us, double bytes_per_second) override;
  void OnFull(int link, int64_t now_us) override;
  int64_t WakeAt(int link) const override;
  // Of a leader: as HostEvents say.
  void HostReady(uint64_t key, int server, uint64_t slots, uint8_t round, int lane, int64_t now_us);
  void HostFailed(uint64_t key, const Status& status);
  // The server is lost, and the links to whoever takes its place are still to come; nothing is
  // under way on the old ones any more. For the first lane.
  void Moved(int server, int64_t now_us);
  // How many rounds of each tensor there have been, for a newcomer, while nothing is under way; of
  // one that is let in: what another had.
  std::string Rounds() const;
  Status TakeRounds(const std::string& text);
  // Asks the servers about tensors that have waited too long. The first lane calls it about once a
  // second; Submit is for the first lane, too.
  void Tick(int64_t now_us);
  // Everything that is under way, and all that comes later, fails with this.
  void Fail(Status status);

  // How it sends to a server: all of the figures that are not a link's.
  void Describe(int server, LinkFigures* figures) const;
  // prophet's; nothing with other policies.
  std::optional<ProphetFigures> profile() const;
  // For the next run, with the names of its tensors; empty if nothing is known.
  std::string ProfileText() const;
  size_t under_way() const;
  // A line for each tensor that is.
  std::string Waiting(int64_t now_us) const;

 private:
  struct Stream;
  struct Server;
  struct LinkState;
  struct ServerStream;
  struct Begun;
  struct KeptSum;
  struct Number;
  struct Coding;

  // Peers are numbered as servers are; the leader, to who follows one, is the next.
  int servers() const { return options_.shares.servers(); }
  int peers() const { return servers() + (options_.hosts.Follows(options_.rank) ? 1 : 0); }
  std::string PeerName(int peer) const;
  bool Carries(const Stream& stream, int peer) const;
  bool SendsForHost(const Stream& stream, int server) const;
  bool GoesBySlots(const Stream& stream) const;
  uint64_t ReadySlots(const Stream& stream, int peer) const;
  void TakeReady(Stream* tensor, int peer, uint64_t slots, int lane, int64_t now_us);
  bool GoesTogether(const Stream& stream) const;
  uint8_t RoundAt(const Stream& stream, int peer) const;
  Status BeginTogether(Stream* tensor);
  void FailTogether(Stream* tensor, const Status& status);
  bool TakeForHost(Stream* tensor, ServerStream* part, Begun* begun);
  void GiveToHost(const Stream& stream, ServerStream* part, uint64_t mine, int workers, int lane);
  void LeaderLeft();
  uint8_t LastSum(const Stream& stream, const ServerStream& part, uint64_t mine) const;
  void SayWhereItStands(int server, const Stream& stream, ServerStream* part);
  void Restart(int server, Stream* stream, ServerStream* part, int64_t now_us);
  void PickThoseThatStand(const Stream& stream, ServerStream* part) const;
  void Pick(int server, const Stream& stream, ServerStream* part, uint64_t mine, int64_t now_us);
  void PickReady(int server, const Stream& stream, ServerStream* part, int64_t now_us);
  Status TakeResumed(int server, const Header& header, int64_t now_us);
  Status GiveSum(int server, const Header& header);
  OutPacket FetchOf(const Stream& stream, const ServerStream& part, int server) const;
  // What a lane does at a time: locks, and then finishes what is over.
  class Turn;

  void LoadProfile();
  void NoteReady(const Operation& op, int64_t now_us);
  Stream* StreamOf(const Operation& op);
  void Begin(Stream* tensor, int server, int64_t now_us);
  void End(Stream* tensor);
  void GiveUp(Stream* tensor);
  Number NumberOf(const Stream& stream, int peer) const;
  LinkState& LinkTo(int server, int lane) {
    return *links_[static_cast<size_t>(LinkOf(server, lane, options_.lanes))];
  }
  uint32_t FindNumber(int server, Stream* stream, ServerStream* part, Number number);
  void Declare(LinkState* link, const Stream& stream, const ServerStream& part);
  void Declare(LinkState* link, const Stream& stream, const Number& number);
  void Announce(LinkState* link, const Stream& stream, ServerStream* part, int lane);
  bool MaySend(const Stream& stream, int server, int lane);
  bool NextData(int server, int lane, int64_t now_us, OutPacket* out, Coding* coding);
  Coded CodedFor(const Stream& stream, int peer) const;
  Status BeginSum(int server, LinkState* link, const Header& header, char** target);
  Status BeginRows(int server, LinkState* link, const Header& header, char** target);
  Status EndSum(int server, LinkState* link, const Header& header, int64_t now_us);
  Status EndRows(int server, LinkState* link, const Header& header, int64_t now_us);
  Status TakeTaken(int server, int lane, const Header& header, int64_t now_us);
  void SlotOver(Stream* stream, ServerStream* part, uint64_t mine, int workers, int64_t now_us);
  void TakeBehind(int server, const Header& header);
  void CatchUp(int server, const Stream& tensor, ServerStream* part);
  void TakeError(int server, const LinkState& link, const Header& header);
  void TakeAnswer(int server, const LinkState& link, const Header& header, int64_t now_us);
  void SayWhomItWaitsFor(const Stream& tensor, int peer, const std::string& missing,
                         int64_t now_us);

  const WorkerStreamsOptions options_;
  const Report report_;
  std::string reported_;      // whom something waits for, the last time
  PacketPool coded_{0};       // what is sent coded, or comes so
  mutable std::mutex mutex_;  // guards what follows
  bool torn_ = false;
  PacketTrace trace_;
  std::shared_ptr<ProphetProfile> profile_;
  ProphetNotes notes_;
  Status failure_;
  uint64_t next_portion_ = 1;
  int64_t ticked_us_ = 0;                                                 // last
  std::map<std::pair<uint64_t, bool>, std::unique_ptr<Stream>> tensors_;  // by key, and rows
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<LinkState>> links_;
  LaneCalls calls_;
  std::vector<bool> moved_;                              // by server: that has been lost
  std::map<std::pair<uint64_t, bool>, uint8_t> rounds_;  // of tensors that others had before
  int leader_goodbyes_ = 0;                              // one for each of its links
  Status leader_left_;
  std::map<uint64_t, Stream*> active_;  // under way, by the number of their start
  GivenUp given_up_;
  struct SumPart {
    std::shared_ptr<Operation> op;
    uint64_t begin = 0, count = 0;
  };
  std::vector<SumPart> arrived_;                    // to be told of when the turn ends
  std::vector<Over> over_;                          // to be finished after that
  std::vector<std::shared_ptr<Operation>> let_go_;  // may be the last to hold it: the same
};

}  // namespace mercury
