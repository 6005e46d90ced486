// A server is lost, and another takes its place: the worker says where it stands with each of its
// slots, sends again what nobody has a sum of, and gives sums that others lack (resumption.h).
//
//   slot under way:  held --resumed after the last sum--> sent again
//                    held --resumed after this one--> its sum comes from another worker
#include <algorithm>

#include "packets/resumption.h"
#include "packets/worker_stream.h"

namespace mercury {

void WorkerStreams::Moved(int server, int64_t now_us) {
  const Turn turn(this);
  moved_[static_cast<size_t>(server)] = true;
  for (int lane = 0; lane < options_.lanes; ++lane) {
    LinkState& link = LinkTo(server, lane);
    if (link.op != nullptr) let_go_.push_back(std::move(link.op));
    link = LinkState();
    link.lane = lane;
    calls_.Full(server, lane);
  }
  if (!failure_.ok()) return;
  for (auto& [key, stream] : tensors_) {
    ServerStream& part = stream->parts[static_cast<size_t>(server)];
    if (part.share.count == 0 || !stream->shared->failure().ok()) continue;
    part.stands.assign(part.share.count, false);
    part.held = part.share.count;
    part.said = false;
    part.coming.clear();
    std::fill(part.begun.begin(), part.begun.end(), Begun());
    std::fill(part.told.begin(), part.told.end(), 0);
    if (part.numbers.empty()) continue;  // it has had nothing to do with it yet
    const bool under_way = stream->op != nullptr && Carries(*stream, server);
    SayWhereItStands(server, *stream, &part);
    if (under_way) Restart(server, stream.get(), &part, now_us);
  }
  calls_.Offer(server, 0);
}

// The round of the slot's last sum that this worker has.
uint8_t WorkerStreams::LastSum(const Stream& stream, const ServerStream& part,
                               uint64_t mine) const {
  const bool sums = stream.op != nullptr && !stream.op->fetches() && !stream.op->gives_first();
  const bool awaits = sums && part.received[mine] != ServerStream::kOver;
  return static_cast<uint8_t>(stream.round - (awaits ? 1 : 0));
}

void WorkerStreams::SayWhereItStands(int server, const Stream& stream, ServerStream* part) {
  LinkState& link = LinkTo(server, 0);
  Declare(&link, stream, *part);
  const Operation* op = stream.op.get();
  for (uint64_t i = 0; i < part->share.count; ++i) {
    const bool awaits = op != nullptr && part->received[i] != ServerStream::kOver;
    int32_t standing = 0;
    if (i < part->kept.size() && part->kept[i].sum != nullptr) standing |= Standing::kHasSum;
    if (awaits && (op->writes() || op->pulls_sum())) standing |= Standing::kWantsSum;
    if (!awaits || !op->gives_first()) standing |= Standing::kGaveFirst;
    OutPacket stands = TextPacket(PacketKind::kStands, part->number, part->share.Slot(i), "");
    stands.header.round = LastSum(stream, *part, i);
    stands.header.priority = standing;
    link.first.push_back(std::move(stands));
  }
  part->said = true;
}

// What is under way begins anew, as far as it has not come back.
void WorkerStreams::Restart(int server, Stream* stream, ServerStream* part, int64_t now_us) {
  Server& its = *servers_[static_cast<size_t>(server)];
  if (its.portions.erase(part->portion) != 0) its.policy->Forget(part->portion);
  if (stream->op->fetches()) {
    stream->waiting += part->share.count - part->waiting;
    part->waiting = part->next = part->share.count;
    part->picks = false;
    std::fill(part->received.begin(), part->received.end(), 0);
    LinkTo(server, 0).first.push_back(FetchOf(*stream, *part, server));
    return;
  }
  const Codec& codec = *CodedFor(*stream, server).codec;
  uint64_t slots = 0, bytes = 0;
  part->picked.clear();
  for (uint64_t i = 0; i < part->share.count; ++i) {
    if (part->received[i] == ServerStream::kOver) continue;
    part->received[i] = 0;
    ++slots;
    if (stream->op->gives_first()) part->picked.push_back(i);  // it waits for nobody
    bytes += stream->row_elements != 0 ? stream->op->sets[part->share.Slot(i)].bytes
                                       : codec.bytes(part->share.Elements(i));
  }
  part->next = part->ready = 0;
  part->picks = true;
  part->went.assign(part->share.count, false);
  if (slots == 0) return;
  part->portion = next_portion_++;
  its.portions[part->portion] = stream;
  its.policy->Ready(
      {part->portion, stream->op->priority, slots, 1, bytes, slots, GoesBySlots(*stream)}, now_us);
  PickReady(server, *stream, part, now_us);
}

// An operation begins while slots are held.
void WorkerStreams::PickThoseThatStand(const Stream& stream, ServerStream* part) const {
  part->picks = true;
  part->ready = 0;
  part->picked.clear();
  part->went.assign(part->share.count, false);
  for (uint64_t i = 0; i < part->share.count; ++i) {
    if (part->stands[i]) part->picked.push_back(i);
  }
  while (part->ready < part->picked.size() &&
         part->share.Begin(part->picked[part->ready]) +
                 part->share.Elements(part->picked[part->ready]) <=
             stream.op->ready) {
    ++part->ready;
  }
}

void WorkerStreams::Pick(int server, const Stream& stream, ServerStream* part, uint64_t mine,
                         int64_t now_us) {
  part->picked.push_back(mine);
  PickReady(server, stream, part, now_us);
}

void WorkerStreams::PickReady(int server, const Stream& stream, ServerStream* part,
                              int64_t now_us) {
  uint64_t more = 0;
  while (part->ready < part->picked.size()) {
    const uint64_t mine = part->picked[part->ready];
    if (part->share.Begin(mine) + part->share.Elements(mine) > stream.op->ready) break;
    ++part->ready;
    ++more;
  }
  if (more == 0) return;
  servers_[static_cast<size_t>(server)]->policy->More(part->portion, more, now_us);
  calls_.Offer(server, 0);
}

Status WorkerStreams::TakeResumed(int server, const Header& header, int64_t now_us) {
  Stream* stream = servers_[static_cast<size_t>(server)]->tensors[header.tensor];
  if (!stream->shared->failure().ok() || !failure_.ok()) return Status::Ok();
  ServerStream& part = stream->parts[static_cast<size_t>(server)];
  uint64_t mine = 0;
  const auto corrupt = [&] {
    return Status::Corrupt("tensor '" + stream->shared->traits.name +
                           "': it goes on where this worker does not stand");
  };
  if (!part.share.FindSlot(header.offset, &mine) || part.held == 0 || part.stands[mine]) {
    return corrupt();
  }
  const uint8_t last = LastSum(*stream, part, mine);
  part.stands[mine] = true;
  --part.held;
  const bool under_way = stream->op != nullptr && Carries(*stream, server) &&
                         part.received[mine] != ServerStream::kOver && !stream->op->fetches() &&
                         !stream->op->gives_first();
  if (under_way && header.round == stream->round) {
    part.went[mine] = true;  // the sum comes
    return Status::Ok();
  }
  if (header.round != last) return corrupt();
  if (under_way) Pick(server, *stream, &part, mine, now_us);
  return Status::Ok();
}

// Others have not got it.
Status WorkerStreams::GiveSum(int server, const Header& header) {
  Stream* stream = servers_[static_cast<size_t>(server)]->tensors[header.tensor];
  if (!stream->shared->failure().ok() || !failure_.ok()) return Status::Ok();
  ServerStream& part = stream->parts[static_cast<size_t>(server)];
  uint64_t mine = 0;
  const bool own = part.share.FindSlot(header.offset, &mine) && mine < part.kept.size();
  const uint8_t last = own ? LastSum(*stream, part, mine) : header.round;
  // Who lacked it was lost meanwhile, and what followed came on another lane, sooner than this.
  if (static_cast<int8_t>(last - header.round) > 0) return Status::Ok();
  const bool has = own && part.kept[mine].sum != nullptr && last == header.round;
  if (!has) {
    return Status::Corrupt("tensor '" + stream->shared->traits.name +
                           "': a sum that this worker has not got is wanted of it");
  }
  const KeptSum& kept = part.kept[mine];
  const Number as{{kept.codec, 0}, 1, 0};
  const uint32_t number = FindNumber(server, stream, &part, as);
  LinkState& link = LinkTo(server, 0);
  Declare(&link, *stream, {as.coded, as.workers, number});
  OutPacket given;
  given.header.kind = PacketKind::kGiven;
  given.header.tensor = number;
  given.header.offset = header.offset;
  given.header.length = static_cast<uint32_t>(kept.codec->bytes(part.share.Elements(mine)));
  given.header.round = header.round;
  given.header.priority = kept.workers;
  given.payload = kept.sum.get();
  given.keep = kept.sum;
  link.first.push_back(std::move(given));
  calls_.OfferTo(server, 0);
  return Status::Ok();
}

}  // namespace mercury
