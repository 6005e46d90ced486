#include "packets/worker_streams.h"

#include <algorithm>
#include <new>

#include "base/node_name.h"
#include "packets/worker_stream.h"

namespace mercury {
namespace {

PacketKind KindOf(const Operation& op) {
  switch (op.kind) {
    case Operation::Kind::kFirstValue:
      return PacketKind::kFirst;
    case Operation::Kind::kPush:
      return PacketKind::kPush;
    case Operation::Kind::kRows:
      return PacketKind::kRows;
    default:
      return PacketKind::kData;
  }
}

}  // namespace

Placement PlacementOf(const Operation& op, uint64_t packet_bytes, const ServerShares& shares) {
  const TensorTraits& d = op.tensor->traits;
  const size_t element_bytes = ElementBytes(d.dtype);
  if (op.kind == Operation::Kind::kRows) {
    return Placement::OfRows(d.key, d.elements(), op.rows.row_bytes / element_bytes, shares);
  }
  return Placement(d.key, d.elements(), element_bytes, packet_bytes, shares);
}

WorkerStreams::WorkerStreams(const WorkerStreamsOptions& options, Report report)
    : options_(options),
      report_(std::move(report)),
      trace_(options.trace, false, options.trace_overhead, options.lanes),
      notes_(options.notes),
      calls_(peers(), options.lanes, AnswersUnits(options.policy.kind) ? 1 : options.lanes,
             options.wake),
      moved_(options.moved) {
  moved_.resize(static_cast<size_t>(peers()), false);
  PolicyOptions policy = options_.policy;
  if (policy.kind == PolicyKind::kProphet) {
    profile_ = std::make_shared<ProphetProfile>(policy.profile_steps);
    LoadProfile();
    policy.profile = profile_;
  }
  if (peers() > servers()) {
    const int leader = options_.hosts.AsServer(options_.hosts.LeaderOf(options_.rank));
    trace_.Call(servers(), TraceNode(TraceRole::kServer, static_cast<uint32_t>(leader)));
  }
  for (int s = 0; s < peers(); ++s) {
    servers_.push_back(std::make_unique<Server>(policy));
    for (int l = 0; l < options_.lanes; ++l) {
      links_.push_back(std::make_unique<LinkState>());
      links_.back()->lane = l;
    }
  }
}

WorkerStreams::~WorkerStreams() = default;

WorkerStreams::Stream* WorkerStreams::StreamOf(const Operation& op) {
  const std::shared_ptr<Tensor>& shared = op.tensor;
  const bool rows = op.kind == Operation::Kind::kRows;
  auto& stream = tensors_[{shared->traits.key, rows}];
  if (stream != nullptr && stream->shared == shared) return stream.get();
  if (stream == nullptr) {
    stream = std::make_unique<Stream>();
    const auto before = rounds_.find({shared->traits.key, rows});
    if (before != rounds_.end()) stream->round = before->second;
  }
  stream->shared = shared;
  const Placement placement = PlacementOf(op, options_.policy.packet_bytes, options_.shares);
  if (rows) stream->row_elements = op.rows.row_bytes / ElementBytes(shared->traits.dtype);
  stream->parts.resize(static_cast<size_t>(peers()));
  std::vector<int> away;
  for (int s = 0; s < peers(); ++s) {
    ServerStream& part = stream->parts[static_cast<size_t>(s)];
    part.share = s < servers() ? Share(placement, s) : Share(placement, away);
    if (!options_.hosts.Beside(options_.rank, s)) away.push_back(s);
    part.received.assign(part.share.count, 0);
    if (options_.keeps_sums) part.kept.resize(part.share.count);
    if (moved_[static_cast<size_t>(s)] && part.numbers.empty()) {
      part.stands.assign(part.share.count, false);
      part.held = part.share.count;
    }
    part.begun.resize(static_cast<size_t>(options_.lanes));
    part.told.resize(static_cast<size_t>(options_.lanes), 0);
  }
  return stream.get();
}

void WorkerStreams::Submit(std::shared_ptr<Operation> op, int64_t now_us) {
  const Turn turn(this);
  const Status failed = failure_.ok() ? op->tensor->failure() : failure_;
  if (!failed.ok()) {
    if (failure_.ok() && options_.host_sums != nullptr) {
      options_.host_sums->Fail(op->tensor->traits, failed, 0);
    }
    return over_.push_back({std::move(op), failed});
  }
  Stream* tensor = StreamOf(*op);
  if (tensor->op != nullptr && !tensor->op->over()) {
    const Status twice = Status::Internal("tensor '" + op->tensor->traits.name +
                                          "' was given a second time before its sum was in");
    return over_.push_back({std::move(op), twice});
  }
  if (tensor->op != nullptr) End(tensor);
  tensor->op = std::move(op);
  tensor->since_us = tensor->moved_us = now_us;
  tensor->ask_at_us = options_.stall.FirstQuestion(now_us);
  const bool sums = !tensor->op->fetches() && tensor->op->kind != Operation::Kind::kFirstValue;
  if (sums && !tensor->shared->traits.asynchronous) ++tensor->round;
  tensor->together = sums && GoesTogether(*tensor);
  if (tensor->together) ++tensor->host_round;
  tensor->workers = 0;
  if (profile_ != nullptr && sums) NoteReady(*tensor->op, now_us);
  tensor->waiting = 0;
  for (int s = 0; s < peers(); ++s) {
    ServerStream& part = tensor->parts[static_cast<size_t>(s)];
    if (Carries(*tensor, s)) tensor->waiting += part.share.count;
    part.ready = ReadySlots(*tensor, s);
  }
  tensor->start = next_portion_++;
  active_[tensor->start] = tensor;
  const Status status = tensor->together ? BeginTogether(tensor) : Status::Ok();
  for (int s = 0; s < peers(); ++s) Begin(tensor, s, now_us);
  if (!status.ok()) FailTogether(tensor, status);
}

// How many of the peer's slots, from the first on, have all that is to be sent of them.
uint64_t WorkerStreams::ReadySlots(const Stream& stream, int peer) const {
  const Share& share = stream.parts[static_cast<size_t>(peer)].share;
  const uint64_t ready = stream.op->ready;
  if (ready >= share.of.elements) return share.count;
  uint64_t least = 0, most = share.count;  // the first slot that is not lies there
  while (least < most) {
    const uint64_t middle = (least + most) / 2;
    const bool there = share.Begin(middle) + share.Elements(middle) <= ready;
    (there ? least : most) = there ? middle + 1 : middle;
  }
  return least;
}

void WorkerStreams::TakeReady(Stream* tensor, int peer, uint64_t slots, int lane, int64_t now_us) {
  ServerStream& part = tensor->parts[static_cast<size_t>(peer)];
  if (slots <= part.ready) return;
  servers_[static_cast<size_t>(peer)]->policy->More(part.portion, slots - part.ready, now_us);
  part.ready = slots;
  calls_.Offer(peer, lane);
}

void WorkerStreams::More(const std::shared_ptr<Operation>& op, int64_t now_us) {
  const Turn turn(this);
  const auto found = tensors_.find({op->tensor->traits.key, false});
  if (found == tensors_.end() || found->second->op != op) return;
  Stream* tensor = found->second.get();
  std::vector<uint64_t> by_host;
  if (tensor->together && options_.host_sums != nullptr) by_host = options_.host_sums->More(*op);
  for (int s = 0; s < peers(); ++s) {
    const auto at = static_cast<size_t>(s);
    if (!Carries(*tensor, s)) continue;
    if (tensor->parts[at].picks) {
      PickReady(s, *tensor, &tensor->parts[at], now_us);
    } else if (SendsForHost(*tensor, s)) {
      if (at < by_host.size()) TakeReady(tensor, s, by_host[at], 0, now_us);
    } else {
      TakeReady(tensor, s, ReadySlots(*tensor, s), 0, now_us);
    }
  }
}

WorkerStreams::Number WorkerStreams::NumberOf(const Stream& stream, int peer) const {
  const int workers =
      SendsForHost(stream, peer) ? options_.hosts.StandsFor(options_.rank, peer) : 1;
  return {CodedFor(stream, peer), static_cast<uint32_t>(workers), 0};
}

// How its elements go to that peer: to its host's leader as they are.
Coded WorkerStreams::CodedFor(const Stream& stream, int peer) const {
  const Operation& op = *stream.op;
  const bool coded = op.codec != nullptr && peer < servers() &&
                     (op.kind == Operation::Kind::kSum || op.kind == Operation::Kind::kPush ||
                      (op.fetches() && op.codec->back));
  return coded ? Coded{op.codec, op.parameter} : Coded{&stream.plain(), 0};
}

// The number by which the peer knows, or will know, the tensor as that.
uint32_t WorkerStreams::FindNumber(int peer, Stream* stream, ServerStream* part, Number number) {
  Server* server = servers_[static_cast<size_t>(peer)].get();
  for (const Number& known : part->numbers) {
    if (known.Is(number)) return known.number;
  }
  number.number = static_cast<uint32_t>(server->tensors.size());
  part->numbers.push_back(number);
  server->tensors.push_back(stream);
  return number.number;
}

// Says what the server may not know yet when the next packet of this link comes.
void WorkerStreams::Declare(LinkState* link, const Stream& stream, const ServerStream& part) {
  if (link->declared.size() > part.number && link->declared[part.number]) return;
  Declare(link, stream,
          *std::find_if(part.numbers.begin(), part.numbers.end(),
                        [&part](const Number& known) { return known.number == part.number; }));
}

void WorkerStreams::Declare(LinkState* link, const Stream& stream, const Number& number) {
  if (link->declared.size() <= number.number) link->declared.resize(number.number + 1, false);
  if (link->declared[number.number]) return;
  const TensorTraits& traits = stream.shared->traits;
  const Declaration declared{traits.key,
                             traits.elements(),
                             traits.dtype,
                             traits.index,
                             number.coded.codec->number,
                             number.coded.parameter,
                             traits.asynchronous,
                             number.workers,
                             stream.row_elements,
                             traits.name};
  link->first.push_back(TextPacket(PacketKind::kDeclare, number.number, 0, Encode(declared)));
  link->declared[number.number] = true;
}

// The same for what is under way: which number in traces it has.
void WorkerStreams::Announce(LinkState* link, const Stream& stream, ServerStream* part, int lane) {
  Declare(link, stream, *part);
  uint64_t& told = part->told[static_cast<size_t>(lane)];
  if (options_.trace == nullptr || told == part->portion) return;
  told = part->portion;
  const auto number = static_cast<uint64_t>(stream.op->number);
  link->first.push_back(TextPacket(PacketKind::kNumber, part->number, number, ""));
  link->first.back().header.round = stream.op->kind == Operation::Kind::kFirstValue ? 1 : 0;
}

void WorkerStreams::Begin(Stream* tensor, int server, int64_t now_us) {
  ServerStream& part = tensor->parts[static_cast<size_t>(server)];
  if (part.share.count == 0) return;
  Server& its = *servers_[static_cast<size_t>(server)];
  std::fill(part.received.begin(), part.received.end(), 0);
  std::fill(part.begun.begin(), part.begun.end(), Begun());
  part.rooms.clear();
  part.coming.clear();
  part.next = part.waiting = 0;
  if (!Carries(*tensor, server)) return;
  part.number = FindNumber(server, tensor, &part, NumberOf(*tensor, server));
  part.waiting = part.share.count;
  part.picks = false;
  const bool sums = !tensor->op->fetches() && !tensor->op->gives_first();
  if (part.held != 0 && sums) PickThoseThatStand(*tensor, &part);
  if (part.held != 0 && !part.said) SayWhereItStands(server, *tensor, &part);
  part.portion = next_portion_++;
  const Operation& op = *tensor->op;
  const auto number = static_cast<uint64_t>(op.number);
  const bool first = op.kind == Operation::Kind::kFirstValue;
  const TensorTraits& traits = tensor->shared->traits;
  trace_.Begin(server, traits.index, op.fetches() ? number - 1 : number, first,
               traits.asynchronous);
  calls_.Offer(server, 0);
  if (op.fetches()) {
    part.next = part.share.count;
    LinkState& link = LinkTo(server, 0);
    Declare(&link, *tensor, part);
    link.first.push_back(FetchOf(*tensor, part, server));
    return;
  }
  trace_.HandedOver(server, traits.index, op.handed_us != 0 ? op.handed_us : now_us);
  const PolicyOptions& policy = options_.policy;
  uint64_t unit_slots = 1, bytes = 0;
  if (op.kind == Operation::Kind::kRows) {
    for (uint64_t i = 0; i < part.share.count; ++i) bytes += op.sets[part.share.Slot(i)].bytes;
  } else {
    unit_slots = UnitSlots(policy.kind, policy.unit_bytes,
                           tensor->plain().bytes(part.share.of.slot_elements), part.share.count);
    bytes = part.share.Total(CodedFor(*tensor, server).codec->bytes);
  }
  its.portions[part.portion] = tensor;
  const uint64_t missing = part.share.count - part.ready;
  its.policy->Ready({part.portion, op.priority, part.share.count, unit_slots, bytes, missing,
                     GoesBySlots(*tensor)},
                    now_us);
  CatchUp(server, *tensor, &part);
}

// Whether its server answers whole slots only (Aggregator::AnswerPart and Keeps).
bool WorkerStreams::GoesBySlots(const Stream& stream) const {
  return options_.deterministic || stream.row_elements != 0 || stream.op->gives_first() ||
         stream.shared->traits.asynchronous;
}

OutPacket WorkerStreams::FetchOf(const Stream& stream, const ServerStream& part, int server) const {
  const Operation& op = *stream.op;
  OutPacket fetch =
      TextPacket(PacketKind::kFetch, part.number, static_cast<uint64_t>(op.number), "");
  const Policy& policy = *servers_[static_cast<size_t>(server)]->policy;
  fetch.header.priority = policy.WirePriority(op.priority);
  return fetch;
}

// The operation is over, well or not.
void WorkerStreams::End(Stream* tensor) {
  for (int s = 0; s < peers(); ++s) {
    Server& server = *servers_[static_cast<size_t>(s)];
    tensor->parts[static_cast<size_t>(s)].rooms.clear();
    const uint64_t portion = tensor->parts[static_cast<size_t>(s)].portion;
    if (server.portions.erase(portion) != 0) server.policy->Forget(portion);
  }
  active_.erase(tensor->start);
  tensor->op.reset();
}

// Its tensor has failed. Packets of it may be under way.
void WorkerStreams::GiveUp(Stream* tensor) {
  std::shared_ptr<Operation> op = tensor->op;
  End(tensor);
  given_up_.Add(op, tensor->shared->failure());
  let_go_.push_back(std::move(op));
}

bool WorkerStreams::Next(int number, int64_t now_us, OutPacket* out) {
  const int server = number / options_.lanes, lane = number % options_.lanes;
  Coding coding;
  {
    const LaneTurn turn(&mutex_, &torn_);
    calls_.Asks(server, lane);
    LinkState& link = LinkTo(server, lane);
    const bool found = !link.first.empty() || NextData(server, lane, now_us, out, &coding);
    if (!link.first.empty()) {  // then data was found, and waits for what comes before it
      *out = std::move(link.first.front());
      link.first.pop_front();
      return true;
    }
    if (!found) calls_.Rests(server, lane);
    if (!found) return false;
  }
  coding.Run();
  return true;
}

// Whether there is data that this link may send now; it is `out`, unless something is to be said
// before it.
bool WorkerStreams::NextData(int server, int lane, int64_t now_us, OutPacket* out, Coding* coding) {
  Server& its = *servers_[static_cast<size_t>(server)];
  uint64_t portion;
  if (lane != 0 && AnswersUnits(options_.policy.kind)) return false;
  if (!failure_.ok() || !its.policy->Next(now_us, &portion)) return false;
  const auto may = [&](uint64_t each) { return MaySend(*its.portions.at(each), server, lane); };
  if (!may(portion) && !its.policy->NextOf(may, now_us, &portion)) return false;
  Stream* tensor = its.portions.at(portion);
  ServerStream& part = tensor->parts[static_cast<size_t>(server)];
  Begun& begun = part.begun[static_cast<size_t>(lane)];
  LinkState& link = LinkTo(server, lane);
  Announce(&link, *tensor, &part, lane);
  if (!link.first.empty()) return true;
  const bool for_host = SendsForHost(*tensor, server);
  if (begun.at == 0) {
    begun.mine = part.Picked(part.next++);
    if (part.picks) part.went[begun.mine] = true;
    if (for_host && !TakeForHost(tensor, &part, &begun)) {
      return NextData(server, lane, now_us, out, coding);
    }
  }
  const Operation& op = *tensor->op;
  const uint64_t packet_bytes = its.policy->packet_bytes();
  bool slot_done = false;
  if (op.kind == Operation::Kind::kRows) {
    const uint64_t slot = part.share.Slot(begun.mine);
    const Buffer& set = op.sets[slot];
    out->header.offset = OffsetOf({slot, begun.at});
    out->header.length = static_cast<uint32_t>(std::min(set.bytes - begun.at, packet_bytes));
    out->payload = set.data + begun.at;
    out->keep = tensor->op;
    begun.at += out->header.length;
    slot_done = begun.at == set.bytes;
  } else {
    const Coded coded = CodedFor(*tensor, server);
    const Codec& codec = *coded.codec;
    const uint64_t left = part.share.Elements(begun.mine) - begun.at;
    const uint64_t count = std::min(left, codec.MostIn(packet_bytes));
    const uint64_t at = part.share.Begin(begun.mine) + begun.at;
    out->header.offset = at;
    out->header.length = static_cast<uint32_t>(codec.bytes(count));
    // A host's copy is as sums are, a worker's own as the tensor is.
    const Codec& memory = for_host ? SumCodec(codec) : tensor->plain();
    out->payload = for_host ? begun.copy.get() + memory.bytes(begun.at) : op.src + memory.bytes(at);
    out->keep = for_host ? std::shared_ptr<const void>(begun.copy) : tensor->op;
    if (&memory != &codec) {
      float* residual = codec.has_residual ? tensor->shared->residual.data() + at : nullptr;
      Block block = coded_.Get(std::max<uint64_t>(out->header.length, 1));
      if (block == nullptr) throw std::bad_alloc();
      *coding = {coded, out->payload, std::move(out->keep), residual, count, block};
      out->payload = block.get();
      out->keep = std::move(block);
    }
    begun.at += count;
    slot_done = count == left;
  }
  out->header.kind = !for_host ? KindOf(op) : begun.wanted ? PacketKind::kData : PacketKind::kPush;
  out->header.tensor = part.number;
  out->header.priority = its.policy->WirePriority(op.priority);
  out->header.round = RoundAt(*tensor, server);
  if (slot_done) begun = Begun();
  trace_.Sending(server, tensor->shared->traits.index, part.share, slot_done, now_us, out);
  its.policy->Sent(portion, out->header.length, slot_done, now_us);
  return true;
}

void WorkerStreams::OnPath(int link, int64_t round_trip_us, double /*bytes_per_second*/) {
  const LaneTurn turn(&mutex_, &torn_);
  servers_[static_cast<size_t>(link / options_.lanes)]->policy->SetRoundTrip(round_trip_us);
}

int64_t WorkerStreams::WakeAt(int link) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_.ok()) return kNever;
  return servers_[static_cast<size_t>(link / options_.lanes)]->policy->WakeAt();
}

// Allocates nothing, and does not rely on the books being complete: memory may be the reason.
void WorkerStreams::Fail(Status status) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.ok()) return;
    failure_ = std::move(status);
    active_.clear();
  }
  // From now on no tensor is added, and no operation.
  for (auto& [key, tensor] : tensors_) {
    if (tensor == nullptr) continue;
    std::shared_ptr<Operation> op;
    {
      // Not by End: the policy may need memory to forget it, and is not asked again.
      const std::lock_guard<std::mutex> lock(mutex_);
      op = std::move(tensor->op);
    }
    if (op != nullptr) op->Finish(failure_);
  }
  given_up_.Finish(failure_);
}

}  // namespace mercury
