#include "packets/aggregator.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/node_name.h"
#include "packets/slot_progress.h"
#include "packets/slot_sum.h"
#include "sums/sum_kernels.h"

namespace mercury {
namespace {

constexpr size_t kAnswersMax = 1024;  // that wait to be sent to a worker who keeps asking
constexpr uint32_t kComplete = SlotProgress::kComplete, kOwed = SlotProgress::kOwed;

std::string Shape(const Declaration& d) {
  return std::to_string(d.elements) + " elements of " + Name(d.dtype);
}

}  // namespace

struct Aggregator::Slot {
  SlotSum sum;
  int complete = 0;         // workers whose copy is in
  uint32_t answerable = 0;  // bytes of the sum under way that all copies have
  uint8_t round = 0;        // rounds that are done, modulo 256
};

struct Aggregator::Tensor {
  Declaration declared;
  int first_worker = 0;
  Share share;
  uint64_t unit_slots = 1;
  std::vector<Slot> slots;
  SlotProgress progress;
  std::vector<uint32_t> unit_ready;  // complete slots, by unit
  std::vector<uint32_t> unit_sent;   // deliberately by worker: slots of the unit under way
  std::vector<int64_t> number_of;    // on each worker's link; -1: not declared there
  int32_t priority = 0;
  Status failed;
};

struct Aggregator::Ready {
  Tensor* tensor = nullptr;
  uint64_t mine = 0;
  Block sum;
  uint32_t sent = 0;
  uint8_t round = 0;
  bool fetched = false;  // a sum that the worker has had before
};

struct Aggregator::Peer {
  explicit Peer(size_t levels_max) : ready(levels_max) {}
  std::vector<Tensor*> tensors;  // by number
  uint64_t slots = 0;            // of all of them
  std::deque<OutPacket> first;   // goes out before any sum
  UrgencyQueue<Ready> ready;
  uint64_t packet_bytes = 0;
  bool departed = false;
  // The packet that is being received.
  std::string text;
  Tensor* tensor = nullptr;
  uint64_t mine = 0;
  uint32_t at = 0, length = 0;
  Block block;
};

Aggregator::Aggregator(const AggregatorOptions& options)
    : options_(options),
      pool_(options.bytes_max, options.lends, options.allocate),
      trace_(options.trace, true, options.trace_overhead) {
  for (int i = 0; i < options_.num_workers; ++i) {
    peers_.push_back(std::make_unique<Peer>(options_.levels_max));
    peers_.back()->packet_bytes = options_.packet_bytes;
  }
}

Aggregator::~Aggregator() = default;

std::string Aggregator::NoMemory(const std::string& what) const {
  const uint64_t cap = pool_.bytes_max();
  const std::string text = NodeName(Role::kServer, options_.server) + " has no memory for ";
  if (cap == 0) return text + what;
  return text + what + " below the cap of " + std::to_string(cap) +
         " bytes (MERCURY_SERVER_BYTES_MAX, shared by the lanes)";
}

Status Aggregator::OnHeader(int worker, const Header& header, int64_t /*now_us*/, char** target) {
  Peer* peer = peers_[static_cast<size_t>(worker)].get();
  peer->tensor = nullptr;
  if (header.kind == Kind::kDeclare) {
    peer->text.assign(header.length, '\0');
    *target = peer->text.data();
    return Status::Ok();
  }
  if (header.kind == Kind::kGoodbye) return Status::Ok();
  if (header.kind != Kind::kData && header.kind != Kind::kFetch && header.kind != Kind::kAsk &&
      header.kind != Kind::kNumber) {
    return Status::Corrupt("a packet that only servers send");
  }
  if (header.tensor >= peer->tensors.size()) {
    return Status::Corrupt("a packet of tensor number " + std::to_string(header.tensor) +
                           ", which it has not declared");
  }
  trace_.Announced(worker, peer->tensors[header.tensor]->declared.index, header);
  return header.kind == Kind::kData ? BeginData(peer, worker, header, target) : Status::Ok();
}

Status Aggregator::BeginData(Peer* peer, int worker, const Header& header, char** target) {
  Tensor* tensor = peer->tensors[header.tensor];
  if (!tensor->failed.ok()) return Status::Ok();  // dropped: the worker will hear why
  const auto corrupt = [&](const std::string& what) {
    return Status::Corrupt("tensor '" + tensor->declared.name + "': " + what);
  };
  uint64_t mine;
  if (!tensor->share.Find(header.offset, &mine)) {
    return corrupt("a packet at " + std::to_string(header.offset) +
                   ", which is beyond its end or on another server");
  }
  Slot& slot = tensor->slots[mine];
  const uint64_t slot_bytes = tensor->share.of.Length(tensor->share.Slot(mine));
  const uint64_t at = header.offset % tensor->share.of.slot_bytes;
  const uint32_t progress = tensor->progress.Of(mine, static_cast<size_t>(worker));
  const auto due = static_cast<uint8_t>(slot.round + 1);
  const bool twice = header.round == due ? progress != kOwed && at < progress
                                         : header.round == slot.round && slot.sum.last() != nullptr;
  if (twice) {
    return corrupt("it sent the piece at " + std::to_string(header.offset) + " twice in round " +
                   std::to_string(header.round) + " (modulo 256)");
  }
  if (header.round != due) {
    return corrupt("a packet of round " + std::to_string(header.round) + " (modulo 256) while " +
                   std::to_string(due) + " is summed");
  }
  // It cannot have the sum yet; and who does not read must not make sums wait for it without end.
  if (progress == kOwed) {
    return corrupt("a packet of round " + std::to_string(header.round) +
                   " (modulo 256) before the sum of the round before was sent");
  }
  if (at > progress) {
    return corrupt("a packet that is out of order, at " + std::to_string(header.offset) +
                   " before all that comes before it");
  }
  if (at + header.length > slot_bytes || (header.length == 0 && slot_bytes != 0)) {
    return corrupt("a packet of " + std::to_string(header.length) + " bytes at " +
                   std::to_string(header.offset) + ", which does not fit its slot");
  }
  if (header.length % kPacketAlignment != 0 && at + header.length != slot_bytes) {
    return corrupt("a packet that ends inside an element");
  }
  tensor->priority = header.priority;
  // A first piece gets room for the whole slot: it becomes the sum.
  const bool whole = slot.sum.Begins(at, options_.deterministic);
  peer->block = pool_.Get(std::max<uint64_t>(whole ? slot_bytes : header.length, 1));
  if (peer->block == nullptr) {
    FailTensor(tensor, Status::Exhausted(NoMemory("its sum")));
    return Status::Ok();
  }
  peer->tensor = tensor;
  peer->mine = mine;
  peer->at = static_cast<uint32_t>(at);
  peer->length = header.length;
  *target = peer->block.get();
  return Status::Ok();
}

Status Aggregator::OnPacket(int worker, const Header& header, int64_t now_us) {
  Peer* peer = peers_[static_cast<size_t>(worker)].get();
  switch (header.kind) {
    case Kind::kDeclare:
      return Declare(worker, header);
    case Kind::kFetch:
      return Fetch(peer, header);
    case Kind::kAsk:
      return Answer(peer, worker, header);
    case Kind::kGoodbye:
      // Why a job has failed is not ours to tell.
      if (header.offset == 0) Departed(worker);
      return Status::Ok();
    default:
      // The tensor may have failed while this packet was under way.
      if (peer->tensor != nullptr && peer->tensor->failed.ok()) EndData(peer, worker, now_us);
      peer->block.reset();
      peer->tensor = nullptr;
      return Status::Ok();
  }
}

Status Aggregator::Declare(int worker, const Header& header) {
  Peer* peer = peers_[static_cast<size_t>(worker)].get();
  Declaration declared;
  Status status = Decode(peer->text.data(), peer->text.size(), &declared);
  if (!status.ok()) return status;
  if (header.tensor != peer->tensors.size()) {
    return Status::Corrupt("tensor '" + declared.name + "' declared as number " +
                           std::to_string(header.tensor) + " instead of " +
                           std::to_string(peer->tensors.size()));
  }
  if (peer->tensors.size() >= options_.tensors_max) {
    return Status::Exhausted("more than " + std::to_string(options_.tensors_max) + " tensors");
  }
  auto& entry = tensors_[declared.key];
  if (entry == nullptr) {
    auto made = std::make_unique<Tensor>();
    made->declared = declared;
    made->first_worker = worker;
    made->number_of.assign(static_cast<size_t>(options_.num_workers), -1);
    const Placement placement(declared.key, declared.bytes(), options_.packet_bytes,
                              options_.shares, options_.lanes);
    made->share = Share(placement, options_.server, options_.lane);
    const uint64_t count = made->share.count;
    made->unit_slots = UnitSlots(options_.policy, options_.unit_bytes, placement.slot_bytes, count);
    try {
      // All of it is kept as the last sum: what exceeds the cap cannot be summed. Nor does a number
      // from the network make us allocate more than that.
      const uint64_t cap = pool_.bytes_max();
      if (cap != 0 && made->share.Bytes() > cap) throw std::bad_alloc();
      made->slots.resize(count);
      made->progress.Resize(count, peers_.size());
      made->unit_ready.assign(count / made->unit_slots + 1, 0);
      made->unit_sent.assign(static_cast<size_t>(options_.num_workers), 0);
    } catch (const std::bad_alloc&) {
      made->slots = std::vector<Slot>();  // gives the memory back
      made->failed =
          Status::Exhausted("tensor '" + declared.name + "': " + NoMemory(Shape(declared)));
    }
    entry = std::move(made);
  }
  Tensor* tensor = entry.get();
  peer->tensors.push_back(tensor);
  peer->slots += tensor->share.count;
  tensor->number_of[static_cast<size_t>(worker)] = header.tensor;
  if (!tensor->failed.ok()) {
    SendError(peer, header.tensor, tensor->failed);
  } else if (declared.elements != tensor->declared.elements ||
             declared.dtype != tensor->declared.dtype) {
    FailTensor(tensor, Status::InvalidArgument(NodeName(Role::kWorker, tensor->first_worker) +
                                               " has " + Shape(tensor->declared) + ", " +
                                               NodeName(Role::kWorker, worker) + " has " +
                                               Shape(declared)));
  }
  return Status::Ok();
}

void Aggregator::EndData(Peer* peer, int worker, int64_t now_us) {
  Tensor* tensor = peer->tensor;
  Slot& slot = tensor->slots[peer->mine];
  const auto slot_bytes =
      static_cast<uint32_t>(tensor->share.of.Length(tensor->share.Slot(peer->mine)));
  if (options_.deterministic) {
    slot.sum.Keep(static_cast<size_t>(worker), peers_.size(), peer->at, peer->length, &peer->block);
  } else {
    slot.sum.Add(tensor->declared.dtype, peer->at, peer->length, &peer->block);
  }
  uint32_t& progress = tensor->progress.Of(peer->mine, static_cast<size_t>(worker));
  const bool last_of_all = progress == slot.answerable;
  progress += peer->length;
  trace_.Received(worker, tensor->declared.index, tensor->share, peer->length,
                  progress >= slot_bytes, now_us);
  if (progress < slot_bytes) {
    if (last_of_all) AnswerPart(tensor, peer->mine);
    return;
  }
  progress = kComplete;
  if (Acknowledges(options_.policy)) {
    // A worker sends the slots of a unit in order, and units one after another.
    uint32_t& of_unit = tensor->unit_sent[static_cast<size_t>(worker)];
    of_unit += slot_bytes;
    if ((peer->mine + 1) % tensor->unit_slots == 0 || peer->mine + 1 == tensor->share.count) {
      const auto number = tensor->number_of[static_cast<size_t>(worker)];
      peer->first.push_back(
          TextPacket(Kind::kAck, static_cast<uint32_t>(number), of_unit, std::string()));
      of_unit = 0;
    }
  }
  if (++slot.complete == options_.num_workers) return SlotComplete(tensor, peer->mine);
  if (last_of_all) AnswerPart(tensor, peer->mine);
  FailIfDeparted(tensor, peer->mine);
}

void Aggregator::AnswerPart(Tensor* tensor, uint64_t mine) {
  if (options_.deterministic || AnswersUnits(options_.policy)) return;
  Slot& slot = tensor->slots[mine];
  const uint32_t all_have = tensor->progress.InAll(mine);
  if (all_have <= slot.answerable) return;
  const uint32_t from = std::exchange(slot.answerable, all_have);
  Enqueue(tensor, mine, slot.sum.under_way(), from, static_cast<uint8_t>(slot.round + 1));
}

void Aggregator::SlotComplete(Tensor* tensor, uint64_t mine) {
  Slot& slot = tensor->slots[mine];
  slot.sum.Finish(tensor->declared.dtype, tensor->share.of.Length(tensor->share.Slot(mine)));
  slot.complete = 0;
  const uint32_t answered = std::exchange(slot.answerable, 0);
  ++slot.round;
  tensor->progress.Summed(mine);
  const uint64_t unit = mine / tensor->unit_slots;
  const uint64_t first = unit * tensor->unit_slots;
  const uint64_t end = std::min(first + tensor->unit_slots, tensor->share.count);
  if (++tensor->unit_ready[unit] < end - first) return;
  tensor->unit_ready[unit] = 0;
  // Of a unit of several slots, nothing is answered before.
  for (uint64_t i = first; i < end; ++i) {
    Enqueue(tensor, i, tensor->slots[i].sum.last(), answered, tensor->slots[i].round);
  }
}

// To every worker, from `from` on; where a part before it still waits, all goes in that one's turn.
void Aggregator::Enqueue(Tensor* tensor, uint64_t mine, const Block& sum, uint32_t from,
                         uint8_t round) {
  for (size_t w = 0; w < peers_.size(); ++w) {
    uint8_t& queued = tensor->progress.Queued(mine, w);
    if (queued == 0) peers_[w]->ready.Push(tensor->priority, {tensor, mine, sum, from, round});
    queued = 1;
  }
}

bool Aggregator::Next(int worker, int64_t /*now_us*/, OutPacket* out) {
  Peer& peer = *peers_[static_cast<size_t>(worker)];
  if (!peer.first.empty()) {
    *out = std::move(peer.first.front());
    peer.first.pop_front();
    return true;
  }
  if (peer.ready.empty()) return false;
  Ready& ready = peer.ready.Front();
  Tensor& tensor = *ready.tensor;
  const uint64_t slot = tensor.share.Slot(ready.mine);
  const uint64_t slot_bytes = tensor.share.of.Length(slot);
  Slot& of = tensor.slots[ready.mine];
  const bool under_way = ready.round == static_cast<uint8_t>(of.round + 1);
  const uint64_t end = under_way ? of.answerable : slot_bytes;
  out->header.kind = Kind::kSum;
  out->header.tensor = static_cast<uint32_t>(tensor.number_of[static_cast<size_t>(worker)]);
  out->header.offset = tensor.share.of.Offset(slot) + ready.sent;
  out->header.length =
      static_cast<uint32_t>(std::min<uint64_t>(end - ready.sent, peer.packet_bytes));
  out->header.priority = peer.ready.FrontPriority();
  out->header.round = ready.round;
  out->payload = ready.sum.get() + ready.sent;
  out->keep = ready.sum;
  if (out->checked && (under_way || of.sum.last() == ready.sum)) {
    out->payload_crc = of.sum.Crc(ready.sum, ready.sent, out->header.length);
  }
  ready.sent += out->header.length;
  trace_.Sending(worker, tensor.declared.index, tensor.share, ready.sent == slot_bytes, out);
  if (ready.sent < end) return true;
  if (!ready.fetched) {
    uint32_t& progress = tensor.progress.Of(ready.mine, static_cast<size_t>(worker));
    if (progress == kOwed) progress = 0;
    tensor.progress.Queued(ready.mine, static_cast<size_t>(worker)) = 0;
  }
  peer.ready.Pop();
  return true;
}

Status Aggregator::Fetch(Peer* peer, const Header& header) {
  Tensor* tensor = peer->tensors[header.tensor];
  if (!tensor->failed.ok()) return Status::Ok();
  if (peer->ready.size() > 2 * peer->slots) {
    return Status::Corrupt("it fetches more than it has tensors for");
  }
  for (uint64_t i = 0; i < tensor->share.count; ++i) {
    const Slot& slot = tensor->slots[i];
    if (slot.sum.last() == nullptr) {
      SendError(peer, header.tensor,
                Status::InvalidArgument("tensor '" + tensor->declared.name +
                                        "' has no sum that could be fetched"));
      return Status::Ok();
    }
    peer->ready.Push(header.priority, {tensor, i, slot.sum.last(), 0, slot.round, true});
  }
  return Status::Ok();
}

Status Aggregator::Answer(Peer* peer, int worker, const Header& header) {
  Tensor* tensor = peer->tensors[header.tensor];
  if (peer->first.size() > 2 * peer->tensors.size() + kAnswersMax) {
    return Status::Corrupt("it asks more than it listens");
  }
  std::string missing(static_cast<size_t>(options_.num_workers), '\0');
  for (uint64_t i = 0; tensor->failed.ok() && i < tensor->share.count; ++i) {
    if (tensor->progress.Of(i, static_cast<size_t>(worker)) != kComplete) continue;
    for (size_t w = 0; w < peers_.size(); ++w) {
      if (tensor->progress.Of(i, w) != kComplete) missing[w] = 1;
    }
  }
  peer->first.push_back(TextPacket(Kind::kAnswer, header.tensor, 0, std::move(missing)));
  return Status::Ok();
}

void Aggregator::SendError(Peer* peer, uint32_t number, const Status& status) {
  peer->first.push_back(TextPacket(Kind::kError, number, 0, Encode(status)));
}

void Aggregator::FailTensor(Tensor* tensor, const Status& status) {
  tensor->failed = status.About(
      {Subject::kTensor, tensor->declared.key, "tensor '" + tensor->declared.name + "'"});
  for (size_t w = 0; w < peers_.size(); ++w) {
    Peer& peer = *peers_[w];
    peer.ready.Remove([tensor](const Ready& ready) { return ready.tensor == tensor; });
    if (peer.tensor == tensor) peer.tensor = nullptr;
    const int64_t number = tensor->number_of[w];
    if (number < 0 || peer.departed) continue;
    SendError(&peer, static_cast<uint32_t>(number), tensor->failed);
  }
  for (Slot& slot : tensor->slots) slot = Slot();
}

void Aggregator::FailIfDeparted(Tensor* tensor, uint64_t mine) {
  for (size_t w = 0; w < peers_.size(); ++w) {
    if (!peers_[w]->departed || tensor->progress.Of(mine, w) == kComplete) continue;
    return FailTensor(
        tensor, Status::PeerLost(NodeName(Role::kWorker, static_cast<int>(w)) +
                                 " has finished and pushes no more, but others wait for it: have "
                                 "all workers the same number of batches?")
                    .By({Blame::kNamed, NodeId(Role::kWorker, static_cast<int>(w))}));
  }
}

void Aggregator::Departed(int worker) {
  peers_[static_cast<size_t>(worker)]->departed = true;
  for (auto& [key, tensor] : tensors_) {
    for (uint64_t i = 0; tensor->failed.ok() && i < tensor->slots.size(); ++i) {
      if (tensor->slots[i].complete != 0) FailIfDeparted(tensor.get(), i);
    }
  }
}

void Aggregator::OnPath(int worker, int64_t /*round_trip_us*/, double bytes_per_second) {
  if (!options_.adapt_packets || bytes_per_second == 0) return;
  SetPacketBytes(worker,
                 PacketBytes(bytes_per_second * options_.num_workers, options_.packet_bytes));
}

void Aggregator::SetPacketBytes(int worker, uint64_t bytes) {
  const uint64_t most = std::max(options_.packet_bytes, kPacketAlignment);
  const uint64_t whole = bytes == 0 ? most : bytes / kPacketAlignment * kPacketAlignment;
  peers_[static_cast<size_t>(worker)]->packet_bytes = std::clamp(whole, kPacketAlignment, most);
}

std::vector<std::pair<int32_t, size_t>> Aggregator::Depths(int worker) const {
  return peers_[static_cast<size_t>(worker)]->ready.Depths();
}

}  // namespace mercury
