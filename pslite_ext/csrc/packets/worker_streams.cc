#include "packets/worker_streams.h"

#include <algorithm>

#include "base/node_name.h"
#include "packets/worker_stream.h"

namespace mercury {
namespace {

bool Fetches(const Operation& op) { return op.kind == Operation::Kind::kPull; }

Kind KindOf(const Operation& op) {
  switch (op.kind) {
    case Operation::Kind::kFirstValue:
      return Kind::kFirst;
    case Operation::Kind::kPush:
      return Kind::kPush;
    case Operation::Kind::kRows:
      return Kind::kRows;
    default:
      return Kind::kData;
  }
}

}  // namespace

Placement PlacementOf(const Operation& op, uint64_t packet_bytes, const ServerShares& shares,
                      int lanes) {
  const TensorTraits& d = op.tensor->traits;
  const size_t element_bytes = ElementBytes(d.dtype);
  if (op.kind == Operation::Kind::kRows) {
    return Placement::OfRows(d.key, d.elements(), op.rows.row_bytes / element_bytes, shares, lanes);
  }
  return Placement(d.key, d.elements(), element_bytes, packet_bytes, shares, lanes);
}

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

WorkerStreams::Stream* WorkerStreams::StreamOf(const Operation& op) {
  const std::shared_ptr<Tensor>& shared = op.tensor;
  const bool rows = op.kind == Operation::Kind::kRows;
  auto& stream = tensors_[{shared->traits.key, rows}];
  if (stream != nullptr && stream->shared == shared) return stream.get();
  if (stream == nullptr) stream = std::make_unique<Stream>();
  stream->shared = shared;
  const Placement placement =
      PlacementOf(op, options_.policy.packet_bytes, options_.shares, options_.lanes);
  if (rows) stream->row_elements = op.rows.row_bytes / ElementBytes(shared->traits.dtype);
  stream->parts.resize(static_cast<size_t>(options_.shares.servers()));
  for (int s = 0; s < options_.shares.servers(); ++s) {
    Part& part = stream->parts[static_cast<size_t>(s)];
    part.share = Share(placement, s, options_.lane);
    part.received.assign(part.share.count, 0);
  }
  return stream.get();
}

void WorkerStreams::Submit(std::shared_ptr<Operation> op, int64_t now_us) {
  if (!failure_.ok()) return op->Finish(failure_);
  const Status failed = op->tensor->failure();
  if (!failed.ok()) return given_up_.Add(op, failed);  // other lanes may have begun
  Stream* tensor = StreamOf(*op);
  if (tensor->op != nullptr && !tensor->op->over()) {
    return op->Finish(Status::Internal("tensor '" + op->tensor->traits.name +
                                       "' was given a second time before its sum was in"));
  }
  if (tensor->op != nullptr) End(tensor);
  tensor->op = std::move(op);
  tensor->since_us = tensor->moved_us = now_us;
  tensor->ask_at_us = options_.stall.FirstQuestion(now_us);
  const bool sums = !Fetches(*tensor->op) && tensor->op->kind != Operation::Kind::kFirstValue;
  if (sums && !tensor->shared->traits.asynchronous) ++tensor->round;
  if (profile_ != nullptr && sums) NoteReady(*tensor->op, now_us);
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

WorkerStreams::Number WorkerStreams::NumberOf(const Operation& op) const {
  const bool coded = op.codec != nullptr && op.coded.data != nullptr;
  return {coded ? op.codec : &PlainCodec(op.tensor->traits.dtype), coded ? op.parameter : 0, 0};
}

// Declares what the server does not know yet.
void WorkerStreams::Say(Link* link, Stream* stream, Part* part) {
  Number number = NumberOf(*stream->op);
  for (const Number& known : part->numbers) {
    if (!known.Is(number)) continue;
    part->number = known.number;
    return;
  }
  part->number = number.number = static_cast<uint32_t>(link->tensors.size());
  part->numbers.push_back(number);
  link->tensors.push_back(stream);
  const TensorTraits& traits = stream->shared->traits;
  const Declaration declared{traits.key,          traits.elements(),    traits.dtype,
                             traits.index,        number.codec->number, number.parameter,
                             traits.asynchronous, stream->row_elements, traits.name};
  link->first.push_back(TextPacket(Kind::kDeclare, part->number, 0, Encode(declared)));
}

void WorkerStreams::Begin(Stream* tensor, int server, int64_t now_us) {
  Part& part = tensor->parts[static_cast<size_t>(server)];
  if (part.share.count == 0) return;
  Link& link = *links_[static_cast<size_t>(server)];
  Say(&link, tensor, &part);
  std::fill(part.received.begin(), part.received.end(), 0);
  part.waiting = part.share.count;
  part.next = 0;
  part.at = 0;
  part.portion = next_portion_++;
  const Operation& op = *tensor->op;
  const auto number = static_cast<uint64_t>(op.number);
  const bool first = op.kind == Operation::Kind::kFirstValue;
  const TensorTraits& traits = tensor->shared->traits;
  trace_.Begin(server, traits.index, Fetches(op) ? number - 1 : number, first, traits.asynchronous);
  if (Fetches(op)) {
    part.next = part.share.count;
    OutPacket fetch = TextPacket(Kind::kFetch, part.number, number, "");
    fetch.header.priority = link.policy->WirePriority(op.priority);
    link.first.push_back(std::move(fetch));
    return;
  }
  trace_.HandedOver(server, traits.index, part.share, op.handed_us != 0 ? op.handed_us : now_us);
  if (options_.trace != nullptr) {
    link.first.push_back(TextPacket(Kind::kNumber, part.number, number, ""));
    link.first.back().header.round = first ? 1 : 0;
  }
  const PolicyOptions& policy = options_.policy;
  uint64_t unit_slots = 1, bytes = 0;
  if (op.kind == Operation::Kind::kRows) {
    for (uint64_t i = 0; i < part.share.count; ++i) bytes += op.sets[part.share.Slot(i)].bytes;
  } else {
    unit_slots = UnitSlots(policy.kind, policy.unit_bytes,
                           tensor->plain().bytes(part.share.of.slot_elements), part.share.count);
    bytes = NumberOf(op).codec->bytes(part.share.Elements());
  }
  link.portions[part.portion] = tensor;
  link.policy->Ready({part.portion, op.priority, part.share.count, unit_slots, bytes}, now_us);
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
  const Operation& op = *tensor->op;
  const uint64_t packet_bytes = link.policy->packet_bytes();
  bool slot_done = false;
  if (op.kind == Operation::Kind::kRows) {
    const uint64_t slot = part.share.Slot(part.next);
    const Buffer& set = op.sets[slot];
    out->header.offset = OffsetOf({slot, part.at});
    out->header.length = static_cast<uint32_t>(std::min(set.bytes - part.at, packet_bytes));
    out->payload = set.data + part.at;
    part.at += out->header.length;
    slot_done = part.at == set.bytes;
  } else {
    const Codec& codec = *NumberOf(op).codec;
    const uint64_t left = part.share.Elements(part.next) - part.at;
    const uint64_t most = std::max<uint64_t>(
        packet_bytes / codec.bytes(codec.together()) * codec.together(), codec.together());
    const uint64_t count = std::min(left, most);
    out->header.offset = part.share.Begin(part.next) + part.at;
    out->header.length = static_cast<uint32_t>(codec.bytes(count));
    out->payload = (codec.plain ? op.src : op.coded.data) + codec.bytes(out->header.offset);
    part.at += count;
    slot_done = count == left;
  }
  out->header.kind = KindOf(op);
  out->header.tensor = part.number;
  out->header.priority = link.policy->WirePriority(op.priority);
  out->header.round = tensor->round;
  out->keep = tensor->op;
  if (slot_done) {
    ++part.next;
    part.at = 0;
  }
  trace_.Sending(server, tensor->shared->traits.index, part.share, slot_done, out);
  link.policy->Sent(portion, out->header.length, slot_done, now_us);
  return true;
}

void WorkerStreams::LoadProfile() {
  if (options_.policy.profile_text.empty()) return;
  const Status status = profile_->Load(options_.policy.profile_text);
  if (!status.ok() && options_.lane == 0) report_(ProfileRefused(status));
}

std::string WorkerStreams::ProfileText() const {
  if (profile_ == nullptr || !profile_->known()) return {};
  return profile_->Text([this](uint64_t key) {
    const auto it = tensors_.find({key, false});
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
      if (part.waiting == 0 || part.numbers.empty()) continue;
      links_[static_cast<size_t>(s)]->first.push_back(TextPacket(Kind::kAsk, part.number, 0, ""));
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
