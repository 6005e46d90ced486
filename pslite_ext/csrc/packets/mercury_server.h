// A server's half of the data plane: its door, its aggregator, and the lanes that share it. Where
// it takes the place of servers that are lost, it has an aggregator for each of them as well.
//
// Thread-safety: all functions from any thread, but Listen, Start and Stop from one each.
// Ownership: lanes and the door, which lives in the first lane. Invariant: a worker has one link
// for each aggregator in each lane; a second one is refused.
#pragma once

#include <atomic>
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

class MercuryServer {
 public:
  explicit MercuryServer(PlaneEvents events);
  ~MercuryServer();

  // Opens the port, before the job knows this server; connections wait.
  Status Listen(const std::string& host, const TcpOptions& options, int* port) {
    return door_.Open(host, options, port);
  }
  Status Start(const MercuryOptions& options);
  // The job goes on without that worker.
  void Drop(int worker);
  // It goes on without that server, whose place this one takes.
  void Adopt(int server);
  // A newcomer has the worker's place, which so many have had before; it is in.
  void Expect(int worker, uint8_t entry);
  void LetIn(int worker);
  void Stop();
  std::string Figures();

 private:
  // The slots of one server: its own, or a lost one's.
  struct Shard {
    int server = 0;
    std::unique_ptr<Clerk> clerk;  // of the first lane's thread
    std::shared_ptr<Aggregator> aggregator;
  };
  // Who has come for slots that this server does not have yet.
  struct Early {
    Terms theirs;
    TcpSocket socket;
  };

  std::shared_ptr<Aggregator> NewAggregator(int server, bool resumes);
  std::unique_ptr<Endpoint> EndOf(Shard* shard, int lane);
  std::unique_ptr<Endpoint> WithLetters(Shard* shard, std::unique_ptr<Endpoint> aggregator);
  void Begin(int server);
  void ForgetWhereItHasNotCome(int worker);
  void SayIfAllAreOut();
  void SayIfFailed();
  void Take(const Terms& theirs, TcpSocket socket);
  void TakeEarly();
  bool ComesEarly(const Terms& theirs) const;
  Status Obeys(Shard* shard, int head, const std::string& body);
  Status LetIn(Shard* shard, int worker, uint64_t entry);
  int WorkerOf(int peer) const { return peer % options_.workers; }
  std::vector<std::shared_ptr<Aggregator>> Aggregators();
  void SaySlow(int worker, int permille) const;
  void Refused(const std::string& why);

  const PlaneEvents events_;
  MercuryOptions options_;
  std::vector<std::shared_ptr<Shard>> shards_;  // added to by the first lane, with the mutex
  std::vector<ShardsEndpoint*> ends_;           // the lanes' own; where others' places may be taken
  std::vector<std::unique_ptr<Lane>> lanes_;
  PlaneDoor door_;
  std::shared_ptr<LentMemory> lends_;
  // Of the first lane's thread:
  std::set<std::pair<int, int>> taken_;  // link and lane
  std::set<int> dropped_;                // workers that are lost, or were never there
  std::set<int> out_;                    // the same, and those that have left, and newcomers
  std::set<int> new_;                    // these
  std::map<int, uint8_t> entries_;  // of workers: how many have had their places before; 0 if none
  std::set<int> let_in_;            // newcomers, by a worker; the scheduler has not said so yet
  std::set<int> failed_;            // that have left because the job has failed, and are not lost
  std::list<Early> early_;
  std::atomic<uint64_t> refusals_{0};
  std::mutex mutex_;
  bool running_ = false;
};

}  // namespace mercury
