// A server's half of the data plane: its door, its aggregator, and the lanes that share it.
//
// Thread-safety: all functions from any thread, but Listen, Start and Stop from one each.
// Ownership: lanes and the door, which lives in the first lane. Invariant: a worker has one link in
// each lane; a second one is refused.
#pragma once

#include <atomic>
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
  void Stop();
  std::string Figures();

 private:
  std::unique_ptr<Endpoint> WithLetters(std::unique_ptr<Endpoint> aggregator);
  void Take(int worker, int lane, TcpSocket socket);
  void SaySlow(int worker, int permille) const;
  void Refused(const std::string& why);

  const PlaneEvents events_;
  MercuryOptions options_;
  std::unique_ptr<Clerk> clerk_;  // of the first lane's thread
  std::shared_ptr<Aggregator> aggregator_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  PlaneDoor door_;
  std::set<std::pair<int, int>> taken_;  // worker and lane; of the first lane's thread
  std::set<int> dropped_;                // the same thread's
  std::atomic<uint64_t> refusals_{0};
  std::mutex mutex_;
  bool running_ = false;
};

}  // namespace mercury
