// A whole data plane in one process, over loopback: servers, workers, and a stand-in for the
// control plane that tells all workers what any node has lost.
//
// Thread-safety: all functions from the test's thread. Ownership: operations keep their arrays.
// Invariant: events are taken by the test's thread, as the van takes them by its own.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "harness.h"
#include "packets/mercury_server.h"
#include "packets/mercury_worker.h"

namespace mercury::testing {

inline MercuryOptions PlaneOptions(int workers, int servers) {
  MercuryOptions options;
  options.workers = workers;
  options.shares = ServerShares(servers);
  options.token = "a secret";
  options.job = {77};
  options.policy.adapt_packets = false;
  options.policy.packet_bytes = 4096;
  return options;
}

// What the test's own callbacks allocate on a lane's thread is not what is tested.
inline thread_local bool in_callback = false;

struct PlaneEvent {
  bool at_server = false;
  int rank = 0;   // who says it
  int peer = -1;  // whom it is about
  Status status;
};

// One worker's part in a round of one tensor.
struct Exchange {
  std::vector<float> values, sum;
  std::atomic<int> times_done{0};
  Status status;  // once done
};

class Plane {
 public:
  // Where servers listen is a part of their local names: who comes to 127.0.0.1 does not find the
  // one of "0.0.0.0", and uses TCP.
  explicit Plane(const MercuryOptions& options, const std::string& listen = "127.0.0.1")
      : options_(options) {
    for (int s = 0; s < options_.shares.servers(); ++s) {
      servers_.push_back(std::make_unique<MercuryServer>(EventsOf(true, s)));
      addresses_.push_back({"127.0.0.1", 0});
      REQUIRE_OK(servers_.back()->Listen(listen, options_.tcp, &addresses_.back().port));
      REQUIRE_OK(servers_.back()->Start(Of(s)));
    }
  }
  ~Plane() { Stop(); }

  // Rank by rank; a test may leave some out and play them itself.
  void StartWorker(int rank, const MercuryOptions& options) {
    workers_.push_back(std::make_unique<MercuryWorker>(options, EventsOf(false, rank)));
    PlaneDoor door;
    Address here{"127.0.0.1", 0};
    REQUIRE_OK(door.Open(here.host, options.tcp, &here.port));
    doors_[rank] = here;
    std::vector<MercuryWorker::Home> to;
    for (const Address& address : addresses_) to.push_back({static_cast<int>(to.size()), address});
    if (options.hosts.Follows(rank)) {
      to.push_back({static_cast<int>(to.size()), doors_.at(options.hosts.LeaderOf(rank))});
    }
    REQUIRE_OK(workers_.back()->Start(to, std::move(door)));
  }
  uint64_t Begins() { return ++generation_; }  // of the roster
  // Another in the server's place, while the job runs; workers wait until it is in.
  void StartServerAgain(int rank) {
    gone_.push_back(std::move(servers_[static_cast<size_t>(rank)]));
    auto& server = servers_[static_cast<size_t>(rank)];
    server = std::make_unique<MercuryServer>(EventsOf(true, rank));
    Address here{"127.0.0.1", 0};
    REQUIRE_OK(server->Listen(here.host, options_.tcp, &here.port));
    MercuryOptions options = Of(rank);
    options.late = true;
    options.generation = generation_;
    std::map<int, uint8_t> entries;
    for (size_t w = 0; w < workers_.size(); ++w) entries[static_cast<int>(w)] = 0;
    REQUIRE_OK(server->Start(options, entries));
    addresses_[static_cast<size_t>(rank)] = here;
  }
  void StartWorkers() {
    for (int w = 0; w < options_.workers; ++w) StartWorker(w, Of(w));
  }
  MercuryOptions Of(int rank) const {
    MercuryOptions options = options_;
    options.rank = rank;
    return options;
  }

  // All workers have all links, or something has failed.
  bool WaitReady() {
    return Wait([this] { return ready_ == workers_.size() || !events_.empty(); }) &&
           events().empty();
  }
  bool WaitEvent() {
    return Wait([this] { return !events_.empty(); });
  }

  std::shared_ptr<Exchange> Submit(int worker, uint64_t key, size_t elements, int priority,
                                   bool fetch = false) {
    return Submit(worker, key, elements, priority,
                  fetch ? Operation::Kind::kPull : Operation::Kind::kSum);
  }
  std::shared_ptr<Exchange> Give(int worker, uint64_t key, size_t elements) {
    return Submit(worker, key, elements, 0, Operation::Kind::kFirstValue);
  }
  std::shared_ptr<Exchange> Submit(int worker, uint64_t key, size_t elements, int priority,
                                   Operation::Kind kind) {
    auto exchange = std::make_shared<Exchange>();
    exchange->values.resize(elements);
    exchange->sum.resize(elements);
    for (size_t i = 0; i < elements; ++i) exchange->values[i] = ValueOf(worker, key, i);
    TensorTraits d;
    d.key = key;
    d.shape = {elements};
    d.index = static_cast<uint32_t>(key);
    d.name = "tensor" + std::to_string(key);
    auto& tensor = tensors_[{worker, key}];
    if (tensor == nullptr) tensor = std::make_shared<Tensor>(d);
    auto op = std::make_shared<Operation>();
    op->kind = kind;
    op->fail_if_dropped = true;  // as the worker's front does
    op->tensor = tensor;
    op->priority = priority;
    op->src = reinterpret_cast<const char*>(exchange->values.data());
    op->dst = reinterpret_cast<char*>(exchange->sum.data());
    op->keep = exchange;
    op->done = [this, raw = exchange.get()](const Status& status) {
      const std::lock_guard<std::mutex> lock(mutex_);
      in_callback = true;
      raw->status = status;
      in_callback = false;
      ++raw->times_done;
      changed_.notify_all();
    };
    workers_[static_cast<size_t>(worker)]->Submit(std::move(op));
    exchanges_.push_back(exchange);
    return exchange;
  }
  // Every exchange has been called back, well or not.
  bool WaitDone() {
    return Wait([this] {
      return std::all_of(exchanges_.begin(), exchanges_.end(),
                         [](const auto& e) { return e->times_done != 0; });
    });
  }
  bool WaitDone(const std::shared_ptr<Exchange>& exchange) {
    return Wait([&] { return exchange->times_done != 0; });
  }
  // One round of these tensors, in an order that differs from worker to worker; all sums are
  // compared. False: something has failed.
  bool Round(const std::vector<size_t>& sizes) {
    std::vector<std::vector<std::shared_ptr<Exchange>>> of(workers_.size());
    for (size_t w = 0; w < workers_.size(); ++w) {
      of[w].resize(sizes.size());
      for (size_t i = 0; i < sizes.size(); ++i) {
        const size_t t = w % 2 == 0 ? i : sizes.size() - 1 - i;
        of[w][t] = Submit(static_cast<int>(w), t, sizes[t], static_cast<int>(i));
      }
    }
    REQUIRE_TRUE(WaitDone());
    bool all = true;
    for (const auto& worker : of) {
      for (size_t t = 0; t < sizes.size(); ++t) {
        const std::lock_guard<std::mutex> lock(mutex_);
        CHECK_EQ(int{worker[t]->times_done}, 1);
        if (worker[t]->status.ok()) {
          CHECK_TRUE(Right(*worker[t], t));
        } else {
          CHECK_FALSE(worker[t]->status.text().empty());
          failed_ = worker[t]->status.code();
          all = false;
        }
      }
    }
    return all;
  }
  bool Right(const Exchange& exchange, uint64_t key) const {
    for (size_t i = 0; i < exchange.sum.size(); ++i) {
      float expected = 0;
      for (int w = 0; w < options_.workers; ++w) expected += ValueOf(w, key, i);
      if (exchange.sum[i] != expected) return false;
    }
    return true;
  }

  void Stop() {
    for (auto& worker : workers_) worker->Stop();
    for (auto& server : servers_) server->Stop();
    for (const auto& exchange : exchanges_) CHECK_EQ(int{exchange->times_done}, 1);
    exchanges_.clear();
  }

  // Workers that start from now on find the server there.
  void Move(int server, const Address& to) { addresses_[static_cast<size_t>(server)] = to; }
  const Address& address(int server) const { return addresses_[static_cast<size_t>(server)]; }
  MercuryServer& server(int rank) { return *servers_[static_cast<size_t>(rank)]; }
  MercuryWorker& worker(int rank) { return *workers_[static_cast<size_t>(rank)]; }
  std::vector<PlaneEvent> events() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {events_.begin(), events_.end()};
  }

  // Why a round has failed.
  Code failed() const { return failed_; }

  static float ValueOf(int worker, uint64_t key, size_t i) {
    return static_cast<float>((i * 7 + key * 13) % 1000 * static_cast<size_t>(worker + 1));
  }

 private:
  PlaneEvents EventsOf(bool at_server, int rank) {
    PlaneEvents events;
    events.ready = [this] {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++ready_;
      changed_.notify_all();
    };
    events.lost = [this, at_server, rank](int peer, const Status& status) {
      const std::lock_guard<std::mutex> lock(mutex_);
      events_.push_back({at_server, rank, peer, status});
      changed_.notify_all();
    };
    events.lost_beside = events.lost;
    return events;
  }

  template <typename Reached>
  bool Wait(const Reached& reached) {
    const int64_t until = NowMs() + 60000;
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      while (told_ < events_.size()) {
        const Status status = events_[told_++].status;
        if (options_.elastic) continue;  // the test itself says what becomes of it
        lock.unlock();
        for (auto& worker : workers_) worker->Fail(status);
        lock.lock();
      }
      if (reached()) return true;
      if (NowMs() > until) return false;
      changed_.wait_for(lock, std::chrono::milliseconds(1000));
    }
  }

  const MercuryOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<PlaneEvent> events_;
  size_t told_ = 0, ready_ = 0;
  Code failed_ = Code::kOk;
  std::vector<std::shared_ptr<Exchange>> exchanges_;
  std::map<std::pair<int, uint64_t>, std::shared_ptr<Tensor>> tensors_;  // by worker and key
  std::vector<Address> addresses_;
  std::map<int, Address> doors_;  // of workers
  uint64_t generation_ = 1;
  std::vector<std::unique_ptr<MercuryServer>> servers_, gone_;
  std::vector<std::unique_ptr<MercuryWorker>> workers_;  // last: their callbacks use the rest
};

}  // namespace mercury::testing
