#include "fabric/net/node_endpoint.h"

#include <algorithm>
#include <cmath>

#include "base/variants.h"
#include "fabric/net/peers.h"

namespace mercury::fabric {
namespace {

constexpr int kSamples = 8;              // of the clock, of which the best is taken
constexpr int64_t kShortestRunUs = 500;  // less says more of processors than of links

// Whether `peer` sent it while it still came to there itself.
bool PassedOn(const Letter& letter, int peer) {
  if (const auto* updates = std::get_if<UpdatesLetter>(&letter)) {
    return NodeOf(peer) < 0 || (updates->chained && updates->places.size() > 1);
  }
  const auto* model = std::get_if<ModelLetter>(&letter);
  return model != nullptr && model->by_packets && NodeOf(peer) >= 0;
}

}  // namespace

void NodeEndpoint::Play(Part* part, const Expected& expected) {
  part_ = part;
  expected_ = expected;
  for (const auto& [peer, dock] : docks_) dock->Expect(ExpectedOf(peer));
}

Expected NodeEndpoint::ExpectedOf(int peer) const {
  Expected its = expected_;
  if (its.servers > 1 && IsServerNode(NodeOf(peer))) {
    its.elements = Stripe{ServerOf(peer), its.servers, its.whole}.elements();
  }
  return its;
}

void NodeEndpoint::Open(int peer) {
  auto dock = std::make_unique<Dock>(packet_bytes_, spares_);
  dock->Expect(ExpectedOf(peer));
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

void NodeEndpoint::AskTime(int64_t now_us) { Post(kSchedulerPeer, TimeLetter{now_us}); }

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
  std::optional<Come> arrived;
  Status status = docks_.at(peer)->OnPacket(header, now_us, &arrived);
  if (!status.ok() || !arrived) return status;
  if (!arrived->haul) return Hear(peer, arrived->letter, now_us);
  now_us_ = std::max(now_us_, now_us);
  SayCarried(peer, *arrived->haul, PassedOn(arrived->letter, peer));
  return part_->Hear(peer, arrived->letter, *arrived->haul, SchedulerTime(now_us));
}

Status NodeEndpoint::Hear(int peer, const Letter& letter, int64_t now_us) {
  now_us_ = std::max(now_us_, now_us);
  const auto part = [&](const Haul& haul) {
    if (part_ == nullptr) return Status::Corrupt("a letter before the job has begun");
    return part_->Hear(peer, letter, haul, SchedulerTime(now_us));
  };
  const auto announced = [&](const auto& its) {
    if (its.number == 0) return part({});
    if (part_ == nullptr) return Status::Corrupt("a transfer before the job has begun");
    std::shared_ptr<const Inflow> inflow;
    const Landing landing = part_->Land(peer, letter);
    Status status = docks_.at(peer)->Announce(its.number, letter, its.two, landing, &inflow);
    if (status.ok()) part_->Coming(peer, letter, inflow);
    return status;
  };
  return Match(
      letter, [&](const TimeLetter& time) { return TakeTime(peer, time, now_us); },
      [&](const AbortedLetter& its) {
        docks_.at(peer)->Forget(its.number);
        return Status::Ok();
      },
      [&](const Order& order) {
        return order.kind == Order::kFail ? control_(peer, letter) : part({});
      },
      [&](const UpdatesLetter& its) { return announced(its); },
      [&](const ModelLetter& its) { return announced(its); },
      [&](const Carriage&) {
        // The model's first values go before the job begins; how fast, nobody needs to know.
        const bool early = part_ == nullptr && node_ == kSchedulerNode;
        return early ? Status::Ok() : part({});
      },
      [&](const auto& its) {
        using L = std::decay_t<decltype(its)>;
        static_assert(kForNode<L> || kForScheduler<L> || kForModel<L> || kForWorker<L>);
        return kForNode<L> ? control_(peer, letter) : part({});
      });
}

Status NodeEndpoint::TakeTime(int peer, const TimeLetter& time, int64_t now_us) {
  if (node_ == kSchedulerNode) {
    Post(peer, TimeLetter{time.asked_us, now_us});
  } else if (peer == kSchedulerPeer && time.answered_us != 0) {
    clock_.Sample(time.asked_us, time.answered_us, time.answered_us, now_us);
    if (timed_ && clock_.samples() % kSamples != 0) return Status::Ok();
    if (const std::optional<ClockEstimate> estimate = clock_.Take()) {
      timed_ = true;
      add_us_ = estimate->add_us;
    }
  }
  return Status::Ok();
}

void NodeEndpoint::SayCarried(int peer, const Haul& haul, bool passed_on) {
  const auto [bytes, first_us, last_us] = haul.longest;
  if (last_us - first_us < kShortestRunUs) return;
  Post(kSchedulerPeer, Carriage{NodeOf(peer), node_, 8.0 * static_cast<double>(bytes),
                                SchedulerTime(first_us), SchedulerTime(last_us), passed_on});
}

bool NodeEndpoint::Next(int peer, int64_t now_us, OutPacket* out) {
  now_us_ = now_us;
  const auto found = docks_.find(peer);
  if (found == docks_.end()) return false;
  if (found->second->Next(out)) return true;
  if (part_ == nullptr) return false;
  if (part_->Next(peer, SchedulerTime(now_us), out)) return true;
  return found->second->Next(out);  // it may have announced what comes next
}

int64_t NodeEndpoint::WakeAt(int peer) const {
  if (part_ == nullptr) return mercury::kNever;
  const double at_s = part_->WakeAt(peer, SchedulerTime(now_us_));
  if (!(at_s < 1e12)) return mercury::kNever;
  return static_cast<int64_t>(std::ceil(at_s * 1e6)) - add_us_;
}

}  // namespace mercury::fabric
