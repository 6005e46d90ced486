#include "packets/mercury_server.h"

#include <utility>

#include "base/log.h"
#include "base/node_name.h"
#include "base/refusal.h"
#include "letters/letter_endpoint.h"
#include "transport/figures.h"

namespace mercury {

MercuryServer::MercuryServer(PlaneEvents events) : events_(std::move(events)) {}

MercuryServer::~MercuryServer() { Stop(); }

Status MercuryServer::Start(const MercuryOptions& options) {
  options_ = options;
  AggregatorOptions aggregator;
  aggregator.num_workers = options_.workers;
  aggregator.shares = options_.shares;
  aggregator.server = options_.rank;
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
  aggregator.trace = options_.trace;
  aggregator.trace_overhead = options_.packet_overhead();
  aggregator.lends = door_.Lends();
  // Where nobody knows who is on which host, what comes from afar looks slow.
  if (options_.hosts.known())
    aggregator.slow = [this](int worker, int permille) { SaySlow(worker, permille); };
  aggregator.wake = [this](int lane) { lanes_[static_cast<size_t>(lane)]->Wake(); };
  aggregator_ = std::make_shared<Aggregator>(aggregator);
  for (int i = 0; i < options_.lanes; ++i) {
    std::unique_ptr<Endpoint> endpoint =
        std::make_unique<LaneEndpoint>(aggregator_, i, options_.lanes);
    if (i == 0) endpoint = WithLetters(std::move(endpoint));
    LaneEvents events;
    events.lost = events_.lost;
    events.left = [](int /*worker*/) {};  // the aggregator has heard the goodbye
    LinkOptions link = options_.link();
    link.lends = aggregator.lends;
    link.first_peer = options_.rank % options_.workers;
    lanes_.push_back(std::make_unique<Lane>(std::move(endpoint), link, std::move(events)));
  }
  Status status = door_.Serve(
      &lanes_[0]->loop(), options_.door(),
      [this](int worker, int lane, TcpSocket socket) { Take(worker, lane, std::move(socket)); },
      [this](const std::string& why) { Refused(why); });
  lanes_[0]->on_turn = [this](int64_t now_us) { door_.Turn(now_us); };
  for (size_t i = 0; i < lanes_.size() && status.ok(); ++i) {
    status = lanes_[i]->Start("mercury-" + std::to_string(i));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  running_ = status.ok();
  return status;
}

std::unique_ptr<Endpoint> MercuryServer::WithLetters(std::unique_ptr<Endpoint> aggregator) {
  LetterEndpoint::Hears hears;
  hears.letter = [this](int worker, const std::string& letter, int64_t /*now_us*/) {
    return clerk_->Hear(worker, letter);
  };
  hears.goodbye = [this](int worker) { clerk_->Departed(worker); };
  auto endpoint = std::make_unique<LetterEndpoint>(
      std::move(aggregator), options_.policy.packet_bytes, kJobLetterBytesMax, std::move(hears));
  clerk_ = std::make_unique<Clerk>(
      options_.workers,
      [post = endpoint.get()](int worker, const JobLetter& letter) {
        post->Post(worker, Encode(letter));
      },
      Obey, nullptr, options_.elastic);
  return endpoint;
}

// Whatever it still sends is of no use.
void MercuryServer::Drop(int worker) {
  lanes_[0]->Post([this, worker] {
    dropped_.insert(worker);
    clerk_->Departed(worker);
    aggregator_->Drop(worker, 0);
  });
  for (auto& lane : lanes_) {
    lane->Post([lane = lane.get(), worker] { lane->Close(worker); });
  }
}

void MercuryServer::Take(int worker, int lane, TcpSocket socket) {
  if (dropped_.count(worker) != 0) {
    return Refused("worker " + std::to_string(worker) + ", without which the job goes on");
  }
  if (!taken_.emplace(worker, lane).second) {
    return Refused("a second connection of worker " + std::to_string(worker));
  }
  Lane* to = lanes_[static_cast<size_t>(lane)].get();
  if (lane == 0) return to->AddLink(std::move(socket), worker);
  auto moved = std::make_shared<TcpSocket>(std::move(socket));
  to->Post([to, moved, worker] { to->AddLink(std::move(*moved), worker); });
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
  for (auto& lane : lanes_) lane->Stop();
  door_.Close();  // the lanes stay: who asks for figures may still hold on to them
}

std::string MercuryServer::Figures() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!running_) return "{}";
  }
  std::vector<LinkFigures> links;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i]->Ask([&, i] {
      for (const auto& [worker, link] : lanes_[i]->links()) {
        LinkFigures figures;
        figures.peer = NodeName(Role::kWorker, worker);
        figures.connected = true;
        figures.counters = link->counters();
        figures.segments_sent_again = PathOf(link->fd()).sent_again;
        if (i == 0) figures.depths = aggregator_->Depths(worker);  // of all its links together
        figures.awaited_permille = static_cast<uint64_t>(aggregator_->AwaitedPermille(worker));
        figures.packet_bytes = options_.policy.packet_bytes;
        links.push_back(std::move(figures));
      }
      for (const auto& [worker, counters] : lanes_[i]->ended()) {
        LinkFigures figures;
        figures.peer = NodeName(Role::kWorker, worker);
        figures.counters = counters;
        links.push_back(std::move(figures));
      }
    });
  }
  return FiguresJson("server", options_.rank, Name(options_.policy.kind), links,
                     {{"pool_bytes", aggregator_->pool().bytes()},
                      {"pool_bytes_in_use", aggregator_->pool().bytes_handed_out()},
                      {"tensors", aggregator_->tensors()},
                      {"connections_refused", refusals_}});
}

}  // namespace mercury
