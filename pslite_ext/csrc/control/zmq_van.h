// The ZMQ van: control messages of every job, and the tensors of the classic path.
//
// One I/O thread owns all sockets: a ROUTER on which this node hears everybody, a DEALER to every
// node that it talks to. Other threads hand messages over through a queue and an eventfd, so
// nothing polls when idle and no socket is shared. Membership (who is in, late, lost) is decided in
// membership.h; this file carries its decisions out. ps-lite's own start-up, heartbeat and receiver
// threads are not used: this van replaces them.
//
// Thread-safety: SendMsg, Leave, EnterBarrier, OtherEnded, Fail from any thread; Start and Stop
// from one; all else is the I/O thread's. VanObserver is called on the I/O thread. Invariants:
// nothing received reaches a CHECK; the first failure sticks; the observer hears either OnEnded or
// OnFailed, once.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "control/envelope.h"
#include "control/job_identity.h"
#include "control/link_watch.h"
#include "control/membership.h"
#include "control/message_figures.h"
#include "control/node_membership.h"
#include "control/zmq_door.h"
#include "control/zmq_socket.h"
#include "ps/internal/van.h"
#include "trace/clock_offset.h"
#include "trace/trace_log.h"

namespace mercury {

class VanObserver {
 public:
  virtual ~VanObserver() = default;
  // Before OnReady, and before any message that is not control's: what all nodes use. What is not
  // ok fails the job.
  virtual Status OnAgreed(int /*my_node_id*/, const SharedSettings& /*settings*/) {
    return Status::Ok();
  }
  virtual void OnReady(int my_node_id) = 0;
  virtual void OnBarrier() = 0;
  virtual void OnDeparted(int node_id) = 0;
  // The job goes on without that node.
  virtual void OnLost(int /*node_id*/, const Status& /*why*/) {}
  // Another worker, or server, comes while the job runs, and is that far.
  virtual void OnAdmission(const Member& /*newcomer*/, Admission /*admission*/) {}
  // The scheduler is lost, and the job goes on as long as nothing else happens; ok: it is heard
  // again.
  virtual void OnAlone(const Status& /*why*/) {}
  virtual void OnFailed(const Status& status) = 0;
  virtual void OnEnded() = 0;
};

// The largest piece of a tensor in one message.
constexpr int64_t kMessageBytesMax = int64_t{64} << 20;
// How long what was said last may take to leave.
constexpr int kLingerMs = 2000;
// Connections on which refusals are still on their way.
constexpr int kRefusalsKept = 64;

struct ZmqVanOptions {
  Role role = Role::kWorker;
  std::string host;  // the address to listen on; "0.0.0.0" listens on all
  int port = 0;
  std::string scheduler_host;
  int scheduler_port = 0;
  int workers = 1;
  int servers = 1;
  int rank_hint = -1;
  std::string token;
  MembershipTimes times;
  bool asynchronous = false;  // this worker's training
  SharedSettings settings;    // all on which nodes must agree, with this node's values
  std::string journal;        // of a scheduler: where its record of the job is; empty: nowhere
  // What messages that are not control's are in the trace; null: nothing.
  void (*tap)(TraceLog* log, const ps::Meta& meta, int64_t bytes, bool sends,
              int64_t now_us) = nullptr;
};

class ZmqVan : public ps::Van {
 public:
  ZmqVan(ZmqVanOptions options, VanObserver* observer);
  ~ZmqVan() override;

  // Listens and begins to join the job; OnReady follows. `start_status` says whether it could.
  void Start(int customer_id, bool standalone) override;
  const Status& start_status() const { return start_status_; }
  int my_port() const { return my_port_; }
  void Stop() override;

  // Tells the scheduler that this node's work is done (`why` is ok), or that the job has failed.
  void Leave(const Status& why);
  void EnterBarrier();
  // The scheduler is told that another process has ended: see SchedulerMembership::Ended.
  void OtherEnded(const Exit& exit);
  // Of a scheduler whose start has failed: some have not come yet, and wait for it if it goes.
  bool awaits_late() const { return awaits_late_; }
  void Fail(const std::string& what) override;
  // This node cannot go on. kPeerLost: because it has lost `node`. The scheduler decides what the
  // job died of and tells everybody; if it says nothing in time, this was it.
  void Report(int node, const Status& status);
  // From now on, what is sent carries a checksum. On the I/O thread.
  void CheckData(bool on) { checks_data_ = on; }
  // Of a scheduler: with how many workers the job goes on (0: only with all of them), whether
  // without servers that it loses, and how many workers may come to it. On the I/O thread, from
  // OnAgreed.
  void GoOnWith(int least, bool servers_may_go, int places) {
    if (scheduler_membership_) scheduler_membership_->GoOnWith(least, servers_may_go, places);
    if (node_membership_ && least != 0) node_membership_->GoOnAlone();
    places_ = std::max(places, options_.workers);
  }
  // Of a server: all workers have left. If the scheduler is lost, nobody else says that it is over.
  void NoMoreWork();
  // The same: a worker has let that newcomer in, of which the scheduler may not have told yet.
  void IsLetIn(int node, uint8_t entry);
  // The same: whether some have left because the job has failed.
  void FailedElsewhere(bool have);
  // Of a server: that worker has done its work. Should the scheduler be lost before it hears of it,
  // the next one does.
  void HasFinished(int worker, uint8_t entry);
  // The newcomer `node` is that far.
  void SayAdmission(int node, uint8_t entry, Admission admission);
  // Whether this node came once the job had begun. From OnAgreed on.
  bool newcomer() const { return newcomer_; }
  // Of the roster (control/roster.h): the last that this node has heard of, and, within OnLost and
  // OnAdmission, the one that begins with what is told. On the I/O thread.
  uint64_t generation() const { return generation_; }
  uint64_t change() const { return change_; }
  int NumLost(int node_group) const { return lost_count_[node_group & 7]; }
  // Once ready: what the job's alone is, and whether its training is asynchronous.
  const JobIdentity& job() const { return job_; }
  bool asynchronous() const;
  // On the I/O thread, from OnAgreed on: everybody in the job.
  const std::vector<Member>& members() const { return members_; }
  // "peer worker 1: 10.0.0.5:40123", a line for each. In OnAgreed.
  std::string Peers() const;
  // What went to nodes that this one trains with, and came from them.
  std::vector<MessageFigures> Traffic() const;
  // Connections and messages that were not believed.
  uint64_t refused() const { return doorman_.refused(); }

  std::string GetType() const override { return "zmq"; }
  int Bind(const ps::Node& node, int max_retry) override;
  void Connect(const ps::Node& node) override;
  int SendMsg(ps::Message& message) override;
  // Reads one message if there is one: its bytes, 0 if it was refused, -1 if there is none.
  int RecvMsg(ps::Message* message) override;

 protected:
  void FailStart(Status status) { start_status_ = std::move(status); }
  // Set before Start: where this node takes tensors as packets.
  int data_port_ = 0;

 private:
  struct Outbound {
    int receiver = kNoNode;
    std::vector<char> meta;
    std::vector<ps::SArray<char>> data;
    std::function<void()> run;  // instead of a message
  };

  void Run();
  void Loop();
  void Post(Outbound item);
  void Wake();
  void Wait(int64_t wait_ms);
  void HearDisconnects(int64_t now_ms);
  void SendQueued();
  void SendNow(const Outbound& item);
  Status TrySend(const Outbound& item);
  Envelope NextEnvelope(int receiver);
  bool MaySpeak(int sender) const;
  std::vector<char> Packed(const ps::Meta& meta);
  Outbound Control(int receiver, const ps::Meta& meta);
  void SendControl(int receiver, const ps::Meta& meta);
  void Trace(const ps::Meta& meta, int64_t bytes, bool sends);
  void TraceRegistered(const Member& member);
  void SayHello();
  void SendHeartbeat(int receiver);
  void OnHeartbeat(const ps::Message& message, int64_t now_ms);
  // What a TERMINATE may be beside an end: that its sender cannot go on; that the job does, without
  // a node; that a worker has finished.
  static constexpr int kReport = 1, kGoesOn = 2, kHasFinished = 3;
  // The same of an ADD_NODE: the table for a newcomer; that this scheduler goes on for one that was
  // lost; how far a newcomer is.
  static constexpr int kNewcomersTable = 1, kIsBack = 2, kFirstAdmission = 3;
  static constexpr size_t kTextBytesMax = kSharedSettingsBytesMax;
  static void SetBody(ps::Meta* meta, const std::string& text);
  void SendTerminate(int receiver, const Status& status);
  void SendLost(int receiver, int node, const Status& why, uint64_t generation);
  void Reject(const Member& member, const Status& status);
  ZmqSocket NewDealer(const std::string& host, zmq::door_maker_t* door);
  void EnterJob(const JobIdentity& job);
  void Refuse(const std::string& why);

  bool Watched(int node) const;
  void Count(int peer, uint64_t sent_bytes, uint64_t received_bytes);
  void HearConnections();
  void WatchLinks(int64_t now_ms);
  void Forget(int peer);
  void LookAt(int peer, int64_t now_ms);
  void Ask(int peer);
  void Acknowledge(int peer);
  void LoseLink(int peer, const Status& status);
  Status OfNoUse(const std::string& why) const;
  Status CheckSum(const Envelope& envelope, std::vector<ZmqFrame>& frames,
                  const ps::Meta& meta) const;

  void Dispatch(const ps::Message& message, int64_t now_ms);
  void OnControl(const ps::Message& message, int64_t now_ms);
  Actions Tick(int64_t now_ms);
  Status CannotConnect(const Status& status) const;
  void ConnectGuests();
  void TakeIn(const Member& member);
  void OnLate(const ps::Message& message);
  void LookForLate(const Status& status);
  void OnGuestEvent(int guest, int event, int64_t now_ms);
  void OnRegistration(const ps::Message& message, int64_t now_ms);
  void OnAssigned(const ps::Message& message, int64_t now_ms);
  bool MayBe(int node) const;
  static ps::Meta AdmissionOf(const Member& member, Admission admission, uint64_t generation);
  void OnAdmission(const ps::Message& message);
  void MakeRoomFor(const Member& member, uint64_t generation);
  void Admit(const Member& member);
  void Tell(int node, Admission admission, uint64_t generation);
  void Begins(uint64_t generation) {
    change_ = generation;
    generation_ = std::max(generation_, generation);
  }
  void OnTerminate(const ps::Message& message, int64_t now_ms);
  void OnReport(const ps::Message& message, const Status& status, int64_t now_ms);
  void OnFinished(const ps::Message& message, int64_t now_ms);
  void OnLoss(int node, const Status& why);
  void OnToldLoss(int node, const Status& why, uint64_t generation);
  void EndIfAlone();
  Status Begin();
  void WriteDown();
  void Unwrite();
  void GoOn(const JobRecord& record);
  void TellAgain();
  void OnReturn(const ps::Message& message, int64_t now_ms);
  void SayReport(int node);
  void SayFinished(int worker, uint8_t entry);
  void SayBarrier();
  bool CountLost(int node);
  void CountFound(int node);
  void CarryOut(const Actions& actions);
  void Broadcast(const std::function<void(int node)>& send);
  void FailJob(const Status& status, bool tell_others);
  void TellOfFailure(const Status& status, bool tell_others);

  const ZmqVanOptions options_;
  VanObserver* const observer_;
  HmacKey key_;  // of no job, until one is known
  bool in_job_ = false;
  uint64_t life_;
  Doorman doorman_;
  Status start_status_;
  int my_port_ = 0;

  std::unique_ptr<ZmqContext> context_;
  ZmqSocket router_;
  int wake_fd_ = -1;
  std::unordered_map<int, ZmqSocket> dealers_;
  std::unordered_map<int, uint64_t> sequence_to_;
  std::vector<ZmqSocket> rejected_;
  SequenceCheck sequence_from_;
  // The ends of links to peers, by node.
  struct LinkEnd {
    ConnectionProgress progress;  // of this node's connection to the peer
    std::string routing;          // by which the router finds the peer's connection
  };
  std::map<int, LinkEnd> link_ends_;
  LinkWatch link_watch_;
  bool checks_data_ = false;
  std::unordered_map<int, uint64_t> life_of_;
  std::vector<uint64_t> meta_buffer_;  // aligned

  std::unique_ptr<SchedulerMembership> scheduler_membership_;
  std::unique_ptr<NodeMembership> node_membership_;
  std::vector<Member> members_;
  // From peers that learnt sooner than this node who is in the job: it cannot answer them yet.
  std::vector<ps::Message> early_;
  JobIdentity job_{};
  // For the trace: what registrations it will hear of once ranks are known, by their life.
  std::map<uint64_t, std::pair<int64_t, int64_t>> registered_;  // when, bytes
  ClockOffset clock_offset_;
  int64_t clock_note_at_us_ = 0;
  struct Reported {
    Status status;
    int64_t verdict_by_ms = 0;  // it waits for the scheduler's word until then
  };
  std::map<int, Reported> reported_;  // by node
  std::set<int> lost_;                // without which the job goes on
  std::set<int> departed_;            // that have left in good order
  int my_id_ = kNoNode;
  bool newcomer_ = false;
  int places_ = 0;  // for workers
  uint64_t generation_ = 1, change_ = 1, began_with_ = 1;
  std::map<int, uint64_t> changed_;  // by node: when it was last lost, or came in
  bool no_more_work_ = false, failed_elsewhere_ = false;
  std::map<int, uint8_t> finished_;  // workers, as a server knows, and which in their places
  bool at_barrier_ = false;          // of a worker
  uint64_t passed_ = 0;              // barriers, as the scheduler counts them
  uint64_t returns_ = 0;             // how many schedulers have gone on for one that was lost
  bool writes_down_ = false, cannot_write_ = false;
  bool over_ = false;  // the observer has heard the end
  Status late_hear_;   // of a scheduler: what it tells those who come too late

  std::thread thread_;
  std::atomic<bool> stop_{false}, awaits_late_{false};
  std::array<std::atomic<int>, 8> lost_count_{};
  mutable std::mutex traffic_mutex_;  // guards traffic_
  std::map<int, MessageFigures> traffic_;
  std::mutex mutex_;            // guards queue_
  std::deque<Outbound> queue_;  // from other threads
};

}  // namespace mercury
