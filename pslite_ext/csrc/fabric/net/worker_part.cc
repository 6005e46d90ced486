#include "fabric/net/worker_part.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace mercury::fabric {

// What has begun ends where it began, even if that is the server no more.
int WorkerPart::PeerFor(int64_t number, const Hop& hop) const {
  const auto sending = sending_.find(number);
  if (sending != sending_.end()) return sending->second.peer;
  return hop.to == kServerNode ? server_peer_ : PeerOf(hop.to);
}

void WorkerPart::Push(const Request& request, std::shared_ptr<const Vector> update) {
  Letter letter;
  letter.request = request;
  letter.request.id.worker = rank_;
  letter.request.of_replica = of_replica_;
  letter.request.bytes = static_cast<int64_t>(update->size() * sizeof(float));
  updates_[letter.request.id] = std::move(update);
  daemon_.Keep(letter.request.id, letter.request.bytes);
  outbox_->Post(kSchedulerPeer, letter);
}

void WorkerPart::Get(Wish wish) {
  wish.number = ++wishes_;  // what comes for an older one, perhaps from another server, is not it
  wish_ = wish;
  Letter letter;
  letter.kind = Letter::Kind::kGet;
  letter.wish = wish;
  outbox_->Post(server_peer_, letter);
}

// A model or a sum: for others, too, who wait for it.
void WorkerPart::Take(const Waybill& bill, const Cargo& cargo) {
  for (const Onward& next : bill.onward) {
    Waybill theirs;
    theirs.version = bill.version;
    theirs.wish = next.wish;
    sender_.Send(PeerOf(next.worker), theirs, cargo);
  }
  if (!wish_ || wish_->number != bill.wish) return;
  const Wish wish = *wish_;
  wish_.reset();
  if (wish.reduce == 0) {
    of_replica_ = server_peer_ == kReplicaPeer;
  } else {
    Letter letter;
    letter.kind = Letter::Kind::kGot;
    letter.wish = wish;
    outbox_->Post(kSchedulerPeer, letter);
  }
  events_.got(bill.version, cargo.sum);
}

void WorkerPart::Give(int peer, const std::shared_ptr<const Vector>& model) {
  sender_.Send(peer, {}, {model, nullptr});
}

Status WorkerPart::Hear(int peer, const Letter& letter, const Haul& haul, double now_s) {
  const bool scheduler = peer == kSchedulerPeer;
  if (letter.kind == Letter::Kind::kOrder && scheduler) {
    const Hop& hop = letter.order.hop;
    const bool sends = letter.order.kind == Order::kSend;
    if (sends ? hop.gathered || hop.places.size() != 1
              : letter.order.kind == Order::kGather && !hop.gathered) {
      return Status::Corrupt("an order that is neither for an update nor for a group");
    }
    if (hop.two_sums && momentum_ == 0) {
      return Status::Corrupt("an order for two sums, where there is no momentum");
    }
    if (sends && hop.goal == Goal::kServer) {
      Letter heard;
      heard.kind = Letter::Kind::kHeard;
      heard.hearing = {hop.update, now_s};
      outbox_->Post(kSchedulerPeer, heard);
    }
    Obey(letter.order, now_s);
  } else if (letter.kind == Letter::Kind::kServerIs && scheduler) {
    if (letter.node != kReplicaNode) return Status::Corrupt("a server that cannot be one");
    server_peer_ = PeerOf(letter.node);
    if (wish_) Get(*wish_);
  } else if (letter.kind == Letter::Kind::kModel && !scheduler) {
    if (haul.cargo.sum == nullptr) return Status::Corrupt("a model of which nothing came");
    Take(letter.waybill, haul.cargo);
  } else if (letter.kind == Letter::Kind::kDelivered && peer > kSchedulerPeer) {
    if (letter.waybill.places.size() != 1 || haul.cargo.sum == nullptr ||
        haul.cargo.step != nullptr) {
      return Status::Corrupt("an aggregator is sent what is not one update");
    }
    Deliver(letter.waybill.places[0], letter.waybill.goal, haul.cargo, now_s);
  } else {
    return Status::Corrupt("a letter that a worker does not get from there");
  }
  return Status::Ok();
}

void WorkerPart::Obey(const Order& order, double now_s) {
  if (order.kind == Order::kReport) events_.settled(order.update, order.fate);
  Carry(daemon_.Obey(order, now_s));
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
    Letter letter;
    if (step.kind == Step::kAbort) {
      const auto sending = sending_.find(step.hop);
      if (sending == sending_.end()) continue;
      letter.kind = Letter::Kind::kAborted;
      letter.waybill.number = step.hop;
      outbox_->Post(sending->second.peer, letter);
      sending_.erase(sending);
    } else if (step.kind == Step::kEmpty) {
      letter.kind = Letter::Kind::kDelivered;
      letter.waybill.goal = step.goal;
      letter.waybill.skipped = step.skipped;
      outbox_->Post(step.goal == Goal::kServer ? server_peer_ : kReplicaPeer, letter);
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
  if (!hop.gathered) return {updates_.at(hop.update), nullptr};
  const Gathered& group = groups_.at(number);
  return {group.sum, group.updates > 1 ? group.step : nullptr};
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
  Letter letter;
  letter.kind = Letter::Kind::kDelivered;
  letter.waybill.number = number;
  letter.waybill.goal = parcel.hop.goal;
  letter.waybill.to_aggregator = parcel.hop.to_aggregator;
  letter.waybill.places = parcel.places;
  letter.waybill.skipped = parcel.skipped;
  outbox_->Post(peer, letter);
}

double WorkerPart::WakeAt(int peer, double now_s) const {
  if (sender_.IsNext(peer)) return now_s;
  return daemon_.WakeAt(now_s, [&](int64_t number, const Hop& hop) {
    const int to = PeerFor(number, hop);
    return to == peer || to == self_ || Vanishes(to);
  });
}

}  // namespace mercury::fabric
