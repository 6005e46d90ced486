// Workers and servers joined by links that are simulated: WorkerStreams and Aggregator exchange
// real bytes (header, payload, checksum) through PacketReaders, over links with a bandwidth, a
// delay and a bounded queue in each direction, delivered in random pieces. Time is a number that
// the simulation moves on; when nothing can ever happen any more, it says so.
//
// Thread-safety: none. Ownership: the network owns all ends; what is submitted keeps itself.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness.h"
#include "packets/aggregator.h"
#include "packets/packet_pipe.h"
#include "packets/worker_streams.h"

namespace mercury::testing {

struct NetworkOptions {
  int workers = 2;
  ServerShares shares{2};
  int lanes = 1;
  Hosts hosts;
  PolicyOptions policy;
  std::vector<std::string> profiles;  // prophet's, by worker
  bool checksum = false;
  bool deterministic = false;
  bool elastic = false;
  bool keeps_sums = false;
  std::set<int> absent;  // workers that are not there at first
  bool ticks = false;    // ask for what has waited long, once a second
  StallTimes stall;
  Stalled stalled;
  uint64_t bytes_max = 0;
  size_t tensors_max = 65536;
  PacketPool::Allocate allocate = nullptr;
};

class Network {
 public:
  Network(const NetworkOptions& options, Random* random) : options_(options), random_(random) {
    lost_ = options_.absent;
    if (options_.policy.unit_bytes == 0) {
      options_.policy.unit_bytes = DefaultUnitBytes(options_.policy.kind);
    }
    AddEnds();
    for (int lane = 0; lane < options_.lanes; ++lane) AddLinks(lane);
    for (int lane = 0; lane < options_.lanes; ++lane) AddLinksBeside(lane);
  }

  int64_t now_us() const { return now_us_; }
  const NetworkOptions& options() const { return options_; }
  WorkerStreams& streams(int worker) { return *streams_[static_cast<size_t>(worker)]; }
  Aggregator& aggregator(int server) { return *aggregators_[static_cast<size_t>(server)]; }
  // Of a leader; null: the worker is none.
  Aggregator* host_sums(int worker) { return host_sums_[static_cast<size_t>(worker)].get(); }
  Pipe& pipe(bool to_server, int worker, int server, int lane = 0) {
    const int link = (lane * options_.workers + worker) * options_.shares.servers() + server;
    return *pipes_[static_cast<size_t>(2 * link + (to_server ? 0 : 1))];
  }
  std::vector<std::string>& reports() { return reports_; }

  void Submit(int worker, const std::shared_ptr<Operation>& op) {
    fresh_ = true;
    streams(worker).Submit(op, now_us_);
  }
  void More(int worker, const std::shared_ptr<Operation>& op) {
    fresh_ = true;
    streams(worker).More(op, now_us_);
  }
  void After(int64_t delay_us, std::function<void()> call) {
    events_.emplace(now_us_ + delay_us, std::move(call));
  }

  // The worker says that it has finished, to all servers.
  void Depart(int worker) {
    fresh_ = true;
    Header goodbye;
    goodbye.kind = PacketKind::kGoodbye;
    for (const auto& aggregator : aggregators_) {
      for (int lane = 0; lane < options_.lanes; ++lane) {
        const int link = LinkOf(worker, lane, options_.lanes);
        CHECK_OK(aggregator->OnPacket(link, goodbye, now_us_));
      }
    }
    const std::vector<int> beside = options_.hosts.Workers(worker);
    for (size_t i = 1; i < beside.size(); ++i) {
      for (int lane = 0; lane < options_.lanes; ++lane) {
        const bool leads = options_.hosts.Leads(worker);
        if (leads) {
          char* target = nullptr;
          const int link = LinkOf(options_.shares.servers(), lane, options_.lanes);
          CHECK_OK(streams(beside[i]).OnHeader(link, goodbye, now_us_, &target));
        } else if (beside[i] == worker && options_.hosts.Follows(worker)) {
          const int link = LinkOf(static_cast<int>(i), lane, options_.lanes);
          CHECK_OK(host_sums(beside[0])->OnPacket(link, goodbye, now_us_));
        }
      }
    }
  }

  // The server is no more. Another takes its place; each worker hears of it within `within_us`, and
  // is connected to it some time after that.
  void LoseServer(int server, int64_t within_us) {
    fresh_ = true;
    for (int w = 0; w < options_.workers; ++w) Cut(w, server);
    Aggregator* const fresh = Adopt(server, lost_, {}, nullptr);
    for (int w = 0; w < options_.workers; ++w) {
      const auto gone = [=] { return lost_.count(w) != 0 || &aggregator(server) != fresh; };
      After(random_->Between(0, within_us), [=] {
        if (gone()) return;
        streams(w).Moved(server, now_us_);
        After(random_->Between(0, within_us), [=] {
          if (gone()) return;
          Attach(w, server, fresh);
        });
      });
    }
  }

  // The worker is no more; each server hears of it within `within_us`, or has before.
  void Lose(int worker, int64_t within_us) {
    fresh_ = true;
    for (int s = 0; s < options_.shares.servers(); ++s) {
      Cut(worker, s);
      Aggregator* const of = &aggregator(s);  // it may be gone by then
      After(random_->Between(0, within_us), [=] {
        if (aggregators_[static_cast<size_t>(s)].get() == of && lost_.count(worker) != 0) {
          of->Drop(worker, 0);
        }
      });
    }
    lost_.insert(worker);
    streams(worker).Fail(Status::Closed("it is lost"));
  }

  // For nodes that hear of each other by letters (sim/whole_job.h), one by one.
  //
  // Another aggregator of the server's slots, which is found here from now on. Whoever still talks
  // to the one before may do so.
  Aggregator* Adopt(int server, const std::set<int>& out, const std::set<int>& new_ones,
                    std::function<void(int worker)> unfit, bool resumes = true) {
    AggregatorOptions o = OptionsOf(server, resumes);
    o.unfit = std::move(unfit);
    o.new_ones = new_ones;
    o.absent = out;
    const auto s = static_cast<size_t>(server);
    gone_.push_back(std::move(aggregators_[s]));
    aggregators_[s] = std::make_unique<Aggregator>(o);
    return aggregators_[s].get();
  }
  void Cut(int worker, int server) {
    for (int lane = 0; lane < options_.lanes; ++lane) {
      pipe(true, worker, server, lane).Cut();
      pipe(false, worker, server, lane).Cut();
    }
  }
  // Nothing arrives, either way, until it is held no more.
  void Hold(int worker, int server, bool held) {
    for (int lane = 0; lane < options_.lanes; ++lane) {
      pipe(true, worker, server, lane).Hold(held);
      pipe(false, worker, server, lane).Hold(held);
    }
    fresh_ = true;
  }
  void Attach(int worker, int server, Aggregator* aggregator) {
    for (int lane = 0; lane < options_.lanes; ++lane) Connect(worker, server, lane, aggregator);
  }
  // Of a newcomer, in a place that others may have had.
  void Renew(int worker, const std::vector<bool>& moved = {}) {
    gone_streams_.push_back(std::move(streams_[static_cast<size_t>(worker)]));
    streams_[static_cast<size_t>(worker)] = NewStreams(worker, moved);
  }

  // Runs until `done` or nothing can happen any more; false: that, or the time is over.
  bool Run(const std::function<bool()>& done, int64_t limit_us = 3600000000) {
    const int64_t end = now_us_ + limit_us;
    while (!done()) {
      const int64_t next = NextAt();
      if (next == kNever || now_us_ >= end) return done();
      Step(std::max(next - now_us_, random_->Between(20, 200)));
    }
    return true;
  }
  // Until all links are empty.
  void Settle() {
    Run([this] { return NextAt() == kNever; }, 60000000);
  }
  // The first error of any link.
  Status LinkStatus() const {
    for (const auto& pipe : pipes_) {
      if (!pipe->status().ok()) return pipe->status();
    }
    return Status::Ok();
  }

 private:
  void AddEnds() {
    for (int w = 0; w < options_.workers; ++w) {
      host_sums_.push_back(MakeHostSums(w));
      streams_.push_back(NewStreams(w));
    }
    for (int s = 0; s < options_.shares.servers(); ++s) {
      aggregators_.push_back(std::make_unique<Aggregator>(OptionsOf(s, false)));
    }
  }
  std::unique_ptr<WorkerStreams> NewStreams(int w, const std::vector<bool>& moved = {}) {
    WorkerStreamsOptions o;
    o.moved = moved;
    o.shares = options_.shares;
    o.num_workers = options_.workers;
    o.lanes = options_.lanes;
    o.policy = options_.policy;
    if (!options_.profiles.empty()) {
      o.policy.profile_text = options_.profiles[static_cast<size_t>(w)];
    }
    o.stall = options_.stall;
    o.stalled = options_.stalled;
    o.rank = w;
    o.hosts = options_.hosts;
    o.host_sums = host_sums_[static_cast<size_t>(w)];
    o.keeps_sums = options_.keeps_sums;
    o.wake = [](int /*lane*/) {};  // all ask, again and again
    return std::make_unique<WorkerStreams>(
        o, [this](const std::string& line) { reports_.push_back(line); });
  }
  AggregatorOptions OptionsOf(int s, bool resumes) const {
    AggregatorOptions o;
    o.resumes = resumes;
    o.absent = lost_;
    o.num_workers = options_.workers;
    o.shares = options_.shares;
    o.server = s;
    o.hosts = options_.hosts;
    o.lanes = options_.lanes;
    o.policy = options_.policy.kind;
    o.unit_bytes = options_.policy.unit_bytes;
    o.packet_bytes = options_.policy.packet_bytes;
    o.bytes_max = options_.bytes_max;
    o.tensors_max = options_.tensors_max;
    o.levels_max = options_.policy.levels_max;
    o.deterministic = options_.deterministic;
    o.elastic = options_.elastic;
    o.adapt_packets = options_.policy.adapt_packets;
    o.allocate = options_.allocate;
    o.wake = [](int /*lane*/) {};
    return o;
  }
  std::shared_ptr<Aggregator> MakeHostSums(int worker) {
    if (!options_.hosts.Leads(worker)) return nullptr;
    AggregatorOptions o;
    o.shares = options_.shares;
    o.OfHost(options_.hosts, worker);
    o.lanes = options_.lanes;
    o.policy = options_.policy.kind;
    o.packet_bytes = options_.policy.packet_bytes;
    o.levels_max = options_.policy.levels_max;
    o.deterministic = options_.deterministic;
    o.allocate = options_.allocate;
    o.wake = [](int /*lane*/) {};
    o.above.ready = [this, worker](uint64_t key, int server, uint64_t slots, uint8_t round,
                                   int lane) {
      streams(worker).HostReady(key, server, slots, round, lane, now_us_);
    };
    o.above.failed = [this, worker](uint64_t key, const Status& status) {
      streams(worker).HostFailed(key, status);
    };
    return std::make_shared<Aggregator>(o);
  }
  // Of who has a leader, to that one; after all those to servers.
  void AddLinksBeside(int lane) {
    for (int w = 0; w < options_.workers; ++w) {
      if (!options_.hosts.Follows(w)) continue;
      const std::vector<int> beside = options_.hosts.Workers(w);
      const auto at = std::find(beside.begin(), beside.end(), w) - beside.begin();
      const Pipe::End worker{&streams(w), LinkOf(options_.shares.servers(), lane, options_.lanes)};
      const Pipe::End leader{host_sums(beside[0]),
                             LinkOf(static_cast<int>(at), lane, options_.lanes)};
      for (const bool up : {true, false}) {
        pipes_.push_back(std::make_unique<Pipe>(up ? worker : leader, up ? leader : worker,
                                                RandomShape(random_), options_.policy.packet_bytes,
                                                options_.checksum, random_));
      }
    }
  }
  void AddLinks(int lane) {
    for (int w = 0; w < options_.workers; ++w) {
      for (int s = 0; s < options_.shares.servers(); ++s) {
        for (const bool up : {true, false}) {
          pipes_.push_back(NewPipe(w, s, lane, up, &aggregator(s)));
        }
      }
    }
  }
  std::unique_ptr<Pipe> NewPipe(int w, int s, int lane, bool up, Aggregator* aggregator) {
    const Pipe::End worker{&streams(w), LinkOf(s, lane, options_.lanes)};
    const Pipe::End server{aggregator, LinkOf(w, lane, options_.lanes)};
    return std::make_unique<Pipe>(up ? worker : server, up ? server : worker, RandomShape(random_),
                                  options_.policy.packet_bytes, options_.checksum, random_);
  }
  void Connect(int w, int s, int lane, Aggregator* aggregator) {
    const int link = (lane * options_.workers + w) * options_.shares.servers() + s;
    for (const bool up : {true, false}) {
      pipes_[static_cast<size_t>(2 * link + (up ? 0 : 1))] = NewPipe(w, s, lane, up, aggregator);
    }
    fresh_ = true;
  }

  int64_t NextAt() const {
    int64_t next = events_.empty() ? kNever : events_.begin()->first;
    if (fresh_) return now_us_;
    for (const auto& pipe : pipes_) next = std::min(next, pipe->NextAt());
    for (int w = 0; w < options_.workers; ++w) {
      const int leader = options_.hosts.Follows(w) ? 1 : 0;
      for (int s = 0; s < options_.shares.servers() + leader; ++s) {
        const auto& streams = streams_[static_cast<size_t>(w)];
        next = std::min(next, streams->WakeAt(LinkOf(s, 0, options_.lanes)));
      }
    }
    if (options_.ticks) next = std::min(next, next_tick_us_);
    return next;
  }

  void Step(int64_t elapsed_us) {
    now_us_ += elapsed_us;
    fresh_ = false;
    while (!events_.empty() && events_.begin()->first <= now_us_) {
      const std::function<void()> call = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      call();
      fresh_ = true;
    }
    if (options_.ticks && now_us_ >= next_tick_us_) {
      for (const auto& streams : streams_) streams->Tick(now_us_);
      next_tick_us_ = now_us_ + 1000000;
    }
    const size_t first = random_->Below(pipes_.size());
    uint64_t before = 0, after = 0;
    for (const auto& pipe : pipes_) before += pipe->bytes();
    for (size_t i = 0; i < pipes_.size(); ++i) {
      pipes_[(first + i) % pipes_.size()]->Step(now_us_, elapsed_us);
    }
    for (const auto& pipe : pipes_) after += pipe->bytes();
    fresh_ = fresh_ || before != after;  // whoever received may have something to send
  }

  NetworkOptions options_;
  Random* const random_;
  int64_t now_us_ = 1000000;
  int64_t next_tick_us_ = 0;
  bool fresh_ = true;
  std::multimap<int64_t, std::function<void()>> events_;
  std::vector<std::shared_ptr<Aggregator>> host_sums_;  // by worker
  std::vector<std::unique_ptr<WorkerStreams>> streams_;
  std::vector<std::unique_ptr<Aggregator>> aggregators_;
  std::vector<std::unique_ptr<Pipe>> pipes_;
  std::vector<std::unique_ptr<Aggregator>> gone_;
  std::vector<std::unique_ptr<WorkerStreams>> gone_streams_;
  std::set<int> lost_;  // workers
  std::vector<std::string> reports_;
};

}  // namespace mercury::testing
