#include "packets/mercury_server.h"

#include <utility>

#include "base/node_name.h"
#include "base/refusal.h"
#include "letters/letter_endpoint.h"
#include "links/local_socket.h"
#include "transport/figures.h"

namespace mercury {

struct MercuryServer::Slice {
  Aggregator* aggregator = nullptr;
  std::unique_ptr<Lane> lane;
};

MercuryServer::MercuryServer(PlaneEvents events) : events_(std::move(events)) {}

MercuryServer::~MercuryServer() { Stop(); }

Status MercuryServer::Listen(const std::string& host, const TcpOptions& options, int* port) {
  Status status = mercury::Listen(host, port, options, &listener_);
  // Without it, workers of this host use TCP.
  if (status.ok()) (void)ListenLocally({host, *port}, &local_listener_);
  return status;
}

Status MercuryServer::Start(const MercuryOptions& options) {
  options_ = options;
  for (int i = 0; i < options_.lanes; ++i) {
    AggregatorOptions aggregator_options;
    aggregator_options.num_workers = options_.workers;
    aggregator_options.shares = options_.shares;
    aggregator_options.server = options_.rank;
    aggregator_options.lanes = options_.lanes;
    aggregator_options.lane = i;
    aggregator_options.policy = options_.policy.kind;
    aggregator_options.unit_bytes = options_.policy.unit_bytes;
    aggregator_options.packet_bytes = options_.policy.packet_bytes;
    // Shared by the lanes; however small, it does not become "no cap".
    aggregator_options.bytes_max =
        (options_.server_bytes_max + options_.lanes - 1) / static_cast<uint64_t>(options_.lanes);
    aggregator_options.levels_max = options_.policy.levels_max;
    aggregator_options.adapt_packets = options_.policy.adapt_packets;
    aggregator_options.deterministic = options_.deterministic;
    aggregator_options.trace = options_.trace;
    aggregator_options.trace_overhead = options_.packet_overhead();
    if (local_listener_) aggregator_options.lends = LentMemory::Make();
    auto aggregator = std::make_unique<Aggregator>(aggregator_options);
    auto slice = std::make_unique<Slice>();
    slice->aggregator = aggregator.get();
    std::unique_ptr<Endpoint> endpoint = std::move(aggregator);
    if (i == 0) endpoint = WithLetters(std::move(endpoint));
    LaneEvents events;
    events.lost = events_.lost;
    events.left = [](int /*worker*/) {};  // the aggregator has heard the goodbye
    LinkOptions link = options_.link();
    link.lends = aggregator_options.lends;
    link.first_peer = options_.rank % options_.workers;
    slice->lane = std::make_unique<Lane>(std::move(endpoint), link, std::move(events));
    slices_.push_back(std::move(slice));
  }
  door_ = std::make_unique<Acceptor>(
      &slices_[0]->lane->loop(), std::move(listener_), options_.door(),
      [this](int worker, int lane, TcpSocket socket) { Take(worker, lane, std::move(socket)); },
      [this](const std::string& why) { Refused(why); });
  if (local_listener_) door_->AddListener(std::move(local_listener_));
  Status status = door_->Start();
  slices_[0]->lane->on_turn = [this](int64_t now_us) { door_->Turn(now_us); };
  for (size_t i = 0; i < slices_.size() && status.ok(); ++i) {
    status = slices_[i]->lane->Start("mercury-" + std::to_string(i));
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
      Obey);
  return endpoint;
}

void MercuryServer::Take(int worker, int lane, TcpSocket socket) {
  if (!taken_.emplace(worker, lane).second) {
    return Refused("a second connection of worker " + std::to_string(worker));
  }
  Slice* slice = slices_[static_cast<size_t>(lane)].get();
  if (lane == 0) return slice->lane->AddLink(std::move(socket), worker);
  auto moved = std::make_shared<TcpSocket>(std::move(socket));
  slice->lane->Post([slice, moved, worker] { slice->lane->AddLink(std::move(*moved), worker); });
}

void MercuryServer::Refused(const std::string& why) { LogRefusal(why, ++refusals_); }

void MercuryServer::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    running_ = false;
  }
  for (auto& slice : slices_) slice->lane->Stop();
  door_.reset();  // the lanes stay: who asks for figures may still hold on to them
  listener_.Close();
  local_listener_.Close();
}

std::string MercuryServer::Figures() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!running_) return "{}";
  }
  std::vector<LinkFigures> links;
  uint64_t pool = 0, in_use = 0, tensors = 0;
  for (auto& slice : slices_) {
    slice->lane->Ask([&] {
      pool += slice->aggregator->pool().bytes();
      in_use += slice->aggregator->pool().bytes_handed_out();
      tensors = std::max<uint64_t>(tensors, slice->aggregator->tensors());
      for (const auto& [worker, link] : slice->lane->links()) {
        LinkFigures figures;
        figures.peer = NodeName(Role::kWorker, worker);
        figures.connected = true;
        figures.counters = link->counters();
        figures.segments_sent_again = PathOf(link->fd()).sent_again;
        figures.depths = slice->aggregator->Depths(worker);
        figures.packet_bytes = options_.policy.packet_bytes;
        links.push_back(std::move(figures));
      }
      for (const auto& [worker, counters] : slice->lane->ended()) {
        LinkFigures figures;
        figures.peer = NodeName(Role::kWorker, worker);
        figures.counters = counters;
        links.push_back(std::move(figures));
      }
    });
  }
  return FiguresJson("server", options_.rank, Name(options_.policy.kind), links,
                     {{"pool_bytes", pool},
                      {"pool_bytes_in_use", in_use},
                      {"tensors", tensors},
                      {"connections_refused", refusals_}});
}

}  // namespace mercury
