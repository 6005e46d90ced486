#include "packets/aggregator.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/node_name.h"
#include "packets/summed_tensor.h"

namespace mercury {
namespace {

constexpr size_t kToldMax = 1024;  // that wait to be sent to a worker, beside one for each slot
constexpr uint32_t kComplete = SlotProgress::kComplete, kOwed = SlotProgress::kOwed;

Status OthersFirst(const Declaration& declared) {
  return Corrupt(declared, "a first value that is not one worker's, in order");
}

}  // namespace

Aggregator::Aggregator(const AggregatorOptions& options)
    : options_(options),
      levels_workers_(LevelsWorkers(options)),
      pool_(options.bytes_max, options.lends, options.allocate),
      trace_(options.trace, true, options.trace_overhead, options.lanes),
      awaited_(options.ranks.empty() ? options.num_workers : 0, options.slow),
      calls_(options.num_workers, options.lanes, options.lanes, options.wake),
      live_(options.num_workers) {
  if (!options_.ranks.empty()) trace_.SumsHost();
  for (int i = 0; i < options_.num_workers; ++i) {
    trace_.Call(i, TraceNode(TraceRole::kWorker, static_cast<uint32_t>(RankOfPeer(i))));
    peers_.push_back(std::make_unique<Peer>(options_.levels_max));
    peers_.back()->packet_bytes = options_.packet_bytes;
    peers_.back()->rates.resize(static_cast<size_t>(options_.lanes), 0);
    for (int l = 0; l < options_.lanes; ++l) links_.push_back(std::make_unique<Receiving>());
  }
  for (const int worker : options_.absent) {
    Peer& peer = *peers_[static_cast<size_t>(worker)];
    peer.out = peer.departed = true;
    peer.is_new = options_.new_ones.count(worker) != 0;
    --live_;
  }
}

Aggregator::~Aggregator() = default;

std::string Aggregator::NoMemory(const std::string& what) const {
  const uint64_t cap = pool_.bytes_max();
  const std::string self = options_.ranks.empty() ? NodeName(Role::kServer, options_.server)
                                                  : NodeName(Role::kWorker, options_.ranks[0]);
  const std::string text = self + " has no memory for ";
  if (cap == 0) return text + what;
  return text + what + " below the cap of " + std::to_string(cap) +
         " bytes (MERCURY_SERVER_BYTES_MAX)";
}

Status Aggregator::OnHeader(int number, const Header& header, int64_t /*now_us*/, char** target) {
  const int worker = number / options_.lanes;
  const LaneTurn turn(&mutex_, &torn_);
  Receiving* link = links_[static_cast<size_t>(number)].get();
  lane_ = number % options_.lanes;
  link->named = Named();
  const Peer& peer = *peers_[static_cast<size_t>(worker)];
  if (peer.out && !peer.is_new) return Status::Closed("the job goes on without it");
  if (!MaySay(peer, header.kind)) return Status::Corrupt("a packet before it was let in");
  switch (header.kind) {
    case PacketKind::kDeclare:
    case PacketKind::kError:
      link->text.assign(header.length, '\0');
      *target = link->text.data();
      return Status::Ok();
    case PacketKind::kGoodbye:
      return Status::Ok();
    case PacketKind::kData:
    case PacketKind::kPush:
    case PacketKind::kFirst:
    case PacketKind::kRows:
    case PacketKind::kFetch:
    case PacketKind::kAsk:
    case PacketKind::kNumber:
      break;
    case PacketKind::kStands:
    case PacketKind::kGiven:
      if (options_.resumes) break;
      return Status::Corrupt("a packet that only another server takes");
    default:
      return Status::Corrupt("a packet that only servers send");
  }
  const std::vector<Named>& known = peer.tensors;
  if (header.tensor >= known.size() || known[header.tensor].tensor == nullptr) {
    return Status::Corrupt("a packet of tensor number " + std::to_string(header.tensor) +
                           ", which it has not declared");
  }
  const Named& named = known[header.tensor];
  trace_.Announced(worker, named.tensor->declared.index, header,
                   named.tensor->declared.asynchronous);
  if (!options_.ranks.empty() &&
      (header.kind == PacketKind::kFirst || header.kind == PacketKind::kFetch)) {
    return Corrupt(named.tensor->declared, "a packet that only servers take");
  }
  if (header.length == 0 &&
      (header.kind == PacketKind::kFetch || header.kind == PacketKind::kAsk ||
       header.kind == PacketKind::kNumber || header.kind == PacketKind::kStands)) {
    return Status::Ok();
  }
  if (!named.tensor->failed.ok()) return Status::Ok();  // dropped: the worker will hear why
  if (header.kind == PacketKind::kGiven) {
    link->named = named;
    return BeginGiven(link, worker, header, target);
  }
  if ((header.kind == PacketKind::kRows) != named.tensor->rows()) {
    return Corrupt(named.tensor->declared, "rows and whole arrays for one number");
  }
  named.tensor->number_of[static_cast<size_t>(worker)] = header.tensor;
  link->named = named;
  return named.tensor->rows() ? BeginRows(link, worker, header, target)
                              : BeginData(link, worker, header, target);
}

// That nobody's copy is in the sum twice, once by itself and once in what stands for its host.
Status Aggregator::CheckCounted(const SummedTensor& tensor, uint64_t mine, int worker,
                                int workers) const {
  const Hosts& hosts = options_.hosts;
  if (!hosts.Follows(worker) && !hosts.Leads(worker)) return Status::Ok();
  const int leader = hosts.LeaderOf(worker);
  for (const int other : hosts.Workers(worker)) {
    const auto o = static_cast<size_t>(other);
    // One of the two is the leader, whose copy may stand for the other's.
    if (other == worker || (worker != leader && other != leader)) continue;
    if (!tensor.progress.Takes(mine, o)) continue;
    const int stands_for = worker == leader ? workers : tensor.progress.StandsFor(mine, o);
    if (stands_for <= 1) continue;
    return Corrupt(tensor.declared, "a copy of " +
                                        NodeName(Role::kWorker, std::max(worker, other)) +
                                        ", which is in its host's, too");
  }
  return Status::Ok();
}

// Of a part of a copy, which begins at `at` of its slot.
Status Aggregator::CheckRound(const SummedTensor& tensor, uint64_t mine, int worker, uint64_t at,
                              const Header& header) const {
  const Slot& slot = tensor.slots[mine];
  if (!Stands(tensor, mine)) {
    return Corrupt(tensor.declared, "a packet before it is known where all workers stand");
  }
  const uint32_t progress = tensor.progress.Of(mine, static_cast<size_t>(worker));
  const auto due = static_cast<uint8_t>(tensor.declared.asynchronous ? 0 : slot.round + 1);
  const bool twice = header.round == due ? progress != kOwed && at < progress
                                         : header.round == slot.round && slot.round != 0;
  if (twice) {
    return Corrupt(tensor.declared, "it sent the piece at " + std::to_string(header.offset) +
                                        " twice in round " + std::to_string(header.round) +
                                        " (modulo 256)");
  }
  if (header.round != due) {
    return Corrupt(tensor.declared, "a packet of round " + std::to_string(header.round) +
                                        " (modulo 256) while " + std::to_string(due) +
                                        " is summed");
  }
  // It cannot have the sum yet; and who does not read must not make sums wait for it without end.
  if (progress == kOwed) {
    return Corrupt(tensor.declared, "a packet of round " + std::to_string(header.round) +
                                        " (modulo 256) before the sum of the round before was "
                                        "sent");
  }
  if (at > progress) {
    return Corrupt(tensor.declared, "a packet that is out of order, at " +
                                        std::to_string(header.offset) +
                                        " before all that comes before it");
  }
  return Status::Ok();
}

Status Aggregator::BeginData(Receiving* link, int worker, const Header& header, char** target) {
  SummedTensor* tensor = link->named.tensor;
  const Coded& coded = link->named.coded;
  uint64_t mine;
  if (!tensor->share.Find(header.offset, &mine)) {
    return Corrupt(tensor->declared, "a packet at " + std::to_string(header.offset) +
                                         ", which is beyond its end or on another server");
  }
  Slot& slot = tensor->slots[mine];
  const uint64_t slot_elements = tensor->share.Elements(mine);
  const uint64_t at = header.offset - tensor->share.Begin(mine);
  const bool first = header.kind == PacketKind::kFirst;
  if (!first) {
    Status status = CheckRound(*tensor, mine, worker, at, header);
    if (status.ok() && at == 0) status = CheckCounted(*tensor, mine, worker, link->named.workers);
    if (!status.ok()) return status;
  }
  uint64_t count = 0;
  const bool fits = at % coded.codec->together == 0 && at <= slot_elements &&
                    coded.codec->Elements(header.length, slot_elements - at, &count) &&
                    (count != 0 || slot_elements == 0);
  if (!fits) {
    return Corrupt(tensor->declared, "a packet of " + std::to_string(header.length) + " bytes at " +
                                         std::to_string(header.offset) +
                                         ", which does not fit its slot");
  }
  const Peer& peer = *peers_[static_cast<size_t>(worker)];
  const bool told = first || (tensor->declared.asynchronous && header.kind == PacketKind::kPush);
  if (told && peer.first.size() > 2 * peer.slots + kToldMax) {
    return Corrupt(tensor->declared, "it sends more than it hears of");
  }
  if (first) {
    if (at == 0) slot.giver = worker;
    if (at == 0) slot.given = 0;
    const bool its = slot.giver == worker && at == slot.given && coded.codec->plain;
    if (!its) return OthersFirst(tensor->declared);
  }
  tensor->priority = header.priority;
  const bool whole = slot.sum.Begins(at, coded, Keeps(*tensor, header.kind));
  const uint64_t bytes = whole ? coded.codec->bytes(slot_elements) : header.length;
  link->block = pool_.Get(std::max<uint64_t>(bytes, 1));
  if (link->block == nullptr) {
    FailTensor(tensor, Status::Exhausted(NoMemory("its sum")));
    link->named = Named();
    return Status::Ok();
  }
  link->mine = mine;
  link->at = static_cast<uint32_t>(at);
  link->count = static_cast<uint32_t>(count);
  *target = link->block.get();
  return Status::Ok();
}

bool Aggregator::Keeps(const SummedTensor& tensor, PacketKind kind) const {
  return kind == PacketKind::kFirst || options_.deterministic || tensor.declared.asynchronous;
}

Status Aggregator::OnPacket(int number, const Header& header, int64_t now_us) {
  SummedTensor* adds_to = nullptr;
  uint64_t mine = 0;
  Status status;
  {
    const LaneTurn turn(&mutex_, &torn_);
    status = TakePacket(number, header, now_us, &adds_to, &mine);
  }
  if (adds_to != nullptr) AddArrived(number % options_.lanes, adds_to, mine);
  TellAbove(number % options_.lanes);
  return status;
}

// `adds_to`: it is to be added to the sum of that slot.
Status Aggregator::TakePacket(int number, const Header& header, int64_t now_us,
                              SummedTensor** adds_to, uint64_t* mine) {
  const int worker = number / options_.lanes;
  Receiving* link = links_[static_cast<size_t>(number)].get();
  lane_ = number % options_.lanes;
  const Peer& peer = *peers_[static_cast<size_t>(worker)];
  if (peer.out && !peer.is_new) return Status::Ok();
  switch (header.kind) {
    case PacketKind::kDeclare:
      return Declare(worker, *link, header);
    case PacketKind::kFetch:
      return Fetch(worker, header);
    case PacketKind::kAsk:
      return Answer(worker, header);
    case PacketKind::kStands:
      return peer.is_new ? Status::Ok() : Resume(worker, header);
    case PacketKind::kGiven:
      return EndGiven(link, worker, header);
    case PacketKind::kError:
      return Failed(worker, *link, header);
    case PacketKind::kGoodbye: {
      // Why a job has failed is not ours to tell. What other links carry may still be under way.
      if (peer.is_new) return Status::Ok();
      int& goodbyes = peers_[static_cast<size_t>(worker)]->goodbyes;
      if (header.offset == 0 && ++goodbyes == options_.lanes) Leaves(worker);
      return Status::Ok();
    }
    default:
      break;
  }
  // The tensor may have failed while this packet was under way.
  Status status;
  SummedTensor* const tensor = link->named.tensor;
  bool adds = false;
  if (tensor != nullptr && tensor->failed.ok()) {
    status = tensor->rows() ? EndRows(link, worker, header, now_us)
                            : EndData(link, worker, header, now_us, &adds);
  }
  *mine = link->mine;
  if (adds) *adds_to = tensor;
  link->block.reset();
  link->named = Named();
  return status;
}

Status Aggregator::EndData(Receiving* link, int worker, const Header& header, int64_t now_us,
                           bool* adds) {
  SummedTensor* tensor = link->named.tensor;
  const Coded& coded = link->named.coded;
  Slot& slot = tensor->slots[link->mine];
  const auto w = static_cast<size_t>(worker);
  const uint64_t slot_elements = tensor->share.Elements(link->mine);
  const bool first = header.kind == PacketKind::kFirst;
  const bool asynchronous = tensor->declared.asynchronous;
  uint32_t& progress = first ? slot.given : tensor->progress.Of(link->mine, w);
  // Another link may have brought the same meanwhile.
  if (first && (slot.giver != worker || slot.given != link->at)) {
    return OthersFirst(tensor->declared);
  }
  const int workers = link->named.workers;
  Status still = first ? Status::Ok() : CheckRound(*tensor, link->mine, worker, link->at, header);
  if (still.ok() && !first && link->at == 0) {
    still = CheckCounted(*tensor, link->mine, worker, workers);
  }
  if (!still.ok()) return still;
  const bool sums = !first && !asynchronous;
  const bool begins = sums && link->at == 0;
  if (begins && !Begins(tensor, link->mine, worker, link->named, header.kind)) return Status::Ok();
  const bool last_of_all = progress == slot.answerable;
  const bool whole = progress + link->count >= slot_elements;
  const bool keeps = Keeps(*tensor, header.kind), apart = !keeps && options_.lanes > 1;
  bool room = true;
  if (keeps && !slot.sum.GoesOn(w, coded, link->at)) {
    return Corrupt(tensor->declared, "parts of one copy that are coded in different ways");
  }
  if (keeps) {
    slot.sum.Keep(w, peers_.size(), coded, link->at, link->count, &link->block);
  } else if (apart) {
    slot.arrived.push_back(
        {coded, worker, link->at, link->count, std::move(link->block), whole, workers});
    *adds = !std::exchange(slot.adds, true);
  } else {
    room = slot.sum.Add(coded, link->at, link->count, slot_elements, &link->block, &pool_);
  }
  if (room && whole && asynchronous && !first) room = slot.sum.Apply(w, slot_elements, &pool_);
  if (!room) {
    FailTensor(tensor, Status::Exhausted(NoMemory("its sum")));
    return Status::Ok();
  }
  progress += link->count;
  if (sums) Level(tensor, worker, *link, header);
  trace_.Received(worker, tensor->declared.index, tensor->share, header.length, whole, now_us);
  if (whole && sums) CopyCame(&slot, worker, workers, now_us);
  if (!whole) {
    if (last_of_all && sums) AnswerPart(tensor, link->mine);
    return Status::Ok();
  }
  Acknowledge(tensor, link->mine, worker, coded.codec->bytes(slot_elements));
  if (first) {
    EndFirst(tensor, link->mine, worker);
  } else if (asynchronous) {
    Applied(tensor, link->mine, worker, header.kind);
  } else {
    progress = kComplete;
    if (!apart) CopyComplete(tensor, link->mine, workers, last_of_all);
  }
  return Status::Ok();
}

// A worker sends the slots of a unit in order, and units one after another.
void Aggregator::Acknowledge(SummedTensor* tensor, uint64_t mine, int worker, uint64_t bytes) {
  if (!Acknowledges(options_.policy)) return;
  uint32_t& of_unit = tensor->unit_sent[static_cast<size_t>(worker)];
  of_unit += static_cast<uint32_t>(bytes);
  if ((mine + 1) % tensor->unit_slots != 0 && mine + 1 != tensor->share.count) return;
  const auto number = tensor->number_of[static_cast<size_t>(worker)];
  Send(worker, TextPacket(PacketKind::kAck, static_cast<uint32_t>(number), of_unit, std::string()));
  of_unit = 0;
}

// The first part of a copy is in. Whether it may be added to the others.
bool Aggregator::Begins(SummedTensor* tensor, uint64_t mine, int worker, const Named& named,
                        PacketKind kind) {
  Slot& slot = tensor->slots[mine];
  const Codec& back = named.coded.codec->sent_back();
  if (slot.begun == 0) slot.back = &back;
  if (slot.back != &back) {
    FailTensor(tensor,
               Status::InvalidArgument(NodeName(Role::kWorker, RankOfPeer(worker)) +
                                       " wants its sum as " + back.name + ", another worker as " +
                                       slot.back->name + ": all workers must send it alike"));
    return false;
  }
  slot.begun += named.workers;
  const auto w = static_cast<size_t>(worker);
  tensor->progress.StandsFor(mine, w) = static_cast<uint16_t>(named.workers);
  // Before any part of the sum can be answered.
  tensor->progress.Quiet(mine, w) = kind == PacketKind::kPush ? 1 : 0;
  return true;
}

void Aggregator::CopyComplete(SummedTensor* tensor, uint64_t mine, int workers, bool last_of_all) {
  Slot& slot = tensor->slots[mine];
  slot.complete += workers;
  if (!options_.ranks.empty()) {
    if (AllOthersAreIn(slot)) return OthersComplete(tensor, mine);
    return FailIfDeparted(tensor, mine);
  }
  MERCURY_CHECK(slot.complete <= options_.num_workers);
  if (AllAreIn(slot)) return SlotComplete(tensor, mine);
  if (last_of_all) AnswerPart(tensor, mine);
  FailIfDeparted(tensor, mine);
}

// What comes from another host takes its time: it is waited for only if others' have come from
// afar.
void Aggregator::CopyCame(Slot* slot, int worker, int workers, int64_t now_us) {
  if (!options_.ranks.empty()) return;
  const bool beside = options_.hosts.Beside(worker, options_.server);
  slot->in += workers;
  if (slot->in < live_) {
    slot->in_from_afar = slot->in_from_afar || !beside;
    slot->came_us = now_us;
    return;
  }
  const bool alike = beside || slot->in_from_afar;
  awaited_.Came(worker, alike ? slot->came_us : now_us, slot->summed_us, now_us);
  slot->in = 0;
  slot->in_from_afar = false;
  slot->summed_us = now_us;
}

void Aggregator::EndFirst(SummedTensor* tensor, uint64_t mine, int worker) {
  Slot& slot = tensor->slots[mine];
  slot.sum.Begin(static_cast<size_t>(worker));
  slot.giver = -1;
  slot.is_first = true;
  slot.fetched = false;
  SayTaken(tensor, mine, worker, 0);
  GiveWaiting(tensor, mine);
}

// A copy has changed the value of an asynchronous tensor.
void Aggregator::Applied(SummedTensor* tensor, uint64_t mine, int worker, PacketKind kind) {
  uint32_t& progress = tensor->progress.Of(mine, static_cast<size_t>(worker));
  progress = 0;
  if (kind == PacketKind::kPush) {
    SayTaken(tensor, mine, worker, 0);
  } else {
    progress = kOwed;
    const Slot& slot = tensor->slots[mine];
    Queue(worker, tensor->priority,
          {tensor, mine, slot.sum.value(), &slot.sum.value_codec(), 0, slot.round, 0});
  }
  GiveWaiting(tensor, mine);
}

}  // namespace mercury
