// A worker's end: cuts tensors into packets, in the policy's order, for every server's link; puts
// the sums that come back into place; completes a tensor when all of it is in.
//
// Nothing is copied: packets point into the gradient, sums are received into the output. The two
// may be the same memory, because a piece's sum comes only after the server has the whole piece.
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

  void LoadProfile();
  void NoteReady(const Operation& op, int64_t now_us);
  Stream* StreamOf(const std::shared_ptr<Tensor>& shared);
  void Begin(Stream* tensor, int server, int64_t now_us);
  void End(Stream* tensor);
  Status BeginSum(int server, const Header& header, char** target);
  void TakeError(int server, const Header& header);
  void TakeAnswer(int server, const Header& header, int64_t now_us);

  const WorkerStreamsOptions options_;
  const Report report_;
  PacketTrace trace_;
  std::shared_ptr<ProphetProfile> profile_;
  ProphetNotes notes_;
  Status failure_;
  uint64_t next_portion_ = 1;
  std::unordered_map<uint64_t, std::unique_ptr<Stream>> tensors_;  // by key
  std::vector<std::unique_ptr<Link>> links_;
  std::map<uint64_t, Stream*> active_;  // under way, by the number of their start
  GivenUp given_up_;
};

}  // namespace mercury
