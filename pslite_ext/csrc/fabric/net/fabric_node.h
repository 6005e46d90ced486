// A node of an MLfabric job as its process sees it: its lane, its door, how it joins, and the calls
// that a script makes.
//
//   joining --the scheduler says so--> running --all workers have left--> ended
//      \-------------------------------------\--what went wrong---------> failed
//
// Of several servers, the first one is at its end when it has the others' stripes of the model, and
// they when it has left.
//
// Every node dials the scheduler, whose door opens to nodes that know the job token. The roster
// carries the job's own identity; all other links belong to that job only. In the order server,
// replica, workers by rank, the later of two nodes dials the other.
//
// Thread-safety: all functions from any thread, but Start and Leave from one. Calls are handed to
// the lane, which answers in Answers. Ownership: the lane, which owns the endpoint; the part.
// Invariant: those of Answers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fabric/net/answers.h"
#include "fabric/net/model_part.h"
#include "fabric/net/muster.h"
#include "fabric/net/node_endpoint.h"
#include "fabric/net/scheduler_part.h"
#include "fabric/net/worker_part.h"
#include "links/acceptor.h"
#include "links/dialer.h"
#include "links/lane.h"

namespace mercury::fabric {

struct FabricNodeOptions {
  int node = kSchedulerNode;
  int workers = 1;
  int servers = 1;
  int replicas = 0;
  Address scheduler;
  std::string host;  // on which it listens
  int port = 0;      // 0: any
  std::string token;
  TcpOptions tcp;
  bool checksum = true;
  int64_t silence_us = 12000000;
  int64_t start_timeout_us = 600000000;
  double link_bit_per_s = 0;  // of its network card; 0: it is not known
  // Of the model; the scheduler has none, and who is to begin with worker 0's values says 0.
  size_t elements = 0;
  // On which all must agree: what the scheduler uses, or what another node was told.
  SharedSettings settings;
  // What a worker's optimizer asks of the server; else the scheduler's, who tells the others.
  std::optional<Rule> rule;
  // The scheduler's:
  SchedulerOptions planning;
  const Codec* codec = nullptr;  // as what updates travel; null: as they are
  // Of the server and its replicas.
  ServerCalls calls = {};
  std::vector<double> weights;
};

class FabricNode {
 public:
  // `model`: the first values, of the server and its replicas, or of worker 0.
  FabricNode(FabricNodeOptions options, Vector model);
  ~FabricNode();
  FabricNode(const FabricNode&) = delete;
  FabricNode& operator=(const FabricNode&) = delete;

  Status Start();
  int port() const { return port_; }  // on which it listens
  // As those of Answers.
  bool WaitBegun(int slice_ms, Status* status) { return answers_.WaitBegun(slice_ms, status); }
  bool WaitEnded(int slice_ms, Status* status) { return answers_.WaitEnded(slice_ms, status); }
  bool WaitSettled(int slice_ms, Status* status) { return answers_.WaitSettled(slice_ms, status); }
  // `out` null: it is discarded.
  bool WaitModel(int slice_ms, Status* status, float* out, int64_t* version);
  std::optional<Fate> FateOf(int64_t number) const { return answers_.FateOf(number); }
  Status failure() const { return answers_.failure(); }

  // A worker's. The update is copied; it was computed from the model that was got last. `norm`
  // below 0: it is worked out on the way.
  Status Push(const float* update, double norm, int64_t* number);
  // As an update, but for the sum over all workers, which WaitModel then brings.
  Status Reduce(const float* part);
  Status AskModel();
  // The server's, or the replica's: as workers get it.
  Status CopyModel(float* out, size_t elements, int64_t* version);
  // The scheduler's: a line of an operator's feed.
  Status Feed(const std::string& line);
  // What has happened since it was asked last, if it is recorded: lines of JSON.
  std::string TakeRecords();
  // JSON.
  std::string Stats();
  // Ends the node. `failed`: not because its work is done.
  void Leave(bool failed);

 private:
  void Send(Request request, std::shared_ptr<const Vector> update);
  // On the lane's thread:
  void Dial(int peer, const Address& address, const HmacKey& key, uint64_t job);
  void OpenDoor(const JobIdentity& job);
  void Take(int peer, TcpSocket socket);
  void Linked(int peer, TcpSocket socket);
  void SayReady();
  void Gone(int peer, const Status& status, bool left);
  void GiveUp(int peer);
  void Turn(int64_t now_us);
  Status Control(int peer, const Letter& letter);
  Status Join(int peer, const Joining& joining);
  Status Enter(const Attendance& roster);
  Status BeginAll();
  void Over();
  void EndOnceDone();
  void Broadcast(const Letter& letter);
  void Fail(const Status& status);
  Terms TermsOf(uint64_t job) const;
  bool is_scheduler() const { return options_.node == kSchedulerNode; }

  const FabricNodeOptions options_;
  const SpareVectors spares_;
  Answers answers_;
  const int self_;                       // as a peer
  Vector model_;                         // until the part has it
  std::shared_ptr<const Vector> first_;  // worker 0's, for those who have the model
  NodeEndpoint* endpoint_ = nullptr;     // the lane's
  std::unique_ptr<Lane> lane_;
  TcpSocket listener_;
  int port_ = 0;
  std::unique_ptr<Acceptor> door_;
  std::vector<std::unique_ptr<Dialer>> dialers_;
  HmacKey door_key_;
  std::optional<HmacKey> data_key_;
  JobIdentity job_{};
  std::set<int> awaited_;  // peers to which there is no link yet
  bool entered_ = false;   // knows who there is
  bool said_ready_ = false;
  Muster muster_;
  std::unique_ptr<WorkerPart> worker_;
  std::unique_ptr<ModelPart> model_part_;
  std::unique_ptr<SchedulerPart> scheduler_;
  int64_t give_up_at_us_ = 0;
  bool begun_ = false;
  bool over_ = false;             // all workers have left
  std::vector<int> lost_;         // nodes, of which the scheduler knows
  std::optional<Status> ending_;  // the scheduler's, until all have been told
  uint64_t refusals_ = 0;
};

}  // namespace mercury::fabric
