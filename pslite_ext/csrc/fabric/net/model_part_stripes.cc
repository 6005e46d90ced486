// What several servers do together, each with its stripe of the model.
#include <algorithm>
#include <utility>

#include "fabric/net/model_part.h"

namespace mercury::fabric {

// It is at all servers.
void ModelPart::ArriveWhole(const std::optional<Arrival>& arrival, ModelSteps* steps) {
  if (arrival) *steps = daemon_.Arrive(arrival->places, arrival->skipped, arrival->memory);
}

void ModelPart::TellFollowers(const Letter& letter) {
  if (!options_.leads()) return;
  for (int server = 1; server < static_cast<int>(options_.servers); ++server) {
    outbox_->Post(PeerOf(ServerNode(server)), letter);
  }
}

// The one that leads gives the same version.
Status ModelPart::SendStripe(const StripeLetter& its) {
  const std::shared_ptr<const Vector> vector = its.reduce ? reduced_ : Shown();
  if (its.letter.version != version() || vector == nullptr) {
    return Status::Corrupt("a version of the model that this server does not have");
  }
  const bool both = IsReplicaNode(its.to);
  Cargo cargo{both ? model_ : vector, both ? step_ : nullptr, nullptr, options_.stripe()};
  sender_.Send(PeerOf(its.to), its.letter, std::move(cargo));
  return Status::Ok();
}

// What the replica took over is not for it to change any more.
void ModelPart::Depose() {
  deposed_ = true;
  memory_.clear();
  sender_.Abandon();
  assembly_.Clear();
}

// A replica's whole model, or in the end that of the first of several servers.
bool ModelPart::Assembles(int peer, const Letter& letter) const {
  const bool replica = options_.role == Role::kReplica && !options_.follows() && !is_server();
  return options_.servers > 1 && (replica || options_.leads()) && IsServerNode(NodeOf(peer)) &&
         std::holds_alternative<ModelLetter>(letter);
}

Landing ModelPart::Land(int peer, const Letter& letter) {
  if (!Assembles(peer, letter)) return {};
  return assembly_.Into(ServerOf(peer), std::get<ModelLetter>(letter));
}

void ModelPart::Coming(int peer, const Letter& letter,
                       const std::shared_ptr<const Inflow>& inflow) {
  Relay(peer, letter, inflow);
  if (!Assembles(peer, letter)) return;
  assembly_.Comes(ServerOf(peer), std::get<ModelLetter>(letter), inflow);
}

void ModelPart::Collect() {
  ModelLetter letter;
  letter.version = version();
  TellFollowers(StripeLetter{kServerNode, letter});
  const std::shared_ptr<const Vector> own = Shown();
  const Landing landing = assembly_.Into(0, letter);
  landing.stripe.EachRun([&](size_t at, size_t in, size_t count) {
    std::copy_n(own->data() + at, count, landing.sum->data() + in);
  });
  auto whole = std::make_shared<Inflow>();
  whole->elements = own->size();
  whole->bytes = whole->shape().bytes();
  assembly_.Comes(0, letter, std::move(whole));
}

Status ModelPart::TakeStripe(const ModelLetter& its, ModelSteps* steps) {
  const Cargo whole = assembly_.Take(its);
  if (whole.sum == nullptr) return Status::Ok();
  if (!options_.leads()) return TakeModel(kServerPeer, its, whole, steps);
  collected_ = whole.sum;
  return Status::Ok();
}

}  // namespace mercury::fabric
