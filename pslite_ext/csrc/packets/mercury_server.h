// A server's half of the data plane: its door, its aggregator, and the lanes that share it. Where
// it takes the place of servers that are lost, it has an aggregator for each of them as well, until
// another server comes in that place and has the slots:
//
//   a lost server's slots:  --Adopt--> here --Yield--> given --no worker has a link--> gone
//
// Thread-safety: all functions from any thread, but Listen, Start and Stop from one each.
// Ownership: lanes and the door, which lives in the first lane. Invariant: a worker has one link
// for each aggregator in each lane; a second one is refused.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "letters/clerk.h"
#include "links/lane.h"
#include "packets/aggregator.h"
#include "packets/mercury_options.h"
#include "packets/plane_door.h"
#include "packets/shards_endpoint.h"

namespace mercury {

class LetterEndpoint;

class MercuryServer {
 public:
  explicit MercuryServer(PlaneEvents events);
  ~MercuryServer();

  // Opens the port, before the job knows this server; connections wait.
  Status Listen(const std::string& host, const TcpOptions& options, int* port) {
    return door_.Open(host, options, port);
  }
  // `entries`: of a server that comes while the job runs, the workers that are in it, and how many
  // have had their places before. Workers wait until it is in.
  Status Start(const MercuryOptions& options, const std::map<int, uint8_t>& entries = {});
  void IsIn();
  // The scheduler is lost, or is heard again. A server that comes may have been let in without
  // hearing it, or some workers without, and then waits no longer than for a handshake.
  void IsAlone(bool alone);
  // The job has failed: workers hear that it is not because the work is done.
  void Fail() { failed_job_ = true; }
  // The job goes on without that worker; or it has left in good order.
  void Drop(int worker);
  void Departed(int worker);
  // It goes on without that server, whose place this one takes.
  // Both at the change by which this generation of the roster begins.
  void Adopt(int server, uint64_t generation);
  void Yield(int server, uint64_t generation);
  // The last generation that this server has heard of: workers may have heard of later ones.
  void Hears(uint64_t generation);
  // Another comes in the place of one that was lost: says whether it may have the slots of those
  // servers, as far as they are here, within a second or two if so. From then on, workers that
  // leave what is here of lost servers are not missed. Until NoLongerComes.
  using Says = std::function<void(const Status& may)>;
  void Comes(int server, const std::set<int>& shards, Says says);
  void NoLongerComes(int server);
  // A newcomer has the worker's place, which so many have had before; it is in.
  void Expect(int worker, uint8_t entry);
  void LetIn(int worker);
  void Stop();
  std::string Figures();

 private:
  // The slots of one server: its own, or a lost one's.
  struct Shard {
    int server = 0;
    std::unique_ptr<Clerk> clerk;            // of the first lane's thread
    LetterEndpoint* letters = nullptr;       // its own; as long as the aggregator
    std::shared_ptr<Aggregator> aggregator;  // null: it is gone
    std::atomic<bool> given{false};          // another server has the slots
    uint64_t since = 0;                      // generation
    bool here() const { return aggregator != nullptr && !given; }
  };
  // Of a server that comes.
  struct Coming {
    std::set<int> shards;
    Says says;  // null: it has been told
    int64_t since_us = 0;
    int64_t free_since_us = 0;  // when nothing was only here any more; 0: something is
  };
  // Who has come for slots that this server does not have yet.
  struct Early {
    Terms theirs;
    TcpSocket socket;
  };

  std::shared_ptr<Aggregator> NewAggregator(int server, bool resumes);
  std::unique_ptr<Endpoint> EndOf(Shard* shard, int lane);
  std::unique_ptr<Endpoint> WithLetters(Shard* shard, std::unique_ptr<Endpoint> aggregator);
  void Begin(int server, uint64_t generation);
  size_t Here(int server) const;
  std::shared_ptr<Shard> ShardOf(int peer);
  bool IsMissed(const Shard& shard) const;
  void LinkGone(const Shard* shard, int peer, int lane);
  void AnswerThoseThatCome(int64_t now_us);
  void CheckAlone(int64_t now_us);
  void ForgetThoseGiven();
  void Forget(size_t number);
  void IsOut(int worker);
  void HasLeft(int worker);
  void ForgetWhereItHasNotCome(int worker);
  void SayIfAllAreOut();
  void SayIfFailed();
  void Take(const Terms& theirs, TcpSocket socket);
  void TakeEarly();
  bool MovesOn(const Terms& theirs) const;
  bool ComesEarly(const Terms& theirs) const;
  Status Obeys(Shard* shard, int head, const std::string& body);
  Status LetIn(Shard* shard, int worker, uint64_t entry);
  int WorkerOf(int peer) const { return peer % options_.workers; }
  std::vector<std::shared_ptr<Aggregator>> Aggregators();
  void SaySlow(int worker, int permille) const;
  void Refused(const std::string& why);

  const PlaneEvents events_;
  MercuryOptions options_;
  std::vector<std::shared_ptr<Shard>> shards_;  // changed by the first lane, with the mutex
  std::vector<ShardsEndpoint*> ends_;           // the lanes' own; where others' places may be taken
  std::vector<std::unique_ptr<Lane>> lanes_;
  PlaneDoor door_;
  std::shared_ptr<LentMemory> lends_;
  // Of the first lane's thread:
  std::set<std::pair<int, int>> taken_;  // link and lane
  std::set<std::pair<int, int>> gone_;   // of these, that have ended since
  std::map<int, Coming> coming_;         // servers
  uint64_t generation_ = 0;
  bool is_in_ = true, is_alone_ = false;
  int64_t waits_since_us_ = 0;      // for workers, without a scheduler
  std::set<int> dropped_;           // workers that are lost, or were never there
  std::set<int> out_;               // the same, and those that have left, and newcomers
  std::set<int> new_;               // these
  std::map<int, uint8_t> entries_;  // of workers: how many have had their places before; 0 if none
  std::set<int> let_in_;            // newcomers, by a worker; the scheduler has not said so yet
  std::set<int> failed_;            // that have left because the job has failed, and are not lost
  std::list<Early> early_;
  std::atomic<bool> some_come_{false};  // of these servers
  std::atomic<bool> failed_job_{false};
  std::atomic<uint64_t> refusals_{0};
  std::mutex mutex_;
  bool running_ = false;
};

}  // namespace mercury
