// A worker's half of the data plane: its streams, its lanes, and its links to all servers. Where
// its host's workers are summed before their copies leave it (hosts.h), the leader has a door for
// the others and their sums, and each of the others a link to the leader.
//
// Thread-safety: all functions from any thread, but Start and Stop from one each. Ownership:
// streams and lanes. Invariants: every operation's `done` is called exactly once; after Fail every
// operation fails at once with the first error.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "links/dialer.h"
#include "links/lane.h"
#include "packets/aggregator.h"
#include "packets/mercury_options.h"
#include "packets/plane_door.h"
#include "packets/worker_streams.h"
#include "transport/transport.h"

namespace mercury {

class MercuryWorker : public Transport {
 public:
  MercuryWorker(const MercuryOptions& options, PlaneEvents events);
  ~MercuryWorker() override;

  // Where the slots of a server are summed.
  struct Home {
    int server = 0;  // which one sums them
    Address address;
    bool moved = false;  // it was lost, whether another has come in its place or not
  };

  // `ready` follows when all links to all servers are up, and that to the leader, the last of the
  // homes of who has one. `door`: open, if others may come to this worker.
  Status Start(const std::vector<Home>& servers, PlaneDoor door = {});
  // Says goodbye to the servers: after Fail, that it is not because the work is done.
  void Stop();
  // The server is lost, or another has come in its place: its slots are summed by `home` from now
  // on. `generation`: the roster's, the last that this node has heard of.
  void Move(int server, int home, const Address& address, uint64_t generation);

  // In packets; a command as letters in the first lane.
  void Submit(std::shared_ptr<Operation> op) override;
  bool TakesChunks() const override { return true; }
  void More(const std::shared_ptr<Operation>& op) override;
  void Fail(const Status& status) override;
  std::string Figures() override;
  std::string Profile() override;
  std::string Waiting() override;
  std::string Rounds() override { return streams_->Rounds(); }
  Status TakeRounds(const std::string& text) override { return streams_->TakeRounds(text); }

 private:
  struct Slice;
  void Dial(Slice* slice, int server, const Address& address, uint64_t generation);
  void MoveNow(int server, const Address& address, int move, uint64_t generation);
  void SubmitCommand(const std::shared_ptr<Operation>& op);
  void FailNow(const Status& status);
  int Leader() const { return options_.hosts.LeaderOf(options_.rank); }
  void MakeStreams(const std::vector<Home>& servers);
  void MakeHostSums();
  std::unique_ptr<Endpoint> EndOf(Slice* slice);
  Status Serve();
  void Take(int worker, int lane, TcpSocket socket);
  void Lost(const Slice& slice, int peer, const Status& status);
  std::string PeerName(int peer) const;
  void Describe(int peer, LinkFigures* figures) const;
  std::unique_ptr<Endpoint> WithLetters(Slice* slice, std::unique_ptr<Endpoint> streams);

  const MercuryOptions options_;
  const PlaneEvents events_;
  const HmacKey key_;
  std::vector<int> beside_;                // a leader: its host's workers; else empty
  std::shared_ptr<Aggregator> host_sums_;  // a leader's
  std::shared_ptr<LentMemory> lends_;      // the same
  std::shared_ptr<WorkerStreams> streams_;
  PlaneDoor door_;
  std::set<std::pair<int, int>> taken_;         // worker and lane; of the first lane's thread
  uint64_t refusals_ = 0;                       // the same
  std::vector<std::unique_ptr<Slice>> slices_;  // by lane
  std::atomic<int> links_missing_{0};
  std::mutex mutex_;  // guards what follows
  Status failure_;
  bool stopped_ = false;
  std::map<int, int> moves_;  // of each server, how often
};

}  // namespace mercury
