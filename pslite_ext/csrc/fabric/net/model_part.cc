#include "fabric/net/model_part.h"

#include <cmath>
#include <string>
#include <utility>

namespace mercury::fabric {
namespace {

constexpr size_t kModelsAtOnce = 4;  // on their way to one node

}  // namespace

ModelPart::ModelPart(const ModelOptions& options, Vector model, Outbox* outbox)
    : options_(options),
      outbox_(outbox),
      daemon_(options.role, options.delay_bound,
              options.replica && options.role == ModelDaemon::Role::kServer),
      model_(std::move(model)),
      step_(options.momentum > 0 ? model_.size() : 0, 0.0F) {}

Status ModelPart::Hear(int peer, const Letter& letter, const Haul& haul, double /*now_s*/) {
  ModelSteps steps;
  Status status;
  const Waybill& bill = letter.waybill;
  const bool from_server = peer == kServerPeer && options_.role == ModelDaemon::Role::kReplica;
  if (letter.kind == Letter::Kind::kOrder && peer == kSchedulerPeer) {
    status = daemon_.Obey(letter.order, &steps);
  } else if (letter.kind == Letter::Kind::kDelivered && peer > kSchedulerPeer) {
    const bool two = options_.momentum > 0 && bill.places.size() > 1;
    if (bill.places.empty() != (bill.number == 0) || two != (haul.cargo.step != nullptr)) {
      return Status::Corrupt("a group whose members are not those that it says");
    }
    memory_[++memories_] = haul.cargo;
    steps = daemon_.Arrive(bill.places, bill.skipped, memories_);
  } else if (letter.kind == Letter::Kind::kConfirm && from_server) {
    status = daemon_.Confirmed(letter.applied, &steps);
  } else if (letter.kind == Letter::Kind::kModel && from_server) {
    if (is_server()) return Status::Ok();  // said before this one took over
    if (haul.cargo.sum == nullptr || (options_.momentum > 0) != (haul.cargo.step != nullptr)) {
      return Status::Corrupt("a model that is not there, or whose last step is missing");
    }
    model_ = *haul.cargo.sum;
    if (options_.momentum > 0) step_ = *haul.cargo.step;
    steps = daemon_.TakeModel(bill.version, bill.place);
  } else if (letter.kind == Letter::Kind::kGet && peer > kSchedulerPeer && is_server()) {
    if (sending_[peer].size() >= kModelsAtOnce) {
      return Status::Corrupt("it asks for the model too often");
    }
    SendModel(peer, letter, false);
  } else {
    return Status::Corrupt("a letter that " + NodeText(is_server() ? kServerNode : kReplicaNode) +
                           " does not get from there");
  }
  Carry(steps);
  return status;
}

void ModelPart::Gone(int peer, double /*now_s*/) {
  sending_.erase(peer);
  if (peer == kReplicaPeer) daemon_.ReplicaLost();
}

void ModelPart::SendModel(int peer, const Letter& letter, bool with_step) {
  if (!outbox_->Linked(peer)) return;
  if (snapshot_version_ != version() || snapshot_ == nullptr) {
    snapshot_ = std::make_shared<const Vector>(model_);
    snapshot_version_ = version();
  }
  Sending sending;
  sending.said_after.kind = Letter::Kind::kModel;
  sending.said_after.waybill = letter.waybill;
  sending.said_after.waybill.number = ++transfers_;
  sending.said_after.waybill.version = version();
  sending.cargo.sum = snapshot_;
  if (with_step && options_.momentum > 0) {
    sending.cargo.step = std::make_shared<const Vector>(step_);
  }
  sending_[peer].push_back(std::move(sending));
}

bool ModelPart::Next(int peer, double /*now_s*/, OutPacket* out) {
  const auto found = sending_.find(peer);
  if (found == sending_.end() || found->second.empty()) return false;
  Sending& sending = found->second.front();
  *out = PartOf(sending.cargo, sending.said_after.waybill.number, sending.offset,
                options_.packet_bytes);
  sending.offset += out->header.length;
  if (sending.offset == sending.cargo.bytes()) {
    outbox_->Post(peer, sending.said_after);
    found->second.pop_front();
  }
  return true;
}

void ModelPart::Carry(const ModelSteps& steps) {
  for (const ModelStep& step : steps) {
    Letter letter;
    switch (step.kind) {
      case ModelStep::kApply:
        Apply(step);
        break;
      case ModelStep::kDiscard:
        memory_.erase(step.memory);
        break;
      case ModelStep::kTell:
        letter.kind = Letter::Kind::kNews;
        letter.news = step.news;
        if (letter.news.kind == News::kReplicaApplied || letter.news.kind == News::kCaughtUp) {
          letter.history_norm = StepNorm();
        }
        outbox_->Post(kSchedulerPeer, letter);
        break;
      case ModelStep::kConfirm:
        letter.kind = Letter::Kind::kConfirm;
        letter.applied = step.updates;
        outbox_->Post(kReplicaPeer, letter);
        break;
      case ModelStep::kSendModel:
        letter.waybill.place = step.place;
        SendModel(kReplicaPeer, letter, true);
        break;
    }
  }
}

void ModelPart::Apply(const ModelStep& step) {
  const auto group = memory_.find(step.memory);
  const auto updates = static_cast<int64_t>(step.updates.size());
  Append<float>(StrideOf(options_.momentum, updates),
                {model_.data(), options_.momentum > 0 ? step_.data() : nullptr},
                group->second.group(), model_.size());
  memory_.erase(group);
  int64_t version = step.version - updates;
  for (const Placed& update : step.updates) {
    ++delays_[++version - update.version];
    commits_.push_back({update, version});
  }
  while (commits_.size() > kCommitsKept) commits_.pop_front();
}

std::string ModelPart::Figures() const {
  std::string text = "\"version\": " + std::to_string(version()) +
                     ", \"is_server\": " + (is_server() ? "true" : "false") + ", \"delays\": {";
  const auto number = [&text](const std::string& name, int64_t value) {
    text += (text.back() == '{' ? "\"" : ", \"") + name + "\": " + std::to_string(value);
  };
  for (const auto& [delay, count] : delays_) number(std::to_string(delay), count);
  text += "}, \"commits\": [";
  for (const Committed& commit : commits_) {
    text += text.back() == '[' ? "{" : ", {";
    number("version", commit.version);
    number("worker", commit.update.id.worker);
    number("number", commit.update.id.number);
    number("computed_from", commit.update.version);
    text += "}";
  }
  return text + "]";
}

double ModelPart::StepNorm() const {
  double square = 0;
  for (const float value : step_) square += double{value} * double{value};
  return std::sqrt(square);
}

}  // namespace mercury::fabric
