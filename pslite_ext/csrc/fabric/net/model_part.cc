#include "fabric/net/model_part.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/variants.h"
#include "fabric/live/model_tree.h"

namespace mercury::fabric {
namespace {

constexpr size_t kAskedMost = 4;  // models on their way to one node
// Of the time that the last model took, and at most so long, others are waited for.
constexpr double kGathering = 0.05;
constexpr double kGatheringMost_s = 0.01;
constexpr size_t kTreeMost = 64;  // of one tree: planning takes the square of it
// Who should get what leaves the server may have stopped: the others wait for no more than that.
constexpr double kPatience = 2;
constexpr double kPatienceLeast_s = 0.1;
// After its update was applied, a worker has heard of it by then, and asked; or it is not waited
// for until it does.
constexpr double kAsksWithin_s = 0.03;

// Of a whole model, the part that one has.
Vector PartOfModel(Vector model, const Stripe& stripe) {
  if (stripe.count == 1 || model.empty()) return model;
  Vector part(stripe.elements());
  stripe.EachRun([&](size_t at, size_t in, size_t count) {
    std::copy_n(model.data() + in, count, part.data() + at);
  });
  return part;
}

// What has come, as one's own: whoever appends to it looks first whether others hold it.
std::shared_ptr<Vector> Taken(const std::shared_ptr<const Vector>& vector) {
  return std::const_pointer_cast<Vector>(vector);
}

}  // namespace

ModelPart::ModelPart(const ModelOptions& options, Vector model, Outbox* outbox, SpareVectors spares)
    : options_(options),
      outbox_(outbox),
      daemon_(options.role, options.delay_bound,
              options.leads() || (options.replica && options.role == Role::kServer)),
      has_model_(!model.empty()),
      spares_(std::move(spares)),
      model_(std::make_shared<Vector>(PartOfModel(std::move(model), options.stripe()))),
      progress_(static_cast<size_t>(options.workers)),
      arrivals_(options.servers),
      assembly_(options.elements, options.servers, spares_),
      sender_(options.packet_bytes, outbox) {
  model_->resize(options.stripe().elements());
  if (has_step()) step_ = std::make_shared<Vector>(model_->size());
}

Status ModelPart::Hear(int peer, const Letter& letter, const Haul& haul, double now_s) {
  now_s_ = now_s;
  ModelSteps steps;
  if (stopped()) return Status::Ok();
  const bool scheduler = peer == kSchedulerPeer, worker = NodeOf(peer) >= 0;
  const bool follower = options_.leads() && peer != kServerPeer && IsServerNode(NodeOf(peer));
  const bool from_server = peer == server_peer_ && options_.role == Role::kReplica;
  const auto refuse = [this] {
    return Status::Corrupt("a letter that " + NodeText(is_server() ? kServerNode : kReplicaNode) +
                           " does not get from there");
  };
  const Status status = Match(
      letter,
      [&](const Order& order) {
        if (!scheduler) return refuse();
        if (order.kind == Order::kTakeOver) assembly_.Clear();
        if (order.kind == Order::kVoid) RelayNoMore(order.places);
        return daemon_.Obey(order, &steps);
      },
      [&](const UpdatesLetter& its) {
        const bool relayed = is_server() && IsReplicaNode(NodeOf(peer)) && !its.places.empty();
        return worker || relayed ? TakeGroup(its, haul.cargo, &steps) : refuse();
      },
      [&](const News& its) {
        if (!follower || its.kind != News::kReplicaHas || its.places.empty()) return refuse();
        ArriveWhole(arrivals_.At(its.places, ServerOf(peer)), &steps);
        return Status::Ok();
      },
      [&](const ConfirmLetter& its) {
        return from_server ? daemon_.Confirmed(its.applied, &steps) : refuse();
      },
      [&](const StripeLetter& its) {
        return from_server && options_.follows() ? SendStripe(its) : refuse();
      },
      [&](const ServerIsLetter&) {
        if (!scheduler) return refuse();
        Depose();
        return Status::Ok();
      },
      [&](const ModelLetter& its) {
        return Assembles(peer, letter) ? TakeStripe(its, &steps)
                                       : TakeModel(peer, its, haul.cargo, &steps);
      },
      [&](const GetLetter& its) {
        if (!worker || !is_server()) return refuse();
        if (sender_.waiting(peer) >= kAskedMost) {
          return Status::Corrupt("it asks for the model too often");
        }
        askers_.Ask({NodeOf(peer), its.wish});
        asks_by_s_.erase(NodeOf(peer));
        return Status::Ok();
      },
      [&](const Tree& tree) {
        if (!scheduler) return refuse();
        tree_asked_ = false;
        by_packets_ = tree.by_packets;
        Serve(tree, now_s);
        return Status::Ok();
      },
      [&](const auto& its) {
        static_assert(!kForModel<std::decay_t<decltype(its)>>);
        return refuse();
      });
  Carry(steps);
  const auto possible = [this](int64_t place) { return daemon_.Possible(place); };
  for (const Arrival& arrival : arrivals_.Drop(possible)) memory_.erase(arrival.memory);
  Answer(now_s);
  return status;
}

Status ModelPart::TakeGroup(const UpdatesLetter& its, const Cargo& cargo, ModelSteps* steps) {
  const bool two = cargo.step != nullptr;
  if (its.places.empty() != (its.number == 0) || (two && (!has_step() || its.places.size() < 2))) {
    return Status::Corrupt("a group whose members are not those that it says");
  }
  memory_[++memories_] = cargo;
  if (options_.leads() && !its.places.empty()) {
    ArriveWhole(arrivals_.AtFirst({its.places, its.skipped, memories_}), steps);
  } else {
    *steps = daemon_.Arrive(its.places, its.skipped, memories_);
  }
  return Status::Ok();
}

// The server's, as a whole, for its replica; or worker 0's, before the job begins.
Status ModelPart::TakeModel(int peer, const ModelLetter& its, const Cargo& cargo,
                            ModelSteps* steps) {
  const bool replica = options_.role == Role::kReplica && !options_.follows();
  const bool first = peer == PeerOf(0) && !has_model_;
  const bool holder = NodeOf(peer) < 0 && peer != kSchedulerPeer;
  if (replica && is_server() && holder) return Status::Ok();  // of before
  if (!first && !(replica && holder)) {
    return Status::Corrupt("a model from one who has none to give");
  }
  if (cargo.sum == nullptr || (has_step() && !first) != (cargo.step != nullptr)) {
    return Status::Corrupt("a model that is not there, or whose last step is missing");
  }
  model_ = Taken(cargo.sum);
  if (its.progress.size() == progress_.size()) progress_ = its.progress;
  has_model_ = true;
  if (first) return Status::Ok();
  if (has_step()) step_ = Taken(cargo.step);
  server_peer_ = peer;
  if (options_.calls.update != nullptr) {
    Log(LogLevel::kWarning,
        "this replica was sent the model, and nothing that the server's own call for an update "
        "remembers: from here on the two may differ");
  }
  *steps = daemon_.TakeModel(its.version, its.place);
  return Status::Ok();
}

void ModelPart::Gone(int peer, double now_s) {
  sender_.Gone(peer);
  if (NodeOf(peer) >= 0) {
    askers_.Gone(NodeOf(peer));
    gone_.insert(NodeOf(peer));
  }
  if (peer == replica_peer_ && !options_.leads()) daemon_.FollowersLost();
  Answer(now_s);  // nobody waits for who is gone
}

void ModelPart::Turn(double now_s) {
  bool over = false;
  for (auto& [worker, by_s] : asks_by_s_) {
    if (now_s < by_s) continue;
    by_s = kNever;
    over = true;
  }
  if (now_s >= gathers_until_s_) {
    gathers_until_s_ = kNever;
    gathered_ = over = true;
  }
  if (now_s >= leaves_until_s_) {
    leaves_until_s_ = kNever;
    sender_.CountNoMore();
    over = true;
  }
  if (over) Answer(now_s);
}

bool ModelPart::Granted(const Asker& asker) const {
  const auto [updates, reduce, number] = asker.wish;
  if (reduce != 0) return reduced_of_.count({asker.worker, reduce}) != 0;
  for (size_t other = 0; other < progress_.size(); ++other) {
    if (progress_[other] < updates && gone_.count(static_cast<int>(other)) == 0) return false;
  }
  return !WaitsBeside(asker.worker);
}

// For one that is about to ask, too.
bool ModelPart::WaitsBeside(int worker) const {
  const auto place = static_cast<size_t>(worker);
  if (!by_packets_ || place >= options_.beside.size()) return false;
  const auto& others = options_.beside[place];
  return std::any_of(others.begin(), others.end(), [this](int other) {
    if (gone_.count(other) != 0 || askers_.Waits(other)) return false;
    const auto asks_by = asks_by_s_.find(other);
    return asks_by == asks_by_s_.end() ? daemon_.Awaits(other) : asks_by->second < kNever;
  });
}

// So long others may join those `ready`.
double ModelPart::Gathers_s(size_t ready) const {
  if (!first_ || version() > 0) {
    return std::min(kGathering * sender_.takes_s(), kGatheringMost_s);
  }
  return ready + gone_.size() < progress_.size() ? options_.first_gathering_s : 0;
}

// Whoever waits gets it when the server's way out is not full; many, down a tree.
void ModelPart::Answer(double now_s) {
  if (stopped() || tree_asked_ || sender_.share() >= kWayFull) return;
  std::vector<int> ready = askers_.Ready(granted_);
  if (ready.empty()) return;
  const double gathers_s = gathered_ ? 0 : Gathers_s(ready.size());
  gathers_until_s_ = std::min(gathers_until_s_, now_s + gathers_s);
  if (now_s < gathers_until_s_) return;
  gathered_ = first_ = false;
  gathers_until_s_ = kNever;
  ready.resize(std::min(ready.size(), kTreeMost));
  Tree straight{static_cast<int64_t>(options_.elements * sizeof(float)), {}};
  for (const int worker : ready) straight.edges.push_back({kServerNode, worker});
  if (ready.size() < kTreeLeast) {
    straight.takes_s = sender_.takes_s();
    return Serve(straight, now_s);
  }
  outbox_->Post(kSchedulerPeer, AskingLetter{std::move(straight)});
  tree_asked_ = true;
}

void ModelPart::Serve(const Tree& tree, double now_s) {
  std::vector<Grant> grants = askers_.Take(tree.edges, granted_);
  const double share = tree.share / static_cast<double>(grants.size());
  leaves_until_s_ = now_s + kPatience * tree.takes_s + kPatienceLeast_s;
  for (Grant& grant : grants) {
    ModelLetter letter;
    letter.version = version();
    letter.wish = grant.to.wish.number;
    letter.onward = std::move(grant.onward);
    letter.by_packets = tree.by_packets;
    const bool reduce = grant.to.wish.reduce != 0;
    TellFollowers(StripeLetter{grant.to.worker, letter, reduce});
    const std::shared_ptr<const Vector> vector = reduce ? reduced_ : Shown();
    const Cargo cargo{vector, nullptr, nullptr, options_.stripe()};
    sender_.Send(PeerOf(grant.to.worker), std::move(letter), cargo, share);
  }
}

std::shared_ptr<const Vector> ModelPart::Shown() {
  const bool looks_ahead = options_.rule.nesterov && has_step();
  if (!looks_ahead && options_.calls.request == nullptr) return model_;
  if (shown_ != nullptr && shown_version_ == version()) return shown_;
  shown_version_ = version();
  shown_.reset();
  shown_ = spares_.Get(model_->size());
  const float* model = model_->data();
  float* shown = shown_->data();
  if (!looks_ahead) {
    if (failure_.ok()) failure_ = options_.calls.request(model, shown, model_->size());
    return shown_;
  }
  const auto ahead = static_cast<float>(options_.rule.momentum);
  const float* step = step_->data();
  for (size_t i = 0; i < shown_->size(); ++i) shown[i] = model[i] + ahead * step[i];
  return shown_;
}

bool ModelPart::Next(int peer, double now_s, OutPacket* out) {
  if (stopped() || !sender_.Next(peer, now_s, out)) return false;
  if (sender_.waiting(peer) == 0) Answer(now_s);
  return true;
}

double ModelPart::WakeAt(int peer, double now_s) const {
  if (stopped()) return kNever;
  if (sender_.IsNext(peer)) return now_s;
  double at_s = std::min(gathers_until_s_, leaves_until_s_);
  for (const auto& [worker, by_s] : asks_by_s_) at_s = std::min(at_s, by_s);
  return at_s;
}

void ModelPart::Carry(const ModelSteps& steps) {
  for (size_t i = 0; i < steps.size() && failure_.ok(); ++i) {
    const ModelStep& step = steps[i];
    const bool more =
        i + 1 < steps.size() && steps[i + 1].kind == ModelStep::kApply && !steps[i + 1].first;
    switch (step.kind) {
      case ModelStep::kApply:
        Apply(step, !more);
        break;
      case ModelStep::kDiscard:
        memory_.erase(step.memory);
        break;
      case ModelStep::kTell: {
        News news = step.news;
        const bool weighs = news.kind == News::kReplicaApplied || news.kind == News::kCaughtUp;
        if (weighs && !options_.follows()) news.history_norm = StepNorm();
        if (!options_.follows()) {
          outbox_->Post(kSchedulerPeer, std::move(news));
        } else if (news.kind == News::kReplicaHas) {
          outbox_->Post(kServerPeer, std::move(news));
        }
        break;
      }
      case ModelStep::kConfirm:
        if (!step.updates.front().reduce) outbox_->Post(replica_peer_, ConfirmLetter{step.updates});
        TellFollowers(ConfirmLetter{step.updates});
        break;
      case ModelStep::kSendModel: {
        const ModelLetter letter{0, false, version(), step.place, progress_, 0, {}};
        replica_peer_ = PeerOf(step.to);
        TellFollowers(StripeLetter{step.to, letter});
        sender_.Send(replica_peer_, letter, {model_, step_, nullptr, options_.stripe()}, 0);
        break;
      }
    }
  }
}

void ModelPart::Apply(const ModelStep& step, bool whole) {
  const auto group = memory_.find(step.memory);
  if (step.updates.front().reduce) {
    Reduce(step, group->second);
  } else if (options_.calls.update != nullptr) {
    CallUpdate(step, group->second, whole);
    if (failure_.ok()) Count(step);
  } else {
    AppendShared(spares_, StrideOf(options_.rule.momentum, step.versions), &model_,
                 has_step() ? &step_ : nullptr, group->second.group());
    Count(step);
  }
  memory_.erase(group);
}

void ModelPart::CallUpdate(const ModelStep& step, const Cargo& cargo, bool whole) {
  if (step.first) {
    change_ = Taken(cargo.sum);
    changes_ = 0;
  } else {
    AppendShared(spares_, {}, &change_, nullptr, cargo.group());
  }
  changes_ += static_cast<int64_t>(step.updates.size());
  if (!whole) return;
  if (model_.use_count() > 1) {  // others read it
    std::shared_ptr<Vector> own = spares_.Get(model_->size());
    std::copy(model_->begin(), model_->end(), own->begin());
    model_ = std::move(own);
  }
  failure_ = options_.calls.update(model_->data(), change_->data(), model_->size(), changes_);
  change_.reset();
}

void ModelPart::Reduce(const ModelStep& step, const Cargo& cargo) {
  if (step.first || reduced_ == nullptr) {
    reduced_of_.clear();
    reduced_ = Taken(cargo.sum);
  } else {
    AppendShared(spares_, {}, &reduced_, nullptr, cargo.group());
  }
  for (const Placed& update : step.updates) reduced_of_.insert(update.id);
}

void ModelPart::Count(const ModelStep& step) {
  const bool round = step.updates.front().round != 0;
  int64_t version = round ? step.version : step.version - step.versions;
  for (const Placed& update : step.updates) {
    if (!round) ++version;
    ++delays_[version - update.version];
    commits_.push_back({update, version});
    const auto worker = static_cast<size_t>(update.id.worker);
    if (worker < progress_.size()) ++progress_[worker];
    asks_by_s_.emplace(update.id.worker, now_s_ + kAsksWithin_s);
  }
  while (commits_.size() > kCommitsKept) commits_.pop_front();
}

std::string ModelPart::Figures() const {
  std::string text = "\"elements\": " + std::to_string(options_.elements) +
                     ", \"version\": " + std::to_string(version()) +
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
  if (step_ == nullptr) return 0;
  for (const float value : *step_) square += double{value} * double{value};
  return std::sqrt(square);
}

}  // namespace mercury::fabric
