#include "fabric/net/worker_part.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/variants.h"
#include "fabric/chains.h"

namespace mercury::fabric {
namespace {

// What goes with a model that is passed on.
ModelLetter Theirs(const ModelLetter& ours, const Onward& next) {
  ModelLetter theirs = ours;
  theirs.wish = next.wish;
  return theirs;
}

}  // namespace

// What has begun ends where it began, even if that is the server no more.
Legs WorkerPart::LegsOf(int64_t number, const Hop& hop) const {
  const auto sending = sending_.find(number);
  if (sending != sending_.end()) return sending->second;
  if (hop.to != kServerNode) return {{PeerOf(hop.to), {}}};
  Legs legs;
  for (size_t i = 0; i < servers_.size(); ++i) {
    legs.push_back({servers_[i], {i, servers_.size(), elements_}});
  }
  return legs;
}

std::optional<size_t> WorkerPart::StripedServer(int peer) const {
  const auto found = std::find(servers_.begin(), servers_.end(), peer);
  if (servers_.size() == 1 || found == servers_.end()) return std::nullopt;
  return static_cast<size_t>(found - servers_.begin());
}

bool WorkerPart::WasServer(int peer) const {
  return NodeOf(peer) < 0 && servers_.size() == 1 && peer != servers_[0];
}

bool WorkerPart::Vanishes(const Legs& legs) const {
  return std::any_of(legs.begin(), legs.end(), [this](const Leg& leg) {
    return leg.peer != self_ && !outbox_->Linked(leg.peer);
  });
}

void WorkerPart::Push(Request request, std::shared_ptr<const Vector> update) {
  request.id.worker = rank_;
  request.bytes = static_cast<int64_t>(TransferBytes(codec_, update->size()));
  updates_[request.id] = std::move(update);
  daemon_.Keep(request.id, request.bytes);
  outbox_->Post(kSchedulerPeer, request);
}

void WorkerPart::Get(Wish wish) {
  wish.number = ++wishes_;  // what comes for an older one, perhaps from another server, is not it
  wish_ = wish;
  if (answer_ && answer_->reduce == wish.reduce) return;  // others do not have it yet
  answer_.reset();
  outbox_->Post(servers_[0], GetLetter{wish});
}

void WorkerPart::Give(int peer, const std::shared_ptr<const Vector>& model) {
  Cargo cargo{model, nullptr};
  if (const auto server = StripedServer(peer)) {
    cargo.stripe = {*server, servers_.size(), elements_};
  }
  sender_.Send(peer, {}, std::move(cargo));
}

Status WorkerPart::Hear(int peer, const Letter& letter, const Haul& haul, double now_s) {
  const bool scheduler = peer == kSchedulerPeer;
  const auto refuse = [] {
    return Status::Corrupt("a letter that a worker does not get from there");
  };
  return Match(
      letter, [&](const Order& order) { return scheduler ? Obey(order, now_s) : refuse(); },
      [&](const ServerIsLetter& its) { return scheduler ? Follow(its.node) : refuse(); },
      [&](const ModelLetter& its) { return scheduler ? refuse() : Take(peer, its, haul.cargo); },
      [&](const UpdatesLetter& its) {
        return NodeOf(peer) >= 0 ? Take(its, haul.cargo, now_s) : refuse();
      },
      [&](const auto& its) {
        static_assert(!kForWorker<std::decay_t<decltype(its)>>);
        return refuse();
      });
}

Status WorkerPart::Obey(const Order& order, double now_s) {
  const Hop& hop = order.hop;
  const bool sends = order.kind == Order::kSend;
  const bool passes_on = order.kind == Order::kPassOn;
  if ((sends && (hop.gathered || hop.places.size() != 1)) ||
      (passes_on && (hop.gathered || !hop.chained || hop.places.size() < 2)) ||
      (order.kind == Order::kGather && !hop.gathered)) {
    return Status::Corrupt("an order that is neither for an update nor for a group");
  }
  if (hop.two_sums && momentum_ == 0) {
    return Status::Corrupt("an order for two sums, where there is no momentum");
  }
  if ((sends || passes_on) && hop.goal == Goal::kServer) {
    outbox_->Post(kSchedulerPeer, Hearing{hop.update, now_s});
  }
  if (order.kind == Order::kReport) events_.settled(order.update, order.fate);
  const bool forgets = order.kind == Order::kForget;
  if (forgets && answer_ && answer_->reduce == order.update.number) Grant();
  Carry(daemon_.Obey(order, now_s));
  if (sends || passes_on) passing_.Drop(hop.goal, hop.places.back());
  return Status::Ok();
}

Status WorkerPart::Follow(int server) {
  if (!IsReplicaNode(server)) return Status::Corrupt("a server that cannot be one");
  servers_ = {PeerOf(server)};
  ++reign_;
  assembly_.Clear();
  answer_.reset();
  if (wish_) Get(*wish_);
  return Status::Ok();
}

// A model or a sum; if it was not passed on as it came, it is now. Of several servers' stripes,
// once all are there.
Status WorkerPart::Take(int peer, const ModelLetter& its, const Cargo& came) {
  if (came.sum == nullptr) return Status::Corrupt("a model of which nothing came");
  if (WasServer(peer)) return Status::Ok();
  const Cargo cargo = StripedServer(peer) ? assembly_.Take(its) : came;
  if (cargo.sum == nullptr) return Status::Ok();
  for (const Onward& next : its.onward) {
    if (next.by != rank_ || its.by_packets) continue;
    sender_.Send(PeerOf(next.worker), Theirs(its, next), cargo);
  }
  if (!wish_ || wish_->number != its.wish) return Status::Ok();
  answer_ = HeldAnswer{wish_->reduce, its.version, cargo.sum};
  if (wish_->reduce != 0) {
    outbox_->Post(kSchedulerPeer, GotLetter{reign_, *wish_});
    if (reign_ < replicas_) return Status::Ok();
  }
  Grant();
  return Status::Ok();
}

void WorkerPart::Grant() {
  const auto answer = std::exchange(answer_, std::nullopt);
  wish_.reset();
  if (answer) events_.got({answer->version, reign_}, answer->what);
}

bool WorkerPart::IsThere(int64_t number, const Hop& hop) const {
  if (passing_.Knows(number)) return true;
  return hop.gathered ? groups_.count(number) != 0 : updates_.count(hop.update) != 0;
}

// As the courier wants it: what more of the hop can go to `peer`.
std::optional<int64_t> WorkerPart::NextOf(int64_t number, const Hop& hop, int peer) const {
  constexpr int64_t kAnyMore = 0;
  const Legs legs = LegsOf(number, hop);
  if (legs[0].peer == self_) {
    const bool waits = passing_.Knows(number) && !passing_.whole(number);
    return waits ? std::nullopt : std::optional(kAnyMore);
  }
  if (Vanishes(legs)) return kAnyMore;
  const auto leg =
      std::find_if(legs.begin(), legs.end(), [peer](const Leg& its) { return its.peer == peer; });
  if (leg == legs.end() || !IsThere(number, hop)) return std::nullopt;
  const CargoShape whole = CargoOf(number, hop).shape();
  if (leg->over(whole)) return std::nullopt;
  return static_cast<int64_t>(leg->Next(whole));
}

Landing WorkerPart::Land(int peer, const Letter& letter) {
  const auto* model = std::get_if<ModelLetter>(&letter);
  const auto server = StripedServer(peer);
  return model != nullptr && server ? assembly_.Into(*server, *model) : Landing();
}

// Others, too, may wait for the model; what comes along a chain goes on.
void WorkerPart::Coming(int peer, const Letter& letter,
                        const std::shared_ptr<const Inflow>& inflow) {
  if (const auto* updates = std::get_if<UpdatesLetter>(&letter)) {
    if (updates->chained) passing_.Comes(updates->goal, updates->places, inflow);
  } else if (const auto* model = std::get_if<ModelLetter>(&letter)) {
    if (WasServer(peer)) return;  // its stripe would be taken for a model
    const auto server = StripedServer(peer);
    const auto whole = server ? assembly_.Comes(*server, *model, inflow) : inflow;
    if (!model->by_packets || whole == nullptr) return;
    for (const Onward& next : model->onward) {
      if (next.by == rank_) sender_.PassOn(PeerOf(next.worker), Theirs(*model, next), whole);
    }
  }
}

Status WorkerPart::Take(const UpdatesLetter& its, const Cargo& cargo, double now_s) {
  if (its.chained) return Status::Ok();  // it was passed on as it came
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
    if (step.kind == Step::kPassOn) {
      passing_.Told(step.hop, *daemon_.Find(step.hop), updates_.at(step.update), codec_);
    } else if (step.kind == Step::kAbort) {
      Abort(step.hop);
    } else if (step.kind == Step::kEmpty) {
      outbox_->Post(step.to == kServerNode ? servers_[0] : PeerOf(step.to),
                    UpdatesLetter{0, false, step.goal, false, false, {}, step.skipped});
    }
  }
}

void WorkerPart::Abort(int64_t hop) {
  passing_.End(hop);
  Break(hop);
}

// Whoever gets some of it will not get the rest.
void WorkerPart::Break(int64_t number) {
  const auto sending = sending_.find(number);
  if (sending == sending_.end()) return;
  for (const Leg& leg : sending->second) {
    if (leg.announced) outbox_->Post(leg.peer, AbortedLetter{number});
  }
  sending_.erase(sending);
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
  if (passing_.Knows(number)) return passing_.CargoOf(number);
  if (!hop.gathered) return {updates_.at(hop.update), nullptr, codec_};
  const Gathered& group = groups_.at(number);
  return {group.sum, group.updates > 1 ? group.step : nullptr, codec_};
}

// What comes along chains is added to what goes on.
void WorkerPart::Advance() {
  passing_.DropBroken();
  for (const int64_t number : passing_.Broken()) {
    Carry(daemon_.Break(number));
    passing_.End(number);
  }
  for (const int64_t number : passing_.numbers()) {
    daemon_.Reach(number, static_cast<int64_t>(passing_.Advance(number)));
  }
}

// What needs no link is done here.
void WorkerPart::Turn(double now_s) {
  for (bool more = true; std::exchange(more, false);) {
    Advance();
    for (const Allowance& allowance : daemon_.Due(now_s)) {
      const int64_t number = allowance.number;
      const Legs legs = LegsOf(number, *daemon_.Find(number));
      const bool keeps = legs[0].peer == self_;
      if (!keeps && !Vanishes(legs)) continue;
      if (keeps && passing_.Knows(number) && !passing_.whole(number)) continue;
      const Parcel parcel = daemon_.What(number);
      const Cargo cargo = CargoOf(number, parcel.hop);
      daemon_.Sent(number, std::numeric_limits<int64_t>::max() / 2);
      Break(number);
      Over(number);
      if (keeps) Keep(parcel, cargo, now_s);
      more = true;  // the list is of before
      break;
    }
  }
}

// For this worker itself.
void WorkerPart::Keep(const Parcel& parcel, const Cargo& cargo, double now_s) {
  if (!parcel.hop.chained) return Deliver(parcel.places[0], parcel.hop.goal, cargo, now_s);
  auto inflow = std::make_shared<Inflow>();  // it is added to: a copy
  const auto copied = [this](const Vector& from) {
    std::shared_ptr<Vector> copy = spares_.Get(from.size());
    std::copy(from.begin(), from.end(), copy->begin());
    return copy;
  };
  inflow->elements = cargo.sum->size();
  inflow->sum = copied(*cargo.sum);
  if (cargo.step != nullptr) {
    inflow->vectors = 2;
    inflow->step = copied(*cargo.step);
  }
  inflow->bytes = inflow->shape().bytes();
  passing_.Comes(parcel.hop.goal, parcel.places, std::move(inflow));
}

void WorkerPart::Announce(int64_t number, int peer, bool two) {
  const Parcel parcel = daemon_.What(number);
  UpdatesLetter letter;
  letter.number = number;
  letter.two = two;
  letter.goal = parcel.hop.goal;
  letter.to_aggregator = parcel.hop.to_aggregator;
  letter.chained = parcel.hop.chained;
  letter.places = parcel.places;
  letter.skipped = parcel.skipped;
  outbox_->Post(peer, letter);
}

bool WorkerPart::Next(int peer, double now_s, OutPacket* out) {
  if (sender_.Next(peer, now_s, out)) return true;
  Advance();
  for (const Allowance& allowance : daemon_.Due(now_s)) {
    const int64_t number = allowance.number;
    const Hop* hop = daemon_.Find(number);
    Legs legs = LegsOf(number, *hop);
    const auto leg =
        std::find_if(legs.begin(), legs.end(), [peer](const Leg& its) { return its.peer == peer; });
    if (leg == legs.end() || peer == self_) continue;
    const Cargo whole = CargoOf(number, *hop);
    const size_t room = leg->Room(whole.shape(), static_cast<size_t>(allowance.through));
    if (leg->offset >= room) continue;
    const size_t which = static_cast<size_t>(leg - legs.begin());
    Leg& sending = sending_.emplace(number, std::move(legs)).first->second[which];
    if (!std::exchange(sending.announced, true)) {
      Announce(number, peer, whole.step != nullptr);
      return false;
    }
    size_t most = std::min(packet_bytes_, room - sending.offset);
    if (hop->chained) {
      most = std::min(most, static_cast<size_t>(PassedOnPacket_bytes(hop->bytes)));
    }
    *out = PartOf(sending.Of(whole), number, sending.offset, most);
    sending.offset += out->header.length;
    if (daemon_.Sent(number, out->header.length)) Over(number);
    return true;
  }
  return false;
}

void WorkerPart::Over(int64_t number) {
  groups_.erase(number);
  sending_.erase(number);
  passing_.End(number);
}

double WorkerPart::WakeAt(int peer, double now_s) const {
  if (sender_.IsNext(peer)) return now_s;
  return daemon_.WakeAt(now_s,
                        [&](int64_t number, const Hop& hop) { return NextOf(number, hop, peer); });
}

}  // namespace mercury::fabric
