#include "fabric/net/node_endpoint.h"

#include <algorithm>
#include <cmath>

#include "fabric/net/peers.h"

namespace mercury::fabric {
namespace {

constexpr int kSamples = 8;              // of the clock, of which the best is taken
constexpr int64_t kShortestRunUs = 500;  // less says more of processors than of links

}  // namespace

void NodeEndpoint::Play(Part* part, size_t elements, bool two_vectors) {
  part_ = part;
  elements_ = elements;
  two_vectors_ = two_vectors;
  for (const auto& [peer, dock] : docks_) dock->Expect(elements, two_vectors);
}

void NodeEndpoint::Open(int peer) {
  auto dock = std::make_unique<Dock>(packet_bytes_, spares_);
  dock->Expect(elements_, two_vectors_);
  docks_[peer] = std::move(dock);
}

void NodeEndpoint::Close(int peer, int64_t now_us) {
  if (docks_.erase(peer) != 0 && part_ != nullptr) part_->Gone(peer, SchedulerTime(now_us));
}

void NodeEndpoint::Turn(int64_t now_us) {
  now_us_ = now_us;
  if (part_ != nullptr) part_->Turn(SchedulerTime(now_us));
}

bool NodeEndpoint::all_said() const {
  return std::all_of(docks_.begin(), docks_.end(),
                     [](const auto& each) { return each.second->empty(); });
}

double NodeEndpoint::SchedulerTime(int64_t now_us) const {
  return static_cast<double>(now_us + add_us_) / 1e6;
}

void NodeEndpoint::AskTime(int64_t now_us) {
  Letter letter;
  letter.kind = Letter::Kind::kTime;
  letter.asked_us = now_us;
  Post(kSchedulerPeer, letter);
}

void NodeEndpoint::Post(int peer, const Letter& letter) {
  const auto found = docks_.find(peer);
  if (found != docks_.end()) found->second->Post(letter);
}

Status NodeEndpoint::OnHeader(int peer, const Header& header, int64_t now_us, char** target) {
  const auto found = docks_.find(peer);
  if (found == docks_.end()) return Status::Internal("a link that is not open");
  return found->second->OnHeader(header, now_us, target);
}

Status NodeEndpoint::OnPacket(int peer, const Header& header, int64_t now_us) {
  std::optional<Letter> letter;
  Status status = docks_.at(peer)->OnPacket(header, now_us, &letter);
  return status.ok() && letter ? Hear(peer, *letter, now_us) : status;
}

Status NodeEndpoint::Hear(int peer, const Letter& letter, int64_t now_us) {
  now_us_ = std::max(now_us_, now_us);
  Dock& dock = *docks_.at(peer);
  Haul haul;
  switch (letter.kind) {
    case Letter::Kind::kJoin:
    case Letter::Kind::kRoster:
    case Letter::Kind::kReady:
    case Letter::Kind::kBegin:
      return control_(peer, letter);
    case Letter::Kind::kTime:
      TakeTime(peer, letter, now_us);
      return Status::Ok();
    case Letter::Kind::kAborted:
      dock.Forget(letter.waybill.number);
      return Status::Ok();
    case Letter::Kind::kOrder:
      if (letter.order.kind == Order::kFail) return control_(peer, letter);
      break;
    case Letter::Kind::kDelivered:
    case Letter::Kind::kModel: {
      if (letter.waybill.number == 0) break;
      Status status = dock.Take(letter.waybill.number, &haul);
      if (!status.ok()) return status;
      SayCarried(peer, haul);
      break;
    }
    default:
      break;
  }
  if (part_ == nullptr) {
    // The model's first values go before the job begins; how fast, nobody needs to know.
    if (letter.kind == Letter::Kind::kCarried && node_ == kSchedulerNode) return Status::Ok();
    return Status::Corrupt("a letter before the job has begun");
  }
  return part_->Hear(peer, letter, haul, SchedulerTime(now_us));
}

void NodeEndpoint::TakeTime(int peer, const Letter& letter, int64_t now_us) {
  if (node_ == kSchedulerNode) {
    Letter answer = letter;
    answer.answered_us = now_us;
    return Post(peer, answer);
  }
  if (peer != kSchedulerPeer || letter.answered_us == 0) return;
  clock_.Sample(letter.asked_us, letter.answered_us, letter.answered_us, now_us);
  if (timed_ && clock_.samples() % kSamples != 0) return;
  if (const std::optional<ClockEstimate> estimate = clock_.Take()) {
    timed_ = true;
    add_us_ = estimate->add_us;
  }
}

void NodeEndpoint::SayCarried(int peer, const Haul& haul) {
  if (haul.last_us - haul.first_us < kShortestRunUs) return;
  Letter letter;
  letter.kind = Letter::Kind::kCarried;
  letter.carriage.from = NodeOf(peer);
  letter.carriage.to = node_;
  letter.carriage.bits = 8.0 * static_cast<double>(haul.cargo.bytes());
  letter.carriage.start_s = SchedulerTime(haul.first_us);
  letter.carriage.end_s = SchedulerTime(haul.last_us);
  Post(kSchedulerPeer, letter);
}

bool NodeEndpoint::Next(int peer, int64_t now_us, OutPacket* out) {
  now_us_ = now_us;
  const auto found = docks_.find(peer);
  if (found == docks_.end()) return false;
  if (found->second->Next(out)) return true;
  return part_ != nullptr && part_->Next(peer, SchedulerTime(now_us), out);
}

int64_t NodeEndpoint::WakeAt(int peer) const {
  if (part_ == nullptr) return mercury::kNever;
  const double at_s = part_->WakeAt(peer, SchedulerTime(now_us_));
  if (!(at_s < 1e12)) return mercury::kNever;
  return static_cast<int64_t>(std::ceil(at_s * 1e6)) - add_us_;
}

}  // namespace mercury::fabric
