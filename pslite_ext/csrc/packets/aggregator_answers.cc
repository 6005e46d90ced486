// What an aggregator sends back: sums, values that are fetched, and why a tensor has failed.
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/node_name.h"
#include "packets/has_left.h"
#include "packets/summed_tensor.h"

namespace mercury {
namespace {

constexpr size_t kAnswersMax = 1024;  // that wait to be sent to a worker who keeps asking

}  // namespace

void Aggregator::AnswerPart(SummedTensor* tensor, uint64_t mine) {
  if (options_.deterministic || AnswersUnits(options_.policy) || tensor->rows()) return;
  // Parts of a slot's sum keep their order only on one link.
  if (options_.lanes > 1) return;
  Slot& slot = tensor->slots[mine];
  if (slot.begun - slot.out < live_) return;
  const uint32_t all_have = tensor->progress.InAll(mine);
  if (all_have <= slot.answerable) return;
  const uint64_t slot_elements = tensor->share.Elements(mine);
  const uint64_t count = std::min<uint64_t>(all_have, slot_elements);
  if (!slot.sum.Answer(*slot.back, count, slot_elements, &pool_)) {
    return FailTensor(tensor, Status::Exhausted(NoMemory("its sum")));
  }
  const uint32_t from = std::exchange(slot.answerable, all_have);
  const auto round = static_cast<uint8_t>(slot.round + 1);
  Enqueue(tensor, mine, slot.sum.answer(), slot.back, from, round, slot.begun);
}

void Aggregator::SlotComplete(SummedTensor* tensor, uint64_t mine) {
  Slot& slot = tensor->slots[mine];
  Status status;
  if (tensor->rows()) {
    status = slot.rows->Finish(&pool_);
  } else if (!slot.sum.Finish(*slot.back, tensor->share.Elements(mine), &pool_)) {
    status = Status::Exhausted("no memory");
  }
  if (!status.ok()) return FailTensor(tensor, Status::Exhausted(NoMemory("its sum")));
  slot.workers = slot.complete;
  slot.is_first = false;
  slot.begun = slot.complete = slot.out = slot.in = 0;
  slot.in_from_afar = false;
  const uint32_t answered = std::exchange(slot.answerable, 0);
  ++slot.round;
  tensor->progress.Summed(mine);
  const uint64_t unit = mine / tensor->unit_slots;
  const uint64_t first = unit * tensor->unit_slots;
  const uint64_t end = std::min(first + tensor->unit_slots, tensor->share.count);
  if (++tensor->unit_ready[unit] < end - first) return;
  tensor->unit_ready[unit] = 0;
  // Of a unit of several slots, nothing is answered before.
  for (uint64_t i = first; i < end && tensor->failed.ok(); ++i) {
    Slot& done = tensor->slots[i];
    if (tensor->rows()) {
      Enqueue(tensor, i, done.rows->value(), nullptr, answered, done.round, done.workers);
    } else {
      Enqueue(tensor, i, done.sum.value(), &done.sum.value_codec(), answered, done.round,
              done.workers);
    }
    GiveWaiting(tensor, i);
  }
}

// To everyone who has sent a copy, from `from` on; where a part before it still waits, all goes in
// that one's turn.
void Aggregator::Enqueue(SummedTensor* tensor, uint64_t mine, const Block& sum, const Codec* codec,
                         uint32_t from, uint8_t round, int workers) {
  const Slot& slot = tensor->slots[mine];
  const bool done = round == slot.round;
  for (size_t w = 0; w < peers_.size(); ++w) {
    if (tensor->progress.Of(mine, w) == 0) continue;
    if (peers_[w]->out) {
      if (done) tensor->progress.Forget(mine, w);
      continue;
    }
    if (tensor->progress.Quiet(mine, w) != 0) {
      if (!done) continue;
      tensor->progress.Quiet(mine, w) = 0;
      tensor->progress.Of(mine, w) = 0;
      SayTaken(tensor, mine, static_cast<int>(w), workers);
      continue;
    }
    uint8_t& queued = tensor->progress.Queued(mine, w);
    const uint64_t bytes = tensor->rows() ? slot.rows->value_bytes() : 0;
    if (queued == 0) {
      Queue(static_cast<int>(w), tensor->priority,
            {tensor, mine, sum, codec, from, round, workers, false, bytes});
    }
    queued = 1;
  }
}

void Aggregator::SayTaken(SummedTensor* tensor, uint64_t mine, int worker, int workers) {
  const auto number = tensor->number_of[static_cast<size_t>(worker)];
  OutPacket taken =
      TextPacket(PacketKind::kTaken, static_cast<uint32_t>(number), tensor->share.Begin(mine), "");
  taken.header.priority = workers;
  Send(worker, std::move(taken));
}

// Before any sum.
void Aggregator::Send(int worker, OutPacket packet) {
  peers_[static_cast<size_t>(worker)]->first.push_back(std::move(packet));
  calls_.Offer(worker, lane_);
}

void Aggregator::Queue(int worker, int32_t priority, Ready ready) {
  peers_[static_cast<size_t>(worker)]->ready.Push(priority, std::move(ready));
  calls_.Offer(worker, lane_);
}

// As the number by which it asks says, or plain.
void Aggregator::GiveValue(SummedTensor* tensor, uint64_t mine, int worker, int32_t priority) {
  if (!tensor->failed.ok()) return;
  const Slot& slot = tensor->slots[mine];
  const auto w = static_cast<size_t>(worker);
  const Named& named = peers_[w]->tensors[static_cast<size_t>(tensor->number_of[w])];
  Block value = slot.sum.value();
  const Codec* codec = &slot.sum.value_codec();
  if (codec != named.coded.codec && !codec->plain) {
    value = slot.sum.PlainValue(tensor->share.Elements(mine), &pool_);
    codec = &tensor->plain();
  }
  if (value == nullptr) return FailTensor(tensor, Status::Exhausted(NoMemory("its sum")));
  Queue(worker, priority,
        {tensor, mine, std::move(value), codec, 0, slot.round, slot.workers, true, 0});
}

void Aggregator::GiveWaiting(SummedTensor* tensor, uint64_t mine) {
  for (const int worker : std::exchange(tensor->slots[mine].waiting, {})) {
    GiveValue(tensor, mine, worker, tensor->priority);
  }
}

bool Aggregator::Next(int number, int64_t now_us, OutPacket* out) {
  const int worker = number / options_.lanes, lane = number % options_.lanes;
  const LaneTurn turn(&mutex_, &torn_);
  calls_.Asks(worker, lane);
  Peer& peer = *peers_[static_cast<size_t>(worker)];
  UrgencyQueue<Ready>::Position place;
  if (!peer.first.empty()) {
    *out = std::move(peer.first.front());
    peer.first.pop_front();
  } else if (peer.ready.Find(
                 [lane](const Ready& ready) { return ready.lane < 0 || ready.lane == lane; },
                 &place)) {
    Ready& ready = peer.ready.At(place);
    ready.lane = lane;
    out->header.tensor =
        static_cast<uint32_t>(ready.tensor->number_of[static_cast<size_t>(worker)]);
    out->header.priority = ready.workers;
    out->header.round = ready.round;
    out->keep = ready.sum;
    const bool all = ready.tensor->rows() ? NextRows(peer, worker, &ready, now_us, out)
                                          : NextSum(peer, worker, &ready, now_us, out);
    if (all) {
      Sent(ready, worker);
      peer.ready.Erase(place);
    }
  } else {
    calls_.Rests(worker, lane);
    return false;
  }
  return true;
}

void Aggregator::OnFull(int number, int64_t /*now_us*/) {
  if (options_.lanes == 1) return;
  const int worker = number / options_.lanes, lane = number % options_.lanes;
  const LaneTurn turn(&mutex_, &torn_);
  calls_.Full(worker, lane);
  const Peer& peer = *peers_[static_cast<size_t>(worker)];
  UrgencyQueue<Ready>::Position place;
  const auto free = [](const Ready& ready) { return ready.lane < 0; };
  if (!peer.first.empty() || peer.ready.Find(free, &place)) calls_.Offer(worker, lane);
}

bool Aggregator::NextSum(const Peer& peer, int worker, Ready* ready, int64_t now_us,
                         OutPacket* out) {
  SummedTensor& tensor = *ready->tensor;
  const Codec& codec = *ready->codec;
  const uint64_t slot_elements = tensor.share.Elements(ready->mine);
  Slot& of = tensor.slots[ready->mine];
  const bool under_way =
      !tensor.declared.asynchronous && ready->round == static_cast<uint8_t>(of.round + 1);
  const uint64_t end = under_way ? of.answerable : slot_elements;
  const uint64_t count = std::min(end - ready->sent, codec.MostIn(peer.packet_bytes));
  const uint64_t at = codec.bytes(ready->sent);
  out->header.kind = codec.plain ? PacketKind::kSum : PacketKind::kCodedSum;
  out->header.offset = tensor.share.Begin(ready->mine) + ready->sent;
  out->header.length = static_cast<uint32_t>(codec.bytes(count));
  out->payload = ready->sum.get() + at;
  if (out->checked && (under_way || of.sum.value() == ready->sum)) {
    out->checks = of.sum.Checks(ready->sum);
    out->at = static_cast<uint32_t>(at);
  }
  ready->sent += count;
  trace_.Sending(worker, tensor.declared.index, tensor.share, ready->sent == slot_elements, now_us,
                 out);
  return ready->sent >= end;
}

bool Aggregator::NextRows(const Peer& peer, int worker, Ready* ready, int64_t now_us,
                          OutPacket* out) {
  SummedTensor& tensor = *ready->tensor;
  out->header.kind = PacketKind::kRowSum;
  out->header.offset = OffsetOf({tensor.share.Slot(ready->mine), ready->sent});
  out->header.length =
      static_cast<uint32_t>(std::min(ready->bytes - ready->sent, peer.packet_bytes));
  out->payload = ready->sum.get() + ready->sent;
  ready->sent += out->header.length;
  trace_.Sending(worker, tensor.declared.index, tensor.share, ready->sent == ready->bytes, now_us,
                 out);
  return ready->sent == ready->bytes;
}

// All that is ready of it: the worker may send its next copy of that slot.
void Aggregator::Sent(const Ready& ready, int worker) {
  if (ready.fetched) {
    Slot& slot = ready.tensor->slots[ready.mine];
    slot.fetched = slot.fetched || !peers_[static_cast<size_t>(worker)]->is_new;
    return;
  }
  SlotProgress& progress = ready.tensor->progress;
  uint32_t& its = progress.Of(ready.mine, static_cast<size_t>(worker));
  if (its == SlotProgress::kOwed) its = 0;
  progress.Queued(ready.mine, static_cast<size_t>(worker)) = 0;
}

Status Aggregator::Fetch(int worker, const Header& header) {
  const Peer* peer = peers_[static_cast<size_t>(worker)].get();
  SummedTensor* tensor = peer->tensors[header.tensor].tensor;
  if (!tensor->failed.ok()) return Status::Ok();
  if (tensor->rows()) return Status::Corrupt("it fetches rows");
  if (peer->ready.size() > 2 * peer->slots) {
    return Status::Corrupt("it fetches more than it has tensors for");
  }
  tensor->number_of[static_cast<size_t>(worker)] = header.tensor;
  for (uint64_t i = 0; i < tensor->share.count && tensor->failed.ok(); ++i) {
    std::vector<int>& waiting = tensor->slots[i].waiting;
    if (std::find(waiting.begin(), waiting.end(), worker) != waiting.end()) {
      return Status::Corrupt("it fetches again what it waits for");
    }
    // A newcomer takes what is there, or will be.
    const bool stands = peer->is_new || Stands(*tensor, i);
    if (stands && tensor->slots[i].sum.value() != nullptr) {
      GiveValue(tensor, i, worker, header.priority);
    } else if (!stands || peer->is_new) {
      waiting.push_back(worker);
    } else if (peers_[0]->out && tensor->slots[i].round == 0 && tensor->resumptions.empty()) {
      FailTensor(tensor, NoFirstValue());
    } else {
      waiting.push_back(worker);
      if (!tensor->resumptions.empty()) AskForValue(tensor, i);
    }
  }
  return Status::Ok();
}

Status Aggregator::Answer(int worker, const Header& header) {
  const Peer* peer = peers_[static_cast<size_t>(worker)].get();
  SummedTensor* tensor = peer->tensors[header.tensor].tensor;
  const auto answers = std::count_if(
      peer->first.begin(), peer->first.end(),
      [](const OutPacket& packet) { return packet.header.kind == PacketKind::kAnswer; });
  if (static_cast<size_t>(answers) > 2 * peer->tensors.size() + kAnswersMax) {
    return Status::Corrupt("it asks more than it listens");
  }
  const bool of_host = !options_.ranks.empty();
  const int last = of_host ? options_.ranks.back() : options_.num_workers - 1;
  std::string missing(static_cast<size_t>(last) + 1, '\0');
  for (uint64_t i = 0; tensor->failed.ok() && i < tensor->share.count; ++i) {
    const std::vector<int>& waiting = tensor->slots[i].waiting;
    // The first value is the first worker's to give.
    if (std::find(waiting.begin(), waiting.end(), worker) != waiting.end()) missing[0] = 1;
    for (size_t w = 0; w < peers_.size() && !Stands(*tensor, i); ++w) {
      if (!peers_[w]->out && !tensor->resumptions[i].HasSaid(w)) missing[w] = 1;
    }
    if (tensor->progress.Of(i, static_cast<size_t>(worker)) != SlotProgress::kComplete) continue;
    for (size_t w = 0; w < peers_.size(); ++w) {
      if (peers_[w]->out) continue;
      const bool in =
          of_host && w == 0 ? tensor->own != nullptr : IsIn(*tensor, i, static_cast<int>(w));
      if (!in) missing[static_cast<size_t>(RankOfPeer(static_cast<int>(w)))] = 1;
    }
  }
  Send(worker, TextPacket(PacketKind::kAnswer, header.tensor, 0, std::move(missing)));
  return Status::Ok();
}

bool Aggregator::IsIn(const SummedTensor& tensor, uint64_t mine, int worker) const {
  const auto complete = [&](int of) {
    return tensor.progress.Of(mine, static_cast<size_t>(of)) == SlotProgress::kComplete;
  };
  if (complete(worker)) return true;
  const int sender = options_.hosts.Sender(worker, options_.server);
  return sender != worker && complete(sender) &&
         tensor.progress.StandsFor(mine, static_cast<size_t>(sender)) > 1;
}

// What a worker says of a tensor that its host's workers could not sum.
Status Aggregator::Failed(int worker, const Receiving& link, const Header& header) {
  const std::vector<Named>& known = peers_[static_cast<size_t>(worker)]->tensors;
  if (header.tensor >= known.size() || known[header.tensor].tensor == nullptr) {
    return Status::Corrupt("an error of a tensor that it has not declared");
  }
  if (!options_.hosts.Leads(worker) && !options_.resumes) {
    return Status::Corrupt("a packet that only leaders send");
  }
  SummedTensor* tensor = known[header.tensor].tensor;
  Status status;
  Decode(link.text, &status);
  if (tensor->failed.ok()) FailTensor(tensor, status);
  return Status::Ok();
}

void Aggregator::SendError(int worker, uint32_t number, const Status& status) {
  Send(worker, TextPacket(PacketKind::kError, number, 0, Encode(status)));
}

void Aggregator::FailTensor(SummedTensor* tensor, const Status& status) {
  tensor->failed = status.About(
      {Subject::kTensor, tensor->declared.key, "tensor '" + tensor->declared.name + "'"});
  for (size_t w = 0; w < peers_.size(); ++w) {
    Peer& peer = *peers_[w];
    peer.ready.Remove([tensor](const Ready& ready) { return ready.tensor == tensor; });
    const int64_t number = tensor->number_of[w];
    if (number < 0 || peer.departed) continue;
    SendError(static_cast<int>(w), static_cast<uint32_t>(number), tensor->failed);
  }
  for (const auto& link : links_) {
    if (link->named.tensor == tensor) link->named = Named();
  }
  if (std::exchange(tensor->own, nullptr) != nullptr) {
    news_.push_back({tensor->declared.key, 0, 0, 0, tensor->failed});
  }
  for (Slot& slot : tensor->slots) slot = Slot();
  kept_ -= std::exchange(tensor->kept, 0);
}

void Aggregator::FailIfDeparted(SummedTensor* tensor, uint64_t mine) {
  if (options_.elastic) return;
  for (size_t w = 0; w < peers_.size() && tensor->failed.ok(); ++w) {
    if (!peers_[w]->departed || IsIn(*tensor, mine, static_cast<int>(w))) continue;
    return FailTensor(tensor, HasLeft(RankOfPeer(static_cast<int>(w))));
  }
}

void Aggregator::Leaves(int worker) {
  if (options_.elastic) return DropNow(worker);
  peers_[static_cast<size_t>(worker)]->departed = true;
  for (auto& [key, tensor] : tensors_) {
    for (uint64_t i = 0; tensor->failed.ok() && i < tensor->slots.size(); ++i) {
      const bool begun = tensor->slots[i].complete != 0 || tensor->own != nullptr;
      if (begun) FailIfDeparted(tensor.get(), i);
    }
  }
}

void Aggregator::OnPath(int number, int64_t /*round_trip_us*/, double bytes_per_second) {
  if (!options_.adapt_packets || bytes_per_second == 0) return;
  const int worker = number / options_.lanes;
  const LaneTurn turn(&mutex_, &torn_);
  std::vector<double>& rates = peers_[static_cast<size_t>(worker)]->rates;
  rates[static_cast<size_t>(number % options_.lanes)] = bytes_per_second;
  const double rate = std::accumulate(rates.begin(), rates.end(), 0.0);
  const std::vector<int> all = options_.hosts.Senders(options_.server, options_.num_workers);
  const auto senders = std::count_if(
      all.begin(), all.end(), [this](int w) { return !peers_[static_cast<size_t>(w)]->out; });
  SetBytes(worker, PacketBytes(rate * static_cast<double>(senders), options_.packet_bytes));
}

void Aggregator::SetPacketBytes(int worker, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  SetBytes(worker, bytes);
}

void Aggregator::SetBytes(int worker, uint64_t bytes) {
  const uint64_t most = std::max(options_.packet_bytes, kPacketAlignment);
  const uint64_t whole = bytes == 0 ? most : bytes / kPacketAlignment * kPacketAlignment;
  peers_[static_cast<size_t>(worker)]->packet_bytes = std::clamp(whole, kPacketAlignment, most);
}

size_t Aggregator::tensors() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return tensors_.size();
}

int Aggregator::AwaitedPermille(int worker) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return awaited_.permille(worker);
}

std::vector<std::pair<int32_t, size_t>> Aggregator::Depths(int worker) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return peers_[static_cast<size_t>(worker)]->ready.Depths();
}

}  // namespace mercury
