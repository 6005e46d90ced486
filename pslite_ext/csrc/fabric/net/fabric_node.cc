#include "fabric/net/fabric_node.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/crc32c.h"
#include "base/log.h"
#include "base/refusal.h"
#include "base/variants.h"
#include "control/descriptors.h"

namespace mercury::fabric {
namespace {

// Each worker's others on its host; none on the server's, from where no link is used.
std::vector<std::vector<int>> Beside(const std::vector<Seat>& seats) {
  std::map<std::string, std::vector<int>> on;
  for (const Seat& seat : seats) {
    if (seat.node >= 0) on[seat.host].push_back(seat.node);
  }
  const auto servers = std::count_if(seats.begin(), seats.end(),
                                     [](const Seat& its) { return IsServerNode(its.node); });
  for (const Seat& seat : seats) {
    if (seat.node == kServerNode && servers == 1) on.erase(seat.host);
  }
  std::vector<std::vector<int>> beside;
  for (const Seat& seat : seats) {
    if (seat.node < 0) continue;
    const auto rank = static_cast<size_t>(seat.node);
    if (beside.size() <= rank) beside.resize(rank + 1);
    for (const int other : on[seat.host]) {
      if (other != seat.node) beside[rank].push_back(other);
    }
  }
  return beside;
}

constexpr size_t kPacketBytes = 64 << 10;
constexpr int64_t kLateUs = 10000000;  // a node waits so much longer than the scheduler, who tells

}  // namespace

FabricNode::FabricNode(FabricNodeOptions options, Vector model)
    : options_(std::move(options)),
      answers_(options_.node >= 0),
      self_(PeerOf(options_.node)),
      model_(std::move(model)),
      door_key_(DataKey(options_.token, JobIdentity{})),
      muster_(options_.workers, options_.servers, options_.replicas, options_.settings,
              options_.rule.value_or(Rule())) {
  auto endpoint = std::make_unique<NodeEndpoint>(
      options_.node, kPacketBytes,
      [this](int peer, const Letter& letter) { return Control(peer, letter); }, spares_);
  endpoint_ = endpoint.get();
  LinkOptions link;
  link.packet_bytes_max = kPacketBytes;
  link.checksum = options_.checksum;
  link.silence_us = options_.silence_us;
  link.take_turns = true;
  link.ring_bytes = RingBytesOf(static_cast<size_t>(options_.workers));
  LaneEvents events;
  events.lost = [this](int peer, const Status& status) { Gone(peer, status, false); };
  events.left = [this](int peer) { Gone(peer, Status::Ok(), true); };
  // Heartbeats, too: where something is said, silence is noticed.
  events.tick = [this](int64_t now_us) {
    if (is_scheduler()) return Broadcast(TimeLetter());
    endpoint_->AskTime(now_us);
  };
  lane_ = std::make_unique<Lane>(std::move(endpoint), link, std::move(events));
  lane_->on_turn = [this](int64_t now_us) { Turn(now_us); };
}

FabricNode::~FabricNode() { Leave(true); }

Status FabricNode::Start() {
  SetLogName(LogNameOf(options_.node));
  port_ = options_.port;
  Status status = Listen(options_.host, &port_, options_.tcp, &listener_);
  if (!status.ok()) return status;
  give_up_at_us_ = NowUs() + options_.start_timeout_us + (is_scheduler() ? 0 : kLateUs);
  status = lane_->Start("mercury-fabric");
  if (!status.ok()) return status;
  lane_->Post([this] {
    if (is_scheduler()) return OpenDoor(JobIdentity{});
    Dial(kSchedulerPeer, options_.scheduler, door_key_, JobNumber(JobIdentity{}));
  });
  return Status::Ok();
}

Terms FabricNode::TermsOf(uint64_t job) const {
  Terms terms;
  terms.job = job;
  terms.worker = terms.server = static_cast<uint32_t>(self_);
  terms.workers = terms.servers = kPeersMost;  // who there is, the scheduler knows
  terms.packet_bytes = kPacketBytes;
  terms.checksum = options_.checksum;
  return terms;
}

void FabricNode::Dial(int peer, const Address& address, const HmacKey& key, uint64_t job) {
  Terms terms = TermsOf(job);
  terms.server = static_cast<uint32_t>(peer);
  const int64_t now_us = NowUs();
  dialers_.push_back(std::make_unique<Dialer>(
      &lane_->loop(), key, terms, address, options_.tcp, now_us + options_.start_timeout_us,
      [this, peer, address](const Status& status, TcpSocket socket) {
        if (status.ok()) return Linked(peer, std::move(socket));
        Party party = PartyOf(NodeOf(peer));
        party.address = address.text();
        Fail(status.By({Blame::kUnreached, std::move(party)}));
      }));
  dialers_.back()->Start(now_us);
}

void FabricNode::OpenDoor(const JobIdentity& job) {
  DoorOptions door;
  door.token = options_.token;
  door.job = job;
  door.terms = TermsOf(JobNumber(job));
  door.tcp = options_.tcp;
  door_ = std::make_unique<Acceptor>(
      &lane_->loop(), std::move(listener_), door,
      [this](const Terms& theirs, TcpSocket socket) {
        Take(static_cast<int>(theirs.worker), std::move(socket));
      },
      [this](const std::string& why) { LogRefusal(why, ++refusals_); });
  const Status status = door_->Start();
  if (!status.ok()) Fail(status);
}

void FabricNode::Take(int peer, TcpSocket socket) {
  const bool known = is_scheduler() ? muster_.Awaits(NodeOf(peer)) && !endpoint_->Linked(peer)
                                    : awaited_.count(peer) != 0 && peer > self_;
  if (known && !begun_) return Linked(peer, std::move(socket));
  LogRefusal("a connection that says it is " + NodeText(NodeOf(peer)) +
                 ", which is not awaited or was there before",
             ++refusals_);
}

void FabricNode::Linked(int peer, TcpSocket socket) {
  endpoint_->Open(peer);
  if (is_scheduler() || peer == kSchedulerPeer) SendFirst(socket.fd());
  lane_->AddLink(std::move(socket), peer);
  if (is_scheduler()) return;
  if (peer != kSchedulerPeer) {
    awaited_.erase(peer);
    if (first_ != nullptr && NodeOf(peer) < 0) worker_->Give(peer, first_);
    return;
  }
  endpoint_->AskTime(NowUs());
  const Joining joining{
      options_.host,
      port_,
      options_.workers,
      options_.servers,
      options_.replicas,
      static_cast<int64_t>(options_.elements),
      Crc32c(0, reinterpret_cast<const char*>(model_.data()), model_.size() * sizeof(float)),
      options_.rule.has_value(),
      options_.rule.value_or(Rule()),
      options_.link_bit_per_s,
      ToText(options_.settings)};
  endpoint_->Post(kSchedulerPeer, joining);
}

// Linked to all others, and with a model if it is one's to have.
void FabricNode::SayReady() {
  const bool waits = model_part_ != nullptr && !model_part_->has_model();
  if (!entered_ || said_ready_ || waits || !awaited_.empty()) return;
  said_ready_ = true;
  first_.reset();
  endpoint_->Post(kSchedulerPeer, ReadyLetter());
}

Status FabricNode::Control(int peer, const Letter& letter) {
  const bool scheduler = is_scheduler(), from_scheduler = !scheduler && peer == kSchedulerPeer;
  const auto refuse = [] { return Status::Corrupt("a letter out of turn, or not from there"); };
  return Match(
      letter,
      [&](const Joining& joining) { return scheduler && !begun_ ? Join(peer, joining) : refuse(); },
      [&](const ReadyLetter&) {
        if (!scheduler || !muster_.all_joined()) return refuse();
        muster_.Ready(NodeOf(peer));
        return muster_.all_ready() && !begun_ ? BeginAll() : Status::Ok();
      },
      [&](const Attendance& roster) {
        return from_scheduler && !data_key_ ? Enter(roster) : refuse();
      },
      [&](const BeginLetter&) {
        if (!from_scheduler || !data_key_) return refuse();
        begun_ = true;
        answers_.Begin();
        return Status::Ok();
      },
      [&](const GoneLetter& its) {
        if (!from_scheduler || !begun_) return refuse();
        lane_->Post([this, peer = PeerOf(its.node)] { GiveUp(peer); });  // links are being walked
        return Status::Ok();
      },
      [&](const Order& order) {
        if (!from_scheduler) return refuse();
        Status status;
        Decode(order.text, &status);
        Fail(status);
        return Status::Ok();
      },
      [&](const auto& its) {
        static_assert(!kForNode<std::decay_t<decltype(its)>>);
        return refuse();
      });
}

// The scheduler: somebody says who it is.
Status FabricNode::Join(int peer, const Joining& joining) {
  const Status status = muster_.Join(NodeOf(peer), joining);
  if (!status.ok()) {
    Fail(status.By({Blame::kNamed, PartyOf(NodeOf(peer))}));
    return Status::Ok();  // it hears why
  }
  if (!muster_.all_joined()) return Status::Ok();
  job_ = RandomIdentity();
  Attendance roster = muster_.Called();
  roster.identity.assign(reinterpret_cast<const char*>(job_.data()), job_.size());
  roster.delay_bound = options_.planning.collector.delay_bound;
  roster.staleness = options_.planning.collector.staleness;
  roster.weights = options_.weights;
  roster.codec = options_.codec == nullptr ? 0 : options_.codec->number;
  Broadcast(roster);
  return Status::Ok();
}

void FabricNode::Broadcast(const Letter& letter) {
  for (const auto& [peer, link] : lane_->links()) endpoint_->Post(peer, letter);
}

// The scheduler: all are linked.
Status FabricNode::BeginAll() {
  begun_ = true;
  SchedulerOptions planning = options_.planning;
  const Attendance roster = muster_.Called();
  planning.collector.momentum = roster.rule.momentum;
  planning.collector.coded = options_.codec != nullptr;
  std::memcpy(&planning.collector.seed, job_.data(), sizeof(planning.collector.seed));
  scheduler_ = std::make_unique<SchedulerPart>(roster.seats, planning, endpoint_);
  endpoint_->Play(scheduler_.get(), {});
  Broadcast(BeginLetter());
  answers_.Begin();
  return Status::Ok();
}

// Another node: the scheduler says who there is.
Status FabricNode::Enter(const Attendance& roster) {
  const auto elements = static_cast<size_t>(roster.elements);
  const int node = options_.node;
  const bool gives = roster.first_from_worker && node == 0;
  const size_t told = roster.first_from_worker && node < 0 ? 0 : elements;
  const bool ours = elements != 0 && options_.elements == told && !(gives && model_.empty());
  const Codec* codec = CargoCodec(roster.codec);
  const auto servers = static_cast<size_t>(options_.servers);
  if (roster.identity.size() != job_.size() || !ours || roster.delay_bound < 1 ||
      (codec == nullptr) != (roster.codec == 0)) {
    return Status::Corrupt("a roster that makes no sense");
  }
  std::memcpy(job_.data(), roster.identity.data(), job_.size());
  const HmacKey& key = data_key_.emplace(DataKey(options_.token, job_));
  if (node >= 0) {
    WorkerEvents events;
    events.settled = [this](UpdateId update, Fate fate) { answers_.Settled(update.number, fate); };
    events.got = [this](const Edition& edition, const std::shared_ptr<const Vector>& model) {
      answers_.Got(edition, model);
    };
    worker_ = std::make_unique<WorkerPart>(node, roster.rule.momentum, kPacketBytes, endpoint_,
                                           std::move(events), spares_, codec, elements, servers,
                                           options_.replicas);
    if (gives) first_ = std::make_shared<const Vector>(std::exchange(model_, {}));
    const auto rank = static_cast<size_t>(node);
    answers_.Enter(rank < roster.weights.size() ? roster.weights[rank] : 1, roster.staleness);
  } else {
    if (options_.calls.any() && roster.rule.momentum > 0) {
      Fail(Status::InvalidArgument(
          "the server's script has calls of its own, and the job's rule is momentum, which they "
          "take the place of: leave MERCURY_FABRIC_UPDATE unset"));
      return Status::Ok();
    }
    if (options_.calls.any() && servers > 1) {
      Fail(Status::InvalidArgument(
          "the server's script has calls of its own, which are for a whole model, and there are " +
          std::to_string(servers) + " servers, each with a part: start one"));
      return Status::Ok();
    }
    const auto role = node == kServerNode ? Role::kServer : Role::kReplica;
    const int64_t bound = roster.staleness.bounded() ? mercury::kNever : roster.delay_bound;
    ModelOptions its{role,         bound,    roster.rule,      options_.replicas > 0,
                     kPacketBytes, elements, options_.workers, Beside(roster.seats)};
    its.calls = options_.calls;
    its.servers = servers;
    if (IsServerNode(node)) its.server = static_cast<size_t>(ServerIndex(node));
    model_part_ = std::make_unique<ModelPart>(its, std::move(model_), endpoint_, spares_);
  }
  Part* part = worker_ != nullptr ? static_cast<Part*>(worker_.get()) : model_part_.get();
  const size_t comes = model_part_ != nullptr ? model_part_->model().size() : elements;
  endpoint_->Play(part, {comes, roster.rule.momentum > 0, codec, servers, elements});
  for (const Seat& seat : roster.seats) {
    if (seat.node != node) awaited_.insert(PeerOf(seat.node));
  }
  OpenDoor(job_);
  for (const Seat& seat : roster.seats) {
    if (PeerOf(seat.node) >= self_) continue;
    Dial(PeerOf(seat.node), {seat.host, static_cast<int>(seat.port)}, key, JobNumber(job_));
  }
  entered_ = true;
  return Status::Ok();
}

void FabricNode::Gone(int peer, const Status& status, bool left) {
  if (peer < 0) return Fail(status);
  const Party party = PartyOf(NodeOf(peer));
  const std::string who = NodeName(party.role, party.rank);
  const std::string how = left ? "it has left" : status.text();
  if (!is_scheduler() && peer == kSchedulerPeer) {
    if (begun_ && left) return Over();
    return Fail(Status::PeerLost(how).By({Blame::kLost, party}));
  }
  endpoint_->Close(peer, NowUs());
  if (over_) return;
  if (!begun_) {
    return Fail(Status::PeerLost(who + " was lost before the job began: " + how)
                    .By({Blame::kNamed, party}));
  }
  if (!left) Log(LogLevel::kWarning, who + " is lost: " + how);
  if (left) return;
  if (is_scheduler()) {
    lost_.push_back(NodeOf(peer));
    return Broadcast(GoneLetter{NodeOf(peer)});
  }
  endpoint_->Post(kSchedulerPeer, UnreachableLetter{NodeOf(peer)});
}

// The scheduler has lost that node. A node that hangs is not noticed by who says nothing to it.
void FabricNode::GiveUp(int peer) {
  if (!endpoint_->Linked(peer)) return;
  lane_->Close(peer);
  endpoint_->Close(peer, NowUs());
}

void FabricNode::Over() {
  over_ = true;
  if (model_part_ != nullptr && model_part_->leads() && model_part_->is_server()) {
    model_part_->Collect();
  }
}

// The scheduler has left: what the servers have still to give each other.
void FabricNode::EndOnceDone() {
  if (model_part_ == nullptr || model_part_->deposed()) return answers_.End();
  if (model_part_->follows() && endpoint_->Linked(kServerPeer)) return;
  const bool waits = model_part_->leads() && model_part_->collected() == nullptr;
  if (!waits) return answers_.End();
  for (int server = 1; server < options_.servers; ++server) {
    if (endpoint_->Linked(PeerOf(ServerNode(server)))) continue;
    return Fail(Status::PeerLost("it was lost before it gave its part of the model")
                    .By({Blame::kLost, PartyOf(ServerNode(server))}));
  }
}

void FabricNode::Turn(int64_t now_us) {
  if (door_ != nullptr) door_->Turn(now_us);
  for (const auto& dialer : dialers_) dialer->Turn(now_us);
  endpoint_->Turn(now_us);
  if (model_part_ != nullptr && !model_part_->failure().ok()) Fail(model_part_->failure());
  SayReady();
  if (!begun_ && !ending_ && now_us >= give_up_at_us_ && is_scheduler() && !DescriptorLeft()) {
    Fail(Status::Exhausted(NoDescriptorLeft(NodeText(kSchedulerNode))));  // nobody else's doing
  }
  if (!begun_ && !ending_ && now_us >= give_up_at_us_) {
    const std::string waited = std::to_string(options_.start_timeout_us / 1000000) + " s";
    Fail(Status::Timeout(is_scheduler() ? "the job has not begun after " + waited + ": " +
                                              muster_.Missing() + " did not come"
                                        : "the job has not begun after " + waited));
  }
  if (over_) EndOnceDone();
  if (!is_scheduler()) return;
  if (scheduler_ != nullptr) scheduler_->SentOut(endpoint_->SchedulerTime(NowUs()));
  if (scheduler_ != nullptr && !ending_) {
    for (const int peer : scheduler_->TakeCutOff()) {
      Order order = MakeOrder(Order::kFail, NodeOf(peer));
      order.text = Encode(Status::PeerLost("another node cannot reach " + NodeText(NodeOf(peer)))
                              .By({Blame::kNamed, PartyOf(NodeOf(peer))}));
      endpoint_->Post(peer, order);  // it leaves then, and is gone
    }
    if (!scheduler_->failure().ok()) Fail(scheduler_->failure());
    if (!scheduler_->workers_left() && !ending_) ending_ = Status::Ok();
  }
  if (ending_ && endpoint_->all_said()) {
    if (ending_->ok()) return answers_.End();
    answers_.Fail(*ending_);
  }
}

// The scheduler tells the others first.
void FabricNode::Fail(const Status& status) {
  if (!is_scheduler()) return answers_.Fail(status);
  if (ending_) return;
  ending_ = status;
  Order order;
  order.text = Encode(status);
  Broadcast(order);
  lane_->Post([] {});  // another turn, to see that all have been told
}

void FabricNode::Leave(bool failed) {
  lane_->Stop(failed ? Parting::kFailed : Parting::kDone);
  dialers_.clear();
  door_.reset();
  listener_.Close();
  answers_.Fail(Status::Closed("this node has left the job"));
}

}  // namespace mercury::fabric
