#include "packets/mercury_server.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/node_name.h"
#include "base/refusal.h"
#include "letters/letter_endpoint.h"
#include "transport/figures.h"

namespace mercury {

MercuryServer::MercuryServer(PlaneEvents events) : events_(std::move(events)) {}

MercuryServer::~MercuryServer() { Stop(); }

Status MercuryServer::Start(const MercuryOptions& options, const std::map<int, uint8_t>& entries) {
  options_ = options;
  is_in_ = !options_.late;
  generation_ = options_.generation;
  if (options_.late) entries_ = entries;
  for (int w = 0; w < options_.workers; ++w) {
    const bool there = options_.late ? entries.count(w) != 0 : w < options_.workers - options_.free;
    if (there) continue;
    dropped_.insert(w);
    out_.insert(w);
  }
  shards_.push_back(std::make_shared<Shard>());
  shards_[0]->server = options_.rank;
  shards_[0]->aggregator = NewAggregator(options_.rank, options_.late);
  for (int i = 0; i < options_.lanes; ++i) {
    std::unique_ptr<Endpoint> endpoint = EndOf(shards_[0].get(), i);
    if (options_.servers_may_go) {
      auto all = std::make_unique<ShardsEndpoint>(options_.workers);
      all->Set(0, std::move(endpoint));
      ends_.push_back(all.get());
      endpoint = std::move(all);
    }
    LaneEvents events;
    events.lost = [this, i](int peer, const Status& status) {
      if (peer < 0) return events_.lost(peer, status);
      const std::shared_ptr<Shard> shard = ShardOf(peer);
      lanes_[0]->Post([this, shard, peer, i] { LinkGone(shard.get(), peer, i); });
      if (status.code() != Code::kPeerLost || IsMissed(*shard)) {
        events_.lost(WorkerOf(peer), status);
      }
    };
    events.left = [](int /*worker*/) {};  // the aggregator has heard the goodbye
    if (i == 0) {
      events.tick = [this](int64_t now_us) {
        AnswerThoseThatCome(now_us);
        CheckAlone(now_us);
      };
    }
    LinkOptions link = options_.link();
    link.lends = lends_;
    const int local =
        options_.lanes * options_.hosts.WorkersBeside(options_.rank, options_.workers);
    link.ring_bytes = RingBytesOf(static_cast<size_t>(local));
    link.first_peer = options_.rank % options_.workers;
    lanes_.push_back(std::make_unique<Lane>(std::move(endpoint), link, std::move(events)));
  }
  DoorOptions door = options_.door();
  door.terms.any_server = options_.servers_may_go;
  Status status = door_.Serve(
      &lanes_[0]->loop(), door,
      [this](const Terms& theirs, TcpSocket socket) { Take(theirs, std::move(socket)); },
      [this](const std::string& why) { Refused(why); });
  lanes_[0]->on_turn = [this](int64_t now_us) { door_.Turn(now_us); };
  for (size_t i = 0; i < lanes_.size() && status.ok(); ++i) {
    status = lanes_[i]->Start("mercury-" + std::to_string(i));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  running_ = status.ok();
  return status;
}

std::shared_ptr<Aggregator> MercuryServer::NewAggregator(int server, bool resumes) {
  AggregatorOptions aggregator;
  aggregator.num_workers = options_.workers;
  aggregator.absent = out_;
  aggregator.new_ones = new_;
  aggregator.shares = options_.shares;
  aggregator.server = server;
  aggregator.hosts = options_.hosts;
  aggregator.lanes = options_.lanes;
  aggregator.policy = options_.policy.kind;
  aggregator.unit_bytes = options_.policy.unit_bytes;
  aggregator.packet_bytes = options_.policy.packet_bytes;
  aggregator.bytes_max = options_.server_bytes_max;
  aggregator.levels_max = options_.policy.levels_max;
  aggregator.adapt_packets = options_.policy.adapt_packets;
  aggregator.deterministic = options_.deterministic;
  aggregator.elastic = options_.elastic;
  aggregator.resumes = resumes;
  aggregator.trace = options_.trace;
  aggregator.trace_overhead = options_.packet_overhead();
  // Two cannot lend from the same memory: what a lost server's place has is copied.
  if (server == options_.rank) aggregator.lends = lends_ = door_.Lends();
  // Where nobody knows who is on which host, what comes from afar looks slow.
  if (options_.hosts.known())
    aggregator.slow = [this](int worker, int permille) { SaySlow(worker, permille); };
  aggregator.unfit = [this, server](int worker) {
    events_.lost(worker, Status::Closed("it was let in with sums that were lost with " +
                                        NodeName(Role::kServer, server) + "; start it again"));
  };
  aggregator.wake = [this](int lane) { lanes_[static_cast<size_t>(lane)]->Wake(); };
  return std::make_shared<Aggregator>(aggregator);
}

std::unique_ptr<Endpoint> MercuryServer::EndOf(Shard* shard, int lane) {
  std::unique_ptr<Endpoint> endpoint =
      std::make_unique<LaneEndpoint>(shard->aggregator, lane, options_.lanes);
  return lane == 0 ? WithLetters(shard, std::move(endpoint)) : std::move(endpoint);
}

std::unique_ptr<Endpoint> MercuryServer::WithLetters(Shard* shard,
                                                     std::unique_ptr<Endpoint> aggregator) {
  LetterEndpoint::Hears hears;
  hears.letter = [shard](int worker, const std::string& letter, int64_t /*now_us*/) {
    return shard->clerk->Hear(worker, letter);
  };
  hears.goodbye = [this, shard](int worker, bool done) {
    if (!done) {
      // A newcomer fails by itself.
      if (new_.count(worker) == 0) failed_.insert(worker);
      return SayIfFailed();
    }
    shard->clerk->Departed(worker);
    if (events_.finished) events_.finished(worker, entries_[worker]);
    HasLeft(worker);
    lanes_[0]->Post([this] { ForgetThoseGiven(); });  // this may be one of them
  };
  auto endpoint = std::make_unique<LetterEndpoint>(
      std::move(aggregator), options_.policy.packet_bytes, kJobLetterBytesMax, std::move(hears));
  shard->letters = endpoint.get();
  shard->clerk = std::make_unique<Clerk>(
      options_.workers,
      [post = endpoint.get()](int worker, const JobLetter& letter) {
        post->Post(worker, Encode(letter));
      },
      [this, shard](int head, const std::string& body) { return Obeys(shard, head, body); },
      nullptr, options_.elastic,
      [post = endpoint.get()](int worker) { return post->Unsent(worker); });
  for (const int worker : out_) shard->clerk->Departed(worker);
  return endpoint;
}

// Whatever it still sends is of no use.
void MercuryServer::Drop(int worker) {
  lanes_[0]->Post([this, worker] {
    dropped_.insert(worker);
    IsOut(worker);
    SayIfAllAreOut();
    if (failed_.erase(worker) != 0) SayIfFailed();  // it alone had
    early_.remove_if([&](const Early& early) {
      return static_cast<int>(early.theirs.worker) == worker && !ComesEarly(early.theirs);
    });
    for (const auto& shard : shards_) {
      if (shard->aggregator == nullptr) continue;
      shard->clerk->Departed(worker);
      shard->aggregator->Drop(worker, 0);
    }
    // At once: a newcomer may have the place next, and nothing may be taken for its.
    for (auto& lane : lanes_) {
      const auto close = [this, lane = lane.get(), worker] {
        for (size_t i = 0; i < shards_.size(); ++i) {
          lane->Close(static_cast<int>(i) * options_.workers + worker);
        }
      };
      if (lane == lanes_[0]) close();
      if (lane != lanes_[0]) lane->Ask(close);
    }
    ForgetThoseGiven();
  });
}

// As the scheduler says it: one that came late, or has no link of that worker, hears no goodbye.
void MercuryServer::Departed(int worker) {
  lanes_[0]->Post([this, worker] {
    HasLeft(worker);
    ForgetThoseGiven();
  });
}

void MercuryServer::IsOut(int worker) {
  out_.insert(worker);
  new_.erase(worker);
  let_in_.erase(worker);
}

void MercuryServer::HasLeft(int worker) {
  IsOut(worker);
  ForgetWhereItHasNotCome(worker);
  SayIfAllAreOut();
}

// It has left, and comes for no slots that it had not come for before. Where a link of it has ended
// without a goodbye, none comes any more.
void MercuryServer::ForgetWhereItHasNotCome(int worker) {
  for (size_t i = 0; i < shards_.size(); ++i) {
    const int peer = static_cast<int>(i) * options_.workers + worker;
    int lanes = 0;
    for (int lane = 0; lane < options_.lanes; ++lane) {
      const std::pair<int, int> link(peer, lane);
      if (taken_.count(link) != 0 && gone_.count(link) == 0) ++lanes;
    }
    if (lanes == options_.lanes || shards_[i]->aggregator == nullptr) continue;
    shards_[i]->clerk->Departed(worker);
    shards_[i]->aggregator->Drop(worker, 0);
  }
}

void MercuryServer::SayIfAllAreOut() {
  const bool all = static_cast<int>(out_.size() - let_in_.size()) == options_.workers;
  if (all && events_.all_out) events_.all_out();
}

void MercuryServer::SayIfFailed() {
  if (events_.failed) events_.failed(!failed_.empty());
}

void MercuryServer::TakeEarly() {
  std::list<Early> waited;
  waited.swap(early_);
  for (Early& early : waited) {
    if (!MovesOn(early.theirs)) Take(early.theirs, std::move(early.socket));
  }
}

void MercuryServer::Take(const Terms& theirs, TcpSocket socket) {
  const auto worker = static_cast<int>(theirs.worker), server = static_cast<int>(theirs.server);
  const int lane = theirs.lane;
  const auto waits = [&] {
    early_.remove_if([&theirs](const Early& early) {  // it has heard more since
      return early.theirs.worker == theirs.worker && early.theirs.server == theirs.server &&
             early.theirs.lane == theirs.lane;
    });
    early_.push_back({theirs, std::move(socket)});
  };
  if (theirs.generation > generation_ || ComesEarly(theirs)) return waits();
  if (dropped_.count(worker) != 0 || theirs.entry != entries_[worker]) {
    return Refused("worker " + std::to_string(worker) + ", without which the job goes on");
  }
  const size_t number = Here(server);
  // It has not heard yet that the slots have moved on.
  if (number == shards_.size() || theirs.generation < shards_[number]->since) return waits();
  const int peer = static_cast<int>(number) * options_.workers + worker;
  if (!taken_.emplace(peer, lane).second) {
    return Refused("a second connection of worker " + std::to_string(worker));
  }
  gone_.erase({peer, lane});
  Lane* to = lanes_[static_cast<size_t>(lane)].get();
  if (lane == 0) return to->AddLink(std::move(socket), peer);
  auto moved = std::make_shared<TcpSocket>(std::move(socket));
  to->Post([to, moved, peer] { to->AddLink(std::move(*moved), peer); });
}

// Two servers say so: one that is on its host, and another. Each sees what is slow on its side.
void MercuryServer::SaySlow(int worker, int permille) const {
  const bool next = (worker + 1) % options_.shares.servers() == options_.rank;
  if (!next && !options_.hosts.Beside(worker, options_.rank)) return;
  const std::string name = NodeName(Role::kWorker, worker);
  if (permille == 0) return Log(LogLevel::kWarning, name + " is no longer slow");
  Log(LogLevel::kWarning, name + " is slow: lately, sums waited for it alone for " +
                              std::to_string(permille / 10) + " % of the time");
}

void MercuryServer::Refused(const std::string& why) { LogRefusal(why, ++refusals_); }

void MercuryServer::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    running_ = false;
  }
  for (auto& lane : lanes_) lane->Stop(failed_job_ ? Parting::kFailed : Parting::kDone);
  door_.Close();  // the lanes stay: who asks for figures may still hold on to them
}

std::vector<std::shared_ptr<Aggregator>> MercuryServer::Aggregators() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<Aggregator>> all;
  all.reserve(shards_.size());
  for (const auto& shard : shards_) all.push_back(shard->aggregator);
  return all;
}

std::string MercuryServer::Figures() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!running_) return "{}";
  }
  std::vector<LinkFigures> links;
  const std::vector<std::shared_ptr<Aggregator>> aggregators = Aggregators();
  for (size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i]->Ask([&, i] {
      for (const auto& [peer, link] : lanes_[i]->links()) {
        const int worker = WorkerOf(peer);
        const auto shard = static_cast<size_t>(peer / options_.workers);
        if (shard >= aggregators.size() || aggregators[shard] == nullptr)
          continue;  // it has come, or gone
        const Aggregator& aggregator = *aggregators[shard];
        LinkFigures figures;
        figures.peer = NodeName(Role::kWorker, worker);
        figures.connected = true;
        figures.counters = link->counters();
        figures.segments_sent_again = PathOf(link->fd()).sent_again;
        if (i == 0) figures.depths = aggregator.Depths(worker);  // of all its links together
        figures.awaited_permille = static_cast<uint64_t>(aggregator.AwaitedPermille(worker));
        figures.packet_bytes = options_.policy.packet_bytes;
        links.push_back(std::move(figures));
      }
      for (const auto& [peer, counters] : lanes_[i]->ended()) {
        LinkFigures figures;
        figures.peer = NodeName(Role::kWorker, WorkerOf(peer));
        figures.counters = counters;
        links.push_back(std::move(figures));
      }
    });
  }
  uint64_t bytes = 0, in_use = 0, tensors = 0;
  for (const std::shared_ptr<Aggregator>& aggregator : aggregators) {
    if (aggregator == nullptr) continue;
    bytes += aggregator->pool().bytes();
    in_use += aggregator->pool().bytes_handed_out();
    tensors += aggregator->tensors();
  }
  return FiguresJson("server", options_.rank, Name(options_.policy.kind), links,
                     {{"pool_bytes", bytes},
                      {"pool_bytes_in_use", in_use},
                      {"tensors", tensors},
                      {"connections_refused", refusals_}});
}

}  // namespace mercury
