// A worker's end: cuts tensors into packets, in the policy's order, for every server's link; puts
// the sums that come back into place; completes a tensor when all of it is in.
//
// Nothing is copied: packets point into the gradient (or what it is coded as, or the sets of its
// rows), sums are received into the output. Gradient and output may be the same memory, because a
// part's sum comes only after the server has the whole part.
//
// Thread-safety, I/O, clock: see endpoint.h. Ownership: operations are held until their last packet
// and sum in this lane; one that fails is given up, and is over when its last packet has been let
// go of, in every lane, or the job fails. Invariants: a tensor has one operation under way; a
// server declared a tensor before its first packet; sums are taken once, in order within a slot,
// and only for what was sent.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "links/endpoint.h"
#include "packets/packet_trace.h"
#include "packets/placement.h"
#include "policy/policy.h"
#include "policy/prophet/prophet_notes.h"
#include "transport/given_up.h"
#include "transport/operation.h"
#include "transport/server_shares.h"
#include "transport/stall_times.h"

namespace mercury {

// Where the slots of an operation's tensor are.
Placement PlacementOf(const Operation& op, uint64_t packet_bytes, const ServerShares& shares,
                      int lanes);

struct WorkerStreamsOptions {
  ServerShares shares;
  int num_workers = 1;
  int lanes = 1;
  int lane = 0;
  PolicyOptions policy;
  StallTimes stall;
  Stalled stalled;             // null: nobody ends the job for that
  TraceRing* trace = nullptr;  // null: nothing is traced
  uint64_t trace_overhead = kHeaderBytes;
  ProphetNotes::Write notes;  // null: nobody reads it
};

class WorkerStreams : public Endpoint {
 public:
  // Called with a line that says which tensor waits for whom.
  using Report = std::function<void(const std::string&)>;

  WorkerStreams(const WorkerStreamsOptions& options, Report report);
  ~WorkerStreams() override;

  void Submit(std::shared_ptr<Operation> op, int64_t now_us);
  Status OnHeader(int server, const Header& header, int64_t now_us, char** target) override;
  Status OnPacket(int server, const Header& header, int64_t now_us) override;
  bool Next(int server, int64_t now_us, OutPacket* out) override;
  void OnPath(int server, int64_t round_trip_us, double bytes_per_second) override;
  int64_t WakeAt(int server) const override;
  // Asks the servers about tensors that have waited too long. Call it about once a second.
  void Tick(int64_t now_us);
  // Everything that is under way, and all that comes later, fails with this.
  void Fail(Status status);

  const Policy& policy(int server) const;
  // prophet's; null with other policies.
  const ProphetProfile* profile() const { return profile_.get(); }
  // For the next run, with the names of its tensors; empty if nothing is known.
  std::string ProfileText() const;
  size_t under_way() const { return active_.size(); }
  // A line for each tensor that is.
  std::string Waiting(int64_t now_us) const;

 private:
  struct Stream;
  struct Link;
  struct Part;
  struct Number;

  void LoadProfile();
  void NoteReady(const Operation& op, int64_t now_us);
  Stream* StreamOf(const Operation& op);
  void Begin(Stream* tensor, int server, int64_t now_us);
  void End(Stream* tensor);
  Number NumberOf(const Operation& op) const;
  void Say(Link* link, Stream* stream, Part* part);
  Status BeginSum(int server, const Header& header, char** target);
  Status BeginRows(int server, const Header& header, char** target);
  void EndSum(int server, const Header& header, int64_t now_us);
  Status EndRows(int server, const Header& header, int64_t now_us);
  Status TakeTaken(int server, const Header& header, int64_t now_us);
  void SlotOver(Stream* stream, Part* part, uint64_t mine, int64_t now_us);
  void TakeError(int server, const Header& header);
  void TakeAnswer(int server, const Header& header, int64_t now_us);

  const WorkerStreamsOptions options_;
  const Report report_;
  PacketTrace trace_;
  std::shared_ptr<ProphetProfile> profile_;
  ProphetNotes notes_;
  Status failure_;
  uint64_t next_portion_ = 1;
  std::map<std::pair<uint64_t, bool>, std::unique_ptr<Stream>> tensors_;  // by key, and rows
  std::vector<std::unique_ptr<Link>> links_;
  std::map<uint64_t, Stream*> active_;  // under way, by the number of their start
  GivenUp given_up_;
};

}  // namespace mercury
