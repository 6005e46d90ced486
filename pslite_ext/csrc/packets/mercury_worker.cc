#include "packets/mercury_worker.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/node_name.h"
#include "base/refusal.h"
#include "letters/errands.h"
#include "letters/letter_endpoint.h"
#include "packets/coded_operation.h"
#include "packets/leader_endpoint.h"
#include "trace/trace_log.h"
#include "transport/figures.h"

namespace mercury {

// A lane, and what it dials.
struct MercuryWorker::Slice {
  uint16_t number = 0;
  LetterEndpoint* letters = nullptr;               // the lane's own: of the first one
  std::unique_ptr<Errands> errands;                // the same
  Status failure;                                  // the errands'
  std::map<int, std::unique_ptr<Dialer>> dialers;  // by server
  std::map<int, int> moves;                        // the same: how often it has moved
  std::map<int, int> homes;                        // and to which server
  std::set<int> linked;                            // servers to which there has been a link
  std::unique_ptr<Lane> lane;                      // last: its thread uses the rest
};

MercuryWorker::MercuryWorker(const MercuryOptions& options, PlaneEvents events)
    : options_(options), events_(std::move(events)), key_(DataKey(options.token, options.job)) {}

MercuryWorker::~MercuryWorker() { Stop(); }

Status MercuryWorker::Start(const std::vector<Home>& servers, PlaneDoor door) {
  links_missing_ = static_cast<int>(servers.size()) * options_.lanes;
  if (options_.hosts.Leads(options_.rank)) {
    door_ = std::move(door);
    MakeHostSums();
  } else {
    door.Close();
  }
  MakeStreams(servers);
  for (int i = 0; i < options_.lanes; ++i) {
    auto slice = std::make_unique<Slice>();
    slice->number = static_cast<uint16_t>(i);
    LaneEvents events;
    events.lost = [this, s = slice.get()](int peer, const Status& status) {
      Lost(*s, peer, status);
    };
    events.left = [](int /*peer*/) {};  // the job ends, and the control plane says how
    if (i == 0) {
      events.tick = [this, s = slice.get()](int64_t now_us) {
        streams_->Tick(now_us);
        s->errands->Tick(now_us);
      };
    }
    LinkOptions link = options_.link();
    link.first_peer = options_.rank % options_.shares.servers();
    link.lends = lends_;
    if (host_sums_ != nullptr) {
      link.ring_bytes = RingBytesOf(static_cast<size_t>(options_.lanes) * (beside_.size() - 1));
    }
    slice->lane = std::make_unique<Lane>(EndOf(slice.get()), link, std::move(events));
    slice->lane->on_turn = [this, s = slice.get()](int64_t now_us) {
      for (auto& [server, dialer] : s->dialers) dialer->Turn(now_us);
      if (s->number == 0) door_.Turn(now_us);
    };
    slices_.push_back(std::move(slice));
  }
  if (host_sums_ != nullptr) {
    const Status status = Serve();
    if (!status.ok()) return status;
  }
  for (auto& slice : slices_) {
    Status status = slice->lane->Start("mercury-" + std::to_string(slice->number));
    if (!status.ok()) return status;
  }
  for (auto& owned : slices_) {
    Slice* slice = owned.get();
    slice->lane->Post([this, slice, servers] {
      for (size_t s = 0; s < servers.size(); ++s) {
        const auto server = static_cast<int>(s);
        if (servers[s].server != server) slice->homes[server] = servers[s].server;
        Dial(slice, server, servers[s].address, options_.generation);
      }
    });
  }
  return Status::Ok();
}

void MercuryWorker::MakeStreams(const std::vector<Home>& servers) {
  WorkerStreamsOptions options;
  options.shares = options_.shares;
  options.num_workers = options_.workers;
  options.rank = options_.rank;
  options.hosts = options_.hosts;
  options.host_sums = host_sums_;
  options.lanes = options_.lanes;
  options.deterministic = options_.deterministic;
  options.policy = options_.policy;
  options.policy.links = options_.shares.servers();
  options.stall = options_.stall;
  options.stalled = options_.stalled;
  options.keeps_sums = options_.servers_may_go;
  for (const Home& home : servers) options.moved.push_back(home.moved);
  options.trace = options_.trace;
  options.trace_overhead = options_.packet_overhead();
  if (options_.trace != nullptr) options.notes = NoteInTrace;
  options.wake = [this](int lane) { slices_[static_cast<size_t>(lane)]->lane->Wake(); };
  streams_ = std::make_shared<WorkerStreams>(
      options, [](const std::string& line) { Log(LogLevel::kWarning, line); });
}

void MercuryWorker::MakeHostSums() {
  beside_ = options_.hosts.Workers(options_.rank);
  lends_ = door_.Lends();
  AggregatorOptions options;
  options.shares = options_.shares;
  options.lanes = options_.lanes;
  options.policy = options_.policy.kind;
  options.packet_bytes = options_.policy.packet_bytes;
  options.levels_max = options_.policy.levels_max;
  options.deterministic = options_.deterministic;
  options.trace = options_.trace;
  options.trace_overhead = options_.packet_overhead();
  options.lends = lends_;
  options.wake = [this](int lane) { slices_[static_cast<size_t>(lane)]->lane->Wake(); };
  options.OfHost(options_.hosts, options_.rank);
  options.above.ready = [this](uint64_t key, int server, uint64_t slots, uint8_t round, int lane) {
    streams_->HostReady(key, server, slots, round, lane, NowUs());
  };
  options.above.failed = [this](uint64_t key, const Status& status) {
    streams_->HostFailed(key, status);
  };
  host_sums_ = std::make_shared<Aggregator>(options);
}

std::unique_ptr<Endpoint> MercuryWorker::EndOf(Slice* slice) {
  const int lane = slice->number;
  std::unique_ptr<Endpoint> end = std::make_unique<LaneEndpoint>(streams_, lane, options_.lanes);
  if (lane == 0) end = WithLetters(slice, std::move(end));
  if (host_sums_ == nullptr) return end;
  return std::make_unique<LeaderEndpoint>(
      std::move(end), std::make_unique<LaneEndpoint>(host_sums_, lane, options_.lanes),
      options_.shares.servers());
}

// The host's other workers come to it as to a server.
Status MercuryWorker::Serve() {
  DoorOptions options = options_.door();
  options.terms.server = options_.leader_number(options_.rank);
  return door_.Serve(
      &slices_[0]->lane->loop(), options,
      [this](const Terms& theirs, TcpSocket socket) {
        Take(static_cast<int>(theirs.worker), theirs.lane, std::move(socket));
      },
      [this](const std::string& why) { LogRefusal(why, ++refusals_); });
}

void MercuryWorker::Take(int worker, int lane, TcpSocket socket) {
  const auto at = std::find(beside_.begin(), beside_.end(), worker);
  if (at == beside_.end() || at == beside_.begin()) {
    return LogRefusal("worker " + std::to_string(worker) + " of another host", ++refusals_);
  }
  if (!taken_.emplace(worker, lane).second) {
    return LogRefusal("a second connection of worker " + std::to_string(worker), ++refusals_);
  }
  const int peer = options_.shares.servers() + static_cast<int>(at - beside_.begin());
  Lane* to = slices_[static_cast<size_t>(lane)]->lane.get();
  auto moved = std::make_shared<TcpSocket>(std::move(socket));
  to->Post([to, moved, peer] { to->AddLink(std::move(*moved), peer); });
}

void MercuryWorker::Lost(const Slice& slice, int peer, const Status& status) {
  const int beside = peer - options_.shares.servers();
  const auto home = slice.homes.find(peer);
  if (beside < 0) return events_.lost(home != slice.homes.end() ? home->second : peer, status);
  events_.lost_beside(beside_.empty() ? Leader() : beside_[static_cast<size_t>(beside)], status);
}

std::string MercuryWorker::PeerName(int peer) const {
  const int beside = peer - options_.shares.servers();
  if (beside < 0) return NodeName(Role::kServer, peer);
  return NodeName(Role::kWorker, beside_.empty() ? Leader() : beside_[static_cast<size_t>(beside)]);
}

std::unique_ptr<Endpoint> MercuryWorker::WithLetters(Slice* slice,
                                                     std::unique_ptr<Endpoint> streams) {
  LetterEndpoint::Hears hears;
  hears.letter = [slice](int server, const std::string& letter, int64_t now_us) {
    std::vector<Over> over;
    const Status status = slice->errands->Hear(server, letter, now_us, &over);
    FinishAll(over);
    return status;
  };
  // With a scheduler, that one says more.
  hears.goodbye = [this, slice](int server, bool done) {
    if (!done && options_.elastic) Lost(*slice, server, Status::PeerLost("it has failed"));
  };
  auto endpoint = std::make_unique<LetterEndpoint>(std::move(streams), options_.policy.packet_bytes,
                                                   kJobLetterBytesMax, std::move(hears));
  slice->letters = endpoint.get();
  slice->errands = std::make_unique<Errands>(
      ErrandsOptions{options_.shares, options_.stall, options_.stalled, options_.trace,
                     options_.servers_may_go},
      [post = endpoint.get()](int server, const JobLetter& letter) {
        post->Post(server, Encode(letter));
      },
      [](const std::string& line) { Log(LogLevel::kWarning, line); });
  return endpoint;
}

void MercuryWorker::Dial(Slice* slice, int server, const Address& address, uint64_t generation) {
  Terms terms = options_.terms();
  terms.generation = generation;
  const bool leader = server == options_.shares.servers();
  terms.server = leader ? options_.leader_number(Leader()) : static_cast<uint32_t>(server);
  terms.lane = slice->number;
  const int64_t now = NowUs();
  // The scheduler may be lost before the server hears that it has another's slots; one that goes on
  // in its place says so again.
  const int64_t patience_us = (options_.elastic ? 2 : 1) * options_.handshake_timeout_us;
  auto made = std::make_unique<Dialer>(
      &slice->lane->loop(), key_, terms, address, options_.tcp, now + patience_us,
      [this, slice, server](const Status& status, TcpSocket socket) {
        if (!status.ok()) return Lost(*slice, server, status);
        slice->lane->AddLink(std::move(socket), server);
        const bool first = slice->linked.insert(server).second;
        if (first && --links_missing_ == 0) events_.ready();
      });
  Dialer* dialer = made.get();
  slice->dialers.insert_or_assign(server, std::move(made));
  dialer->Start(now);
}

// First the old links end, in all lanes: then nothing of them is under way any more.
void MercuryWorker::Move(int server, int home, const Address& address, uint64_t generation) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int move = ++moves_[server];
  auto left = std::make_shared<std::atomic<int>>(options_.lanes);
  for (const auto& owned : slices_) {
    Slice* slice = owned.get();
    slice->lane->Post([=] {
      slice->moves[server] = move;
      slice->homes[server] = home;
      slice->dialers.erase(server);
      slice->lane->Close(server);
      if (--*left != 0) return;
      slices_[0]->lane->Post([=] { MoveNow(server, address, move, generation); });
    });
  }
}

// On the first lane's thread.
void MercuryWorker::MoveNow(int server, const Address& address, int move, uint64_t generation) {
  slices_[0]->letters->Forget(server);
  streams_->Moved(server, NowUs());
  if (slices_[0]->failure.ok()) slices_[0]->errands->Moved(server);
  for (const auto& owned : slices_) {
    Slice* slice = owned.get();
    slice->lane->Post([=] {
      if (slice->moves[server] != move) return;  // it has moved on
      Dial(slice, server, address, generation);
    });
  }
}

void MercuryWorker::Stop() {
  bool failed;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    failed = !failure_.ok();
  }
  Fail(Status::Closed("this node has left the job"));  // first: what comes later is not queued
  // The host's other workers get what is made for them.
  const Parting parting = failed                  ? Parting::kFailed
                          : host_sums_ != nullptr ? Parting::kServed
                                                  : Parting::kDone;
  for (auto& slice : slices_) slice->lane->Stop(parting);
  // The lanes' threads are gone: what they still held fails here.
  if (!slices_.empty()) FailNow(Status::Closed("this node has left the job"));
  for (auto& slice : slices_) slice->dialers.clear();
  door_.Close();
}

void MercuryWorker::SubmitCommand(const std::shared_ptr<Operation>& op) {
  Status failure;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    failure = failure_;
    if (failure.ok()) {
      slices_[0]->lane->Post([slice = slices_[0].get(), op] {
        std::vector<Over> over;
        if (slice->failure.ok()) {
          slice->errands->Begin(op, NowUs(), &over);
        } else {
          over.push_back({op, slice->failure});
        }
        FinishAll(over);
      });
    }
  }
  if (!failure.ok()) op->Finish(failure);
}

void MercuryWorker::Submit(std::shared_ptr<Operation> op) {
  if (op->kind == Operation::Kind::kCommand) return SubmitCommand(op);
  const Placement placement = PlacementOf(*op, options_.policy.packet_bytes, options_.shares);
  const Status coded = CodeOperation(placement, op.get());
  if (!coded.ok()) return op->Finish(coded);
  if (options_.numbers != nullptr) op->number = options_.numbers->Take(*op);
  if (options_.trace != nullptr) op->handed_us = NowUs();
  Status failure;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    failure = failure_;
    // Under the lock, so that an operation is queued either before Fail, or not at all.
    if (failure.ok()) slices_[0]->lane->Post([this, op] { streams_->Submit(op, NowUs()); });
  }
  if (!failure.ok()) op->Finish(failure);
}

void MercuryWorker::More(const std::shared_ptr<Operation>& op) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.ok()) return;
  slices_[0]->lane->Post([this, op] { streams_->More(op, NowUs()); });
}

void MercuryWorker::Fail(const Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.ok()) return;
  failure_ = status;
  if (!slices_.empty()) slices_[0]->lane->Post([this, status] { FailNow(status); });
}

// On the first lane's thread, or when there is none any more.
void MercuryWorker::FailNow(const Status& status) {
  streams_->Fail(status);
  if (host_sums_ != nullptr) host_sums_->LetGo();
  Slice& first = *slices_[0];
  if (!first.failure.ok()) return;
  first.failure = status;
  std::vector<Over> over;
  first.errands->Fail(status, &over);
  FinishAll(over);
}

std::string MercuryWorker::Figures() {
  std::vector<LinkFigures> links;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_ || slices_.empty()) return "{}";
  }
  for (auto& slice : slices_) {
    slice->lane->Ask([&] {
      for (const auto& [server, link] : slice->lane->links()) {
        LinkFigures figures;
        figures.peer = PeerName(server);
        figures.connected = true;
        figures.counters = link->counters();
        figures.segments_sent_again = PathOf(link->fd()).sent_again;
        // Of all links to that server together.
        if (slice->number == 0) Describe(server, &figures);
        links.push_back(std::move(figures));
      }
    });
  }
  std::vector<std::pair<std::string, uint64_t>> totals{
      {"tensors_under_way", streams_->under_way()}};
  if (const std::optional<ProphetFigures> profile = streams_->profile()) {
    for (auto& total : ProfileTotals(*profile)) totals.push_back(std::move(total));
  }
  return FiguresJson("worker", options_.rank, Name(options_.policy.kind), links, totals);
}

// How it sends to a peer, but for the link.
void MercuryWorker::Describe(int peer, LinkFigures* figures) const {
  const int beside = peer - options_.shares.servers();
  if (beside < 0 || host_sums_ == nullptr) return streams_->Describe(peer, figures);
  figures->depths = host_sums_->Depths(beside);
  figures->packet_bytes = options_.policy.packet_bytes;
}

std::string MercuryWorker::Waiting() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_ || slices_.empty()) return "";
  }
  std::string lines = streams_->Waiting(NowUs());
  slices_[0]->lane->Ask([&] { lines += slices_[0]->errands->Waiting(NowUs()); });
  return lines;
}

std::string MercuryWorker::Profile() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_ || streams_ == nullptr) return "";
  }
  return streams_->ProfileText();
}

}  // namespace mercury
