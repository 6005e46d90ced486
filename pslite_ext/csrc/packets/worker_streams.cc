#include "packets/worker_streams.h"

#include <algorithm>

#include "base/node_name.h"

namespace mercury {

namespace {

Declaration DeclarationOf(const Tensor& tensor) {
  const TensorTraits& traits = tensor.traits;
  return {traits.key, traits.elements(), traits.dtype, traits.index, traits.name};
}

bool Fetches(const Operation& op) { return op.kind == Operation::Kind::kAgain; }

}  // namespace

// What one link has to do with one tensor.
struct WorkerStreams::Part {
  Share share;
  int64_t number = -1;             // on this link; -1: not declared yet
  std::vector<uint32_t> received;  // bytes of each slot's sum, of this round
  // The operation under way:
  uint64_t portion = 0;
  uint64_t next = 0;     // slot to send
  uint32_t at = 0;       // bytes of it that have been sent
  uint64_t waiting = 0;  // slots whose sums are not in
};

struct WorkerStreams::Stream {
  std::shared_ptr<Tensor> shared;
  std::vector<Part> parts;  // by server
  std::shared_ptr<Operation> op;
  uint64_t waiting = 0;  // slots of this lane whose sums are not in
  uint64_t start = 0;    // its place in active_
  uint8_t round = 0;
  int64_t since_us = 0, moved_us = 0, ask_at_us = 0;
};

struct WorkerStreams::Link {
  explicit Link(const PolicyOptions& options) : policy(MakePolicy(options)) {}
  std::unique_ptr<Policy> policy;
  std::vector<Stream*> tensors;  // by number
  std::unordered_map<uint64_t, Stream*> portions;
  std::deque<OutPacket> first;  // goes out before any data
  // The packet that is being received.
  std::string text;
  Stream* tensor = nullptr;
  std::shared_ptr<Operation> op;
  uint64_t mine = 0;
};

WorkerStreams::WorkerStreams(const WorkerStreamsOptions& options, Report report)
    : options_(options),
      report_(std::move(report)),
      trace_(options.trace, false, options.trace_overhead),
      notes_(options.notes) {
  PolicyOptions policy = options_.policy;
  if (policy.kind == PolicyKind::kProphet) {
    profile_ = std::make_shared<ProphetProfile>(policy.profile_steps);
    LoadProfile();
    policy.profile = profile_;
  }
  for (int s = 0; s < options_.shares.servers(); ++s)
    links_.push_back(std::make_unique<Link>(policy));
}

WorkerStreams::~WorkerStreams() = default;

const Policy& WorkerStreams::policy(int server) const {
  return *links_[static_cast<size_t>(server)]->policy;
}

WorkerStreams::Stream* WorkerStreams::StreamOf(const std::shared_ptr<Tensor>& shared) {
  auto& tensor = tensors_[shared->traits.key];
  if (tensor != nullptr && tensor->shared == shared) return tensor.get();
  if (tensor == nullptr) tensor = std::make_unique<Stream>();
  tensor->shared = shared;
  const TensorTraits& d = shared->traits;
  const Placement placement(d.key, d.bytes(), options_.policy.packet_bytes, options_.shares,
                            options_.lanes);
  tensor->parts.resize(static_cast<size_t>(options_.shares.servers()));
  for (int s = 0; s < options_.shares.servers(); ++s) {
    Part& part = tensor->parts[static_cast<size_t>(s)];
    part.share = Share(placement, s, options_.lane);
    part.received.assign(part.share.count, 0);
  }
  return tensor.get();
}

void WorkerStreams::Submit(std::shared_ptr<Operation> op, int64_t now_us) {
  if (!failure_.ok()) return op->Finish(failure_);
  const Status failed = op->tensor->failure();
  if (!failed.ok()) return given_up_.Add(op, failed);  // other lanes may have begun
  Stream* tensor = StreamOf(op->tensor);
  if (tensor->op != nullptr && !tensor->op->over()) {
    return op->Finish(Status::Internal("tensor '" + op->tensor->traits.name +
                                       "' was given a second time before its sum was in"));
  }
  if (tensor->op != nullptr) End(tensor);
  tensor->op = std::move(op);
  tensor->since_us = tensor->moved_us = now_us;
  tensor->ask_at_us = options_.stall.FirstQuestion(now_us);
  if (!Fetches(*tensor->op)) ++tensor->round;
  if (profile_ != nullptr && !Fetches(*tensor->op)) NoteReady(*tensor->op, now_us);
  tensor->waiting = 0;
  for (const Part& part : tensor->parts) tensor->waiting += part.share.count;
  if (tensor->waiting == 0) return tensor->op.reset();  // all of it is in other lanes
  tensor->start = next_portion_++;
  active_[tensor->start] = tensor;
  for (int s = 0; s < options_.shares.servers(); ++s) Begin(tensor, s, now_us);
}

void WorkerStreams::NoteReady(const Operation& op, int64_t now_us) {
  const TensorTraits& d = op.tensor->traits;
  profile_->Ready(d.key, d.bytes(), op.priority, now_us);
  for (const std::string& notice : profile_->TakeNotices()) {
    if (options_.lane == 0) report_(notice);
  }
  if (!notes_.Behind(profile_->figures())) return;
  BlockFigures blocks;
  for (const auto& link : links_) blocks += link->policy->blocks();
  notes_.Tell(profile_->figures(), blocks);
}

void WorkerStreams::Begin(Stream* tensor, int server, int64_t now_us) {
  Part& part = tensor->parts[static_cast<size_t>(server)];
  if (part.share.count == 0) return;
  Link& link = *links_[static_cast<size_t>(server)];
  if (part.number < 0) {
    part.number = static_cast<int64_t>(link.tensors.size());
    link.tensors.push_back(tensor);
    link.first.push_back(TextPacket(Kind::kDeclare, static_cast<uint32_t>(part.number), 0,
                                    Encode(DeclarationOf(*tensor->shared))));
  }
  std::fill(part.received.begin(), part.received.end(), 0);
  part.waiting = part.share.count;
  part.next = 0;
  part.at = 0;
  part.portion = next_portion_++;
  const Operation& op = *tensor->op;
  const auto number = static_cast<uint64_t>(op.number);
  trace_.Begin(server, tensor->shared->traits.index, Fetches(op) ? number - 1 : number);
  if (Fetches(*tensor->op)) {
    part.next = part.share.count;
    OutPacket fetch = TextPacket(Kind::kFetch, static_cast<uint32_t>(part.number), number, "");
    fetch.header.priority = link.policy->WirePriority(tensor->op->priority);
    link.first.push_back(std::move(fetch));
    return;
  }
  trace_.HandedOver(server, tensor->shared->traits.index, part.share,
                    op.handed_us != 0 ? op.handed_us : now_us);
  if (options_.trace != nullptr) {
    link.first.push_back(TextPacket(Kind::kNumber, static_cast<uint32_t>(part.number), number, ""));
  }
  const PolicyOptions& policy = options_.policy;
  link.portions[part.portion] = tensor;
  link.policy->Ready(
      {part.portion, tensor->op->priority, part.share.count,
       UnitSlots(policy.kind, policy.unit_bytes, part.share.of.slot_bytes, part.share.count),
       part.share.Bytes()},
      now_us);
}

// The operation is over in this lane, well or not.
void WorkerStreams::End(Stream* tensor) {
  for (int s = 0; s < options_.shares.servers(); ++s) {
    Link& link = *links_[static_cast<size_t>(s)];
    const uint64_t portion = tensor->parts[static_cast<size_t>(s)].portion;
    if (link.portions.erase(portion) != 0) link.policy->Forget(portion);
  }
  active_.erase(tensor->start);
  tensor->op.reset();
}

bool WorkerStreams::Next(int server, int64_t now_us, OutPacket* out) {
  Link& link = *links_[static_cast<size_t>(server)];
  if (!link.first.empty()) {
    *out = std::move(link.first.front());
    link.first.pop_front();
    return true;
  }
  uint64_t portion;
  if (!failure_.ok() || !link.policy->Next(now_us, &portion)) return false;
  Stream* tensor = link.portions.at(portion);
  Part& part = tensor->parts[static_cast<size_t>(server)];
  const uint64_t slot = part.share.Slot(part.next);
  const uint64_t slot_bytes = part.share.of.Length(slot);
  out->header.kind = Kind::kData;
  out->header.tensor = static_cast<uint32_t>(part.number);
  out->header.offset = part.share.of.Offset(slot) + part.at;
  out->header.length =
      static_cast<uint32_t>(std::min(slot_bytes - part.at, link.policy->packet_bytes()));
  out->header.priority = link.policy->WirePriority(tensor->op->priority);
  out->header.round = tensor->round;
  out->payload = tensor->op->src + out->header.offset;
  out->keep = tensor->op;
  part.at += out->header.length;
  const bool slot_done = part.at == slot_bytes;
  if (slot_done) {
    ++part.next;
    part.at = 0;
  }
  trace_.Sending(server, tensor->shared->traits.index, part.share, slot_done, out);
  link.policy->Sent(portion, out->header.length, slot_done, now_us);
  return true;
}

Status WorkerStreams::OnHeader(int server, const Header& header, int64_t /*now_us*/,
                               char** target) {
  Link& link = *links_[static_cast<size_t>(server)];
  link.tensor = nullptr;
  link.op.reset();
  if (header.kind == Kind::kGoodbye) return Status::Ok();
  if (header.kind != Kind::kSum && header.kind != Kind::kError && header.kind != Kind::kAnswer &&
      header.kind != Kind::kAck) {
    return Status::Corrupt("a packet that only workers send");
  }
  if (header.tensor >= link.tensors.size()) {
    return Status::Corrupt("a packet of tensor number " + std::to_string(header.tensor) +
                           ", which does not exist");
  }
  if (header.kind == Kind::kSum) return BeginSum(server, header, target);
  link.text.assign(header.length, '\0');
  *target = link.text.data();
  return Status::Ok();
}

Status WorkerStreams::BeginSum(int server, const Header& header, char** target) {
  Link& link = *links_[static_cast<size_t>(server)];
  Stream* tensor = link.tensors[header.tensor];
  // Of a tensor that has failed, sums may still come: they are dropped.
  if (!tensor->shared->failure().ok() || !failure_.ok()) return Status::Ok();
  const auto corrupt = [&](const std::string& what) {
    return Status::Corrupt("tensor '" + tensor->shared->traits.name + "': " + what);
  };
  Part& part = tensor->parts[static_cast<size_t>(server)];
  uint64_t mine;
  const auto sent = [&] {  // of the slot
    return mine < part.next ? ~uint64_t{0} : mine == part.next ? part.at : 0;
  };
  if (tensor->op == nullptr || !part.share.Find(header.offset, &mine) || sent() == 0) {
    return corrupt("a sum at " + std::to_string(header.offset) + " that was not asked for");
  }
  const uint64_t slot_bytes = part.share.of.Length(part.share.Slot(mine));
  const uint64_t at = header.offset % part.share.of.slot_bytes;
  if (header.round != tensor->round) {
    return corrupt("a sum of round " + std::to_string(header.round) + " instead of " +
                   std::to_string(tensor->round) + " (modulo 256)");
  }
  if (at < part.received[mine]) {
    return corrupt("it sent the sum at " + std::to_string(header.offset) + " twice in round " +
                   std::to_string(header.round) + " (modulo 256)");
  }
  if (at != part.received[mine] || at + header.length > slot_bytes ||
      (header.length == 0 && slot_bytes != 0)) {
    return corrupt("a sum of " + std::to_string(header.length) + " bytes at " +
                   std::to_string(header.offset) + ", which is out of order or does not fit");
  }
  if (at + header.length > sent()) {
    return corrupt("a sum at " + std::to_string(header.offset) + " of more than was sent");
  }
  link.tensor = tensor;
  link.op = tensor->op;
  link.mine = mine;
  *target = tensor->op->dst + header.offset;
  return Status::Ok();
}

Status WorkerStreams::OnPacket(int server, const Header& header, int64_t now_us) {
  Link& link = *links_[static_cast<size_t>(server)];
  if (header.kind == Kind::kError) TakeError(server, header);
  if (header.kind == Kind::kAnswer) TakeAnswer(server, header, now_us);
  if (header.kind == Kind::kAck) {
    const Part& part = link.tensors[header.tensor]->parts[static_cast<size_t>(server)];
    link.policy->Acknowledged(part.portion, header.offset);
  }
  if (header.kind != Kind::kSum || link.tensor == nullptr) return Status::Ok();
  Stream* tensor = link.tensor;
  link.tensor = nullptr;
  const std::shared_ptr<Operation> op = std::move(link.op);
  if (tensor->op != op) return Status::Ok();  // failed meanwhile
  Part& part = tensor->parts[static_cast<size_t>(server)];
  const uint64_t slot_bytes = part.share.of.Length(part.share.Slot(link.mine));
  part.received[link.mine] += header.length;
  tensor->moved_us = now_us;
  link.policy->Returned(part.portion, header.length, now_us);
  trace_.Received(server, tensor->shared->traits.index, part.share, header.length,
                  part.received[link.mine] >= slot_bytes, now_us);
  if (part.received[link.mine] < slot_bytes) return Status::Ok();
  // Nothing more may come of a slot, not even nothing.
  part.received[link.mine] = ~uint32_t{0};
  --part.waiting;
  if (--tensor->waiting == 0) {
    if (profile_ != nullptr) profile_->Done(tensor->shared->traits.key, now_us);
    End(tensor);
  }
  op->PartIn();  // last: it may lead to the tensor's next operation
  return Status::Ok();
}

void WorkerStreams::TakeError(int server, const Header& header) {
  Link& link = *links_[static_cast<size_t>(server)];
  Stream* tensor = link.tensors[header.tensor];
  Status status;
  Decode(link.text, &status);
  tensor->shared->Fail(
      status.Saying(status.detail() + " (said " + NodeName(Role::kServer, server) + ")"));
  if (tensor->op == nullptr) return;
  const std::shared_ptr<Operation> op = tensor->op;
  End(tensor);
  given_up_.Add(op, tensor->shared->failure());
}

void WorkerStreams::LoadProfile() {
  if (options_.policy.profile_text.empty()) return;
  const Status status = profile_->Load(options_.policy.profile_text);
  if (!status.ok() && options_.lane == 0) report_(ProfileRefused(status));
}

std::string WorkerStreams::ProfileText() const {
  if (profile_ == nullptr || !profile_->known()) return {};
  return profile_->Text([this](uint64_t key) {
    const auto it = tensors_.find(key);
    const bool known =
        it != tensors_.end() && it->second != nullptr && it->second->shared != nullptr;
    return known ? it->second->shared->traits.name : std::string();
  });
}

void WorkerStreams::Tick(int64_t now_us) {
  for (size_t s = 0; s < links_.size(); ++s) {
    const std::string notice = links_[s]->policy->TakeNotice();
    if (!notice.empty()) report_(NodeName(Role::kServer, static_cast<int>(s)) + ": " + notice);
  }
  // What has failed in another lane, perhaps when that lane had done its part: nothing more is
  // taken here, so that nothing else would end it.
  std::vector<Stream*> failed;
  for (auto& [start, tensor] : active_) {
    if (!tensor->shared->failure().ok()) failed.push_back(tensor);
  }
  for (Stream* tensor : failed) {
    const std::shared_ptr<Operation> op = tensor->op;
    if (op == nullptr) continue;
    End(tensor);
    given_up_.Add(op, tensor->shared->failure());
  }
  for (auto& [start, tensor] : active_) {
    if (now_us < tensor->ask_at_us) continue;
    tensor->ask_at_us = options_.stall.NextQuestion(tensor->since_us, tensor->moved_us, now_us);
    for (int s = 0; s < options_.shares.servers(); ++s) {
      const Part& part = tensor->parts[static_cast<size_t>(s)];
      if (part.waiting == 0 || part.number < 0) continue;
      links_[static_cast<size_t>(s)]->first.push_back(
          TextPacket(Kind::kAsk, static_cast<uint32_t>(part.number), 0, ""));
      break;  // one answer is enough
    }
  }
}

std::string WorkerStreams::Waiting(int64_t now_us) const {
  std::string lines;
  for (const auto& [start, tensor] : active_) {
    uint64_t slots = 0;
    for (const Part& part : tensor->parts) slots += part.share.count;
    lines += "tensor '" + tensor->shared->traits.name + "': for " +
             std::to_string((now_us - tensor->since_us) / 1000000) + " s, " +
             std::to_string(slots - tensor->waiting) + " of " + std::to_string(slots) +
             " sums are in\n";
  }
  return lines;
}

void WorkerStreams::TakeAnswer(int server, const Header& header, int64_t now_us) {
  Link& link = *links_[static_cast<size_t>(server)];
  const Stream* tensor = link.tensors[header.tensor];
  if (tensor->op == nullptr) return;
  std::string ranks;
  int first = -1;
  for (size_t w = 0; w < link.text.size(); ++w) {
    if (link.text[w] == 0) continue;
    if (first < 0) first = static_cast<int>(w);
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(w);
  }
  const Part& part = tensor->parts[static_cast<size_t>(server)];
  const bool several = ranks.find(',') != std::string::npos;
  std::string why = (several ? "workers " : "worker ") + ranks +
                    (several ? " have not sent it all" : " has not sent it all");
  if (ranks.empty()) {
    why = part.next < part.share.count
              ? "this worker has not sent it all"
              : "its sum is on its way from " + NodeName(Role::kServer, server);
  }
  const std::string line = "tensor '" + tensor->shared->traits.name + "' has waited for " +
                           std::to_string((now_us - tensor->since_us) / 1000000) + " s: " + why;
  report_(line);
  if (first >= 0 && options_.stalled && options_.stall.Over(tensor->moved_us, now_us)) {
    options_.stalled(first, line);
  }
}

void WorkerStreams::OnPath(int server, int64_t round_trip_us, double /*bytes_per_second*/) {
  links_[static_cast<size_t>(server)]->policy->SetRoundTrip(round_trip_us);
}

int64_t WorkerStreams::WakeAt(int server) const {
  return failure_.ok() ? links_[static_cast<size_t>(server)]->policy->WakeAt() : kNever;
}

// Allocates nothing, and does not rely on the books being complete: memory may be the reason.
void WorkerStreams::Fail(Status status) {
  if (!failure_.ok()) return;
  failure_ = std::move(status);
  active_.clear();
  for (auto& [key, tensor] : tensors_) {
    if (tensor == nullptr || tensor->op == nullptr) continue;
    // Not by End: the policy may need memory to forget it, and is not asked again.
    const std::shared_ptr<Operation> op = std::move(tensor->op);
    op->Finish(failure_);
  }
  given_up_.Finish(failure_);
}

}  // namespace mercury
