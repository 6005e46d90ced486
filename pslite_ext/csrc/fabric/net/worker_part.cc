#include "fabric/net/worker_part.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/variants.h"

namespace mercury::fabric {

// What has begun ends where it began, even if that is the server no more.
int WorkerPart::PeerFor(int64_t number, const Hop& hop) const {
  const auto sending = sending_.find(number);
  if (sending != sending_.end()) return sending->second.peer;
  return hop.to == kServerNode ? server_peer_ : PeerOf(hop.to);
}

void WorkerPart::Push(Request request, std::shared_ptr<const Vector> update) {
  request.id.worker = rank_;
  request.of_replica = of_replica_;
  request.bytes = static_cast<int64_t>(TransferBytes(codec_, update->size()));
  updates_[request.id] = std::move(update);
  daemon_.Keep(request.id, request.bytes);
  outbox_->Post(kSchedulerPeer, request);
}

void WorkerPart::Get(Wish wish) {
  wish.number = ++wishes_;  // what comes for an older one, perhaps from another server, is not it
  wish_ = wish;
  outbox_->Post(server_peer_, GetLetter{wish});
}

void WorkerPart::Give(int peer, const std::shared_ptr<const Vector>& model) {
  sender_.Send(peer, {}, {model, nullptr});
}

Status WorkerPart::Hear(int peer, const Letter& letter, const Haul& haul, double now_s) {
  const bool scheduler = peer == kSchedulerPeer;
  const auto refuse = [] {
    return Status::Corrupt("a letter that a worker does not get from there");
  };
  return Match(
      letter, [&](const Order& order) { return scheduler ? Obey(order, now_s) : refuse(); },
      [&](const ServerIsLetter& its) { return scheduler ? Follow(its.node) : refuse(); },
      [&](const ModelLetter& its) { return scheduler ? refuse() : Take(its, haul.cargo); },
      [&](const DeliveredLetter& its) {
        return peer > kSchedulerPeer ? Take(its, haul.cargo, now_s) : refuse();
      },
      [&](const auto& its) {
        static_assert(!kForWorker<std::decay_t<decltype(its)>>);
        return refuse();
      });
}

Status WorkerPart::Obey(const Order& order, double now_s) {
  const Hop& hop = order.hop;
  const bool sends = order.kind == Order::kSend;
  if (sends ? hop.gathered || hop.places.size() != 1
            : order.kind == Order::kGather && !hop.gathered) {
    return Status::Corrupt("an order that is neither for an update nor for a group");
  }
  if (hop.two_sums && momentum_ == 0) {
    return Status::Corrupt("an order for two sums, where there is no momentum");
  }
  if (sends && hop.goal == Goal::kServer) {
    outbox_->Post(kSchedulerPeer, Hearing{hop.update, now_s});
  }
  if (order.kind == Order::kReport) events_.settled(order.update, order.fate);
  Carry(daemon_.Obey(order, now_s));
  return Status::Ok();
}

Status WorkerPart::Follow(int server) {
  if (server != kReplicaNode) return Status::Corrupt("a server that cannot be one");
  server_peer_ = PeerOf(server);
  if (wish_) Get(*wish_);
  return Status::Ok();
}

// A model or a sum: for others, too, who wait for it.
Status WorkerPart::Take(const ModelLetter& its, const Cargo& cargo) {
  if (cargo.sum == nullptr) return Status::Corrupt("a model of which nothing came");
  for (const Onward& next : its.onward) {
    ModelLetter theirs;
    theirs.version = its.version;
    theirs.wish = next.wish;
    sender_.Send(PeerOf(next.worker), std::move(theirs), cargo);
  }
  if (!wish_ || wish_->number != its.wish) return Status::Ok();
  const Wish wish = *wish_;
  wish_.reset();
  if (wish.reduce == 0) {
    of_replica_ = server_peer_ == kReplicaPeer;
  } else {
    outbox_->Post(kSchedulerPeer, GotLetter{wish});
  }
  events_.got(its.version, cargo.sum);
  return Status::Ok();
}

Status WorkerPart::Take(const DeliveredLetter& its, const Cargo& cargo, double now_s) {
  if (its.places.size() != 1 || cargo.sum == nullptr || cargo.step != nullptr) {
    return Status::Corrupt("an aggregator is sent what is not one update");
  }
  Deliver(its.places[0], its.goal, cargo, now_s);
  return Status::Ok();
}

void WorkerPart::Deliver(int64_t place, Goal goal, const Cargo& cargo, double now_s) {
  memory_[++memories_] = cargo;
  const auto bytes = static_cast<int64_t>(cargo.bytes());
  Carry(daemon_.Arrive(goal, place, bytes, memories_, now_s));
}

void WorkerPart::Carry(const Steps& steps) {
  for (const Step& step : steps) {
    if (step.kind == Step::kAdd) Add(step.hop, memory_.at(step.memory));
    if (step.kind == Step::kAdd || step.kind == Step::kDiscard) memory_.erase(step.memory);
    if (step.kind == Step::kDiscardGroup) groups_.erase(step.hop);
    if (step.kind == Step::kForget) updates_.erase(step.update);
    if (step.kind == Step::kAbort) {
      const auto sending = sending_.find(step.hop);
      if (sending == sending_.end()) continue;
      outbox_->Post(sending->second.peer, AbortedLetter{step.hop});
      sending_.erase(sending);
    } else if (step.kind == Step::kEmpty) {
      outbox_->Post(step.goal == Goal::kServer ? server_peer_ : kReplicaPeer,
                    DeliveredLetter{0, step.goal, false, {}, step.skipped});
    }
  }
}

void WorkerPart::Add(int64_t hop, const Cargo& member) {
  Gathered& group = groups_[hop];
  const Hop* its = daemon_.Find(hop);
  const bool weighs = its != nullptr && its->two_sums;
  if (group.updates++ == 0) {
    group.sum = std::const_pointer_cast<Vector>(member.sum);
    if (weighs) group.step = group.sum;
    return;
  }
  const MomentumStride stride = weighs ? StrideOf(momentum_, 1) : MomentumStride();
  AppendShared(spares_, stride, &group.sum, weighs ? &group.step : nullptr, member.group());
}

Cargo WorkerPart::CargoOf(int64_t number, const Hop& hop) const {
  if (!hop.gathered) return {updates_.at(hop.update), nullptr, codec_};
  const Gathered& group = groups_.at(number);
  return {group.sum, group.updates > 1 ? group.step : nullptr, codec_};
}

// What needs no link is done here.
void WorkerPart::Turn(double now_s) {
  for (bool more = true; std::exchange(more, false);) {
    for (const Allowance& allowance : daemon_.Due(now_s)) {
      const Hop* hop = daemon_.Find(allowance.number);
      const int peer = PeerFor(allowance.number, *hop);
      if (peer != self_ && !Vanishes(peer)) continue;
      const Cargo cargo = CargoOf(allowance.number, *hop);
      const auto parcel = daemon_.Sent(allowance.number, std::numeric_limits<int64_t>::max() / 2);
      if (parcel) Over(allowance.number, peer, *parcel, cargo, now_s);
      more = true;  // the list is of before
      break;
    }
  }
}

bool WorkerPart::Next(int peer, double now_s, OutPacket* out) {
  if (sender_.Next(peer, out)) return true;
  for (const Allowance& allowance : daemon_.Due(now_s)) {
    const Hop* hop = daemon_.Find(allowance.number);
    if (PeerFor(allowance.number, *hop) != peer || peer == self_) continue;
    HopProgress& sending = sending_[allowance.number];
    sending.peer = peer;
    const Cargo cargo = CargoOf(allowance.number, *hop);
    const auto most = std::min(static_cast<size_t>(allowance.bytes), packet_bytes_);
    *out = PartOf(cargo, allowance.number, sending.offset, most);
    sending.offset += out->header.length;
    const auto parcel = daemon_.Sent(allowance.number, out->header.length);
    if (parcel) Over(allowance.number, peer, *parcel, cargo, now_s);
    return true;
  }
  return false;
}

void WorkerPart::Over(int64_t number, int peer, const Parcel& parcel, const Cargo& cargo,
                      double now_s) {
  groups_.erase(number);
  sending_.erase(number);
  if (peer == self_) return Deliver(parcel.places[0], parcel.hop.goal, cargo, now_s);
  outbox_->Post(peer, DeliveredLetter{number, parcel.hop.goal, parcel.hop.to_aggregator,
                                      parcel.places, parcel.skipped});
}

double WorkerPart::WakeAt(int peer, double now_s) const {
  if (sender_.IsNext(peer)) return now_s;
  return daemon_.WakeAt(now_s, [&](int64_t number, const Hop& hop) {
    const int to = PeerFor(number, hop);
    return to == peer || to == self_ || Vanishes(to);
  });
}

}  // namespace mercury::fabric
