// What comes back to a worker: sums, values, rows, and why a tensor has failed.
#include <algorithm>
#include <cstring>

#include "base/little_endian.h"
#include "base/node_name.h"
#include "packets/worker_stream.h"
#include "sums/sparse_sum.h"

namespace mercury {
namespace {

Status TwiceAtOnce(const std::string& name) {
  return Status::Corrupt("tensor '" + name + "': the same of a sum on two links at once");
}

}  // namespace

Status WorkerStreams::OnHeader(int number, const Header& header, int64_t /*now_us*/,
                               char** target) {
  const int server = number / options_.lanes;
  const Turn turn(this);
  LinkState& link = *links_[static_cast<size_t>(number)];
  link.tensor = nullptr;
  link.room.reset();
  link.block.reset();
  if (link.op != nullptr) let_go_.push_back(std::move(link.op));
  switch (header.kind) {
    case PacketKind::kGoodbye:
      // What the leader's other links carry may still be under way.
      if (server == servers() && header.offset == 0 && ++leader_goodbyes_ == options_.lanes) {
        LeaderLeft();
      }
      return Status::Ok();
    case PacketKind::kSum:
    case PacketKind::kCodedSum:
    case PacketKind::kRowSum:
    case PacketKind::kTaken:
    case PacketKind::kError:
    case PacketKind::kAnswer:
    case PacketKind::kAck:
    case PacketKind::kResumed:
    case PacketKind::kWanted:
    case PacketKind::kBehind:
      break;
    default:
      return Status::Corrupt("a packet that only workers send");
  }
  if (header.tensor >= servers_[static_cast<size_t>(server)]->tensors.size()) {
    return Status::Corrupt("a packet of tensor number " + std::to_string(header.tensor) +
                           ", which does not exist");
  }
  if (header.kind == PacketKind::kSum || header.kind == PacketKind::kCodedSum) {
    return BeginSum(server, &link, header, target);
  }
  if (header.kind == PacketKind::kRowSum) return BeginRows(server, &link, header, target);
  link.text.assign(header.length, '\0');
  *target = link.text.data();
  return Status::Ok();
}

Status WorkerStreams::BeginSum(int server, LinkState* link, const Header& header, char** target) {
  Stream* tensor = servers_[static_cast<size_t>(server)]->tensors[header.tensor];
  // Of a tensor that has failed, sums may still come: they are dropped.
  if (!tensor->shared->failure().ok() || !failure_.ok()) return Status::Ok();
  const auto corrupt = [&](const std::string& what) {
    return Status::Corrupt("tensor '" + tensor->shared->traits.name + "': " + what);
  };
  ServerStream& part = tensor->parts[static_cast<size_t>(server)];
  uint64_t mine;
  const bool wanted = tensor->op != nullptr && tensor->row_elements == 0 &&
                      (tensor->op->writes() || SendsForHost(*tensor, server));
  if (!wanted || !part.share.Find(header.offset, &mine) || !part.Awaits(mine)) {
    return corrupt("a sum at " + std::to_string(header.offset) + " that was not asked for");
  }
  const uint64_t slot_elements = part.share.Elements(mine);
  const uint64_t at = header.offset - part.share.Begin(mine);
  const uint8_t round = RoundAt(*tensor, server);
  if (header.round != round) {
    return corrupt("a sum of round " + std::to_string(header.round) + " instead of " +
                   std::to_string(round) + " (modulo 256)");
  }
  if (at < part.received[mine]) {
    return corrupt("it sent the sum at " + std::to_string(header.offset) + " twice in round " +
                   std::to_string(header.round) + " (modulo 256)");
  }
  const Codec& plain = tensor->plain();
  link->coded = {&plain, 0};
  if (header.kind == PacketKind::kCodedSum) link->coded = CodedFor(*tensor, server);
  const Codec& codec = *link->coded.codec;
  if (header.kind == PacketKind::kCodedSum && (codec.plain || !codec.back)) {
    return corrupt("a sum that is coded, which was not asked for");
  }
  uint64_t count = 0;
  if (at != part.received[mine] || at > slot_elements ||
      !codec.Elements(header.length, slot_elements - at, &count) ||
      (count == 0 && slot_elements != 0)) {
    return corrupt("a sum of " + std::to_string(header.length) + " bytes at " +
                   std::to_string(header.offset) + ", which is out of order or does not fit");
  }
  if (part.sent(mine) != 0 && at + count > part.sent(mine)) {
    return corrupt("a sum at " + std::to_string(header.offset) + " of more than was sent");
  }
  if (!SendsForHost(*tensor, server)) {
    *target = tensor->op->dst + plain.bytes(header.offset);
  } else {
    Block& room = part.rooms[mine];
    const Status status = room != nullptr
                              ? Status::Ok()
                              : options_.host_sums->Room(*tensor->op, part.share.Slot(mine), &room);
    if (!status.ok()) {
      FailTogether(tensor, status);
      return Status::Ok();  // what comes of it is dropped
    }
    link->room = room;
    *target = room.get() + plain.bytes(at);
  }
  if (options_.keeps_sums) {
    // Nothing of the worker's own is written over before all of the sum is there.
    const auto [found, fresh] = part.coming.try_emplace(mine);
    Block& coming = found->second.sum;
    if (fresh) {
      found->second.codec = &codec;
      coming = coded_.Get(std::max<uint64_t>(codec.bytes(slot_elements), 1));
    }
    if (coming == nullptr) return Status::Exhausted("no memory for a sum");
    if (found->second.codec != &codec) return corrupt("a sum that is coded in different ways");
    link->room = coming;  // whatever becomes of the operation meanwhile
    *target = coming.get() + codec.bytes(at);
    if (at + count == slot_elements) {
      link->into = tensor->op->dst + plain.bytes(part.share.Begin(mine));
      link->block = coming;
      link->elements = slot_elements;
    }
  } else if (&codec != &plain) {
    link->elements = count;
    link->into = *target;
    link->block = coded_.Get(std::max<uint64_t>(header.length, 1));
    if (link->block == nullptr) return Status::Exhausted("no memory for a sum that is coded");
    *target = link->block.get();
  }
  link->tensor = tensor;
  link->op = tensor->op;
  link->mine = mine;
  link->count = count;
  link->before = at;
  return Status::Ok();
}

Status WorkerStreams::BeginRows(int server, LinkState* link, const Header& header, char** target) {
  Stream* tensor = servers_[static_cast<size_t>(server)]->tensors[header.tensor];
  if (!tensor->shared->failure().ok() || !failure_.ok()) return Status::Ok();
  ServerStream& part = tensor->parts[static_cast<size_t>(server)];
  const RowPlace place = RowPlaceOf(header.offset);
  uint64_t mine;
  const bool wanted = tensor->op != nullptr && tensor->row_elements != 0;
  if (!wanted || !part.share.FindSlot(place.slot, &mine) ||
      part.sent(mine) != ServerStream::kOver || header.round != tensor->round ||
      place.at != part.received[mine]) {
    return Status::Corrupt("tensor '" + tensor->shared->traits.name +
                           "': rows that were not asked for");
  }
  // The first part makes room for the set, and its end may make more.
  for (int lane = 0; lane < options_.lanes; ++lane) {
    const LinkState& other = LinkTo(server, lane);
    const bool same = &other != link && other.tensor == tensor && other.mine == mine;
    if (same) return TwiceAtOnce(tensor->shared->traits.name);
  }
  Buffer& set = tensor->op->answers[place.slot];
  if (place.at == 0) set = Buffer::Allocate(header.length);
  if (set.data == nullptr) return Status::Exhausted("no memory for the rows of a sum");
  if (place.at + header.length > set.bytes || header.length < (place.at == 0 ? 8U : 1U)) {
    return Status::Corrupt("tensor '" + tensor->shared->traits.name +
                           "': rows that do not fit their set");
  }
  link->tensor = tensor;
  link->op = tensor->op;
  link->mine = mine;
  link->before = place.at;
  *target = set.data + place.at;
  return Status::Ok();
}

Status WorkerStreams::OnPacket(int number, const Header& header, int64_t now_us) {
  const int server = number / options_.lanes;
  LinkState& link = *links_[static_cast<size_t>(number)];
  // What a link receives is its own lane's to touch.
  if (link.block != nullptr && link.coded.codec->plain) {
    std::memcpy(link.into, link.block.get(), link.coded.codec->bytes(link.elements));
  } else if (link.block != nullptr) {
    link.coded.codec->add(link.coded.parameter, link.block.get(), link.elements, link.into,
                          Into::kRoom);
  }
  const Turn turn(this);
  link.block.reset();
  Server& its = *servers_[static_cast<size_t>(server)];
  Status status;
  switch (header.kind) {
    case PacketKind::kError:
      TakeError(server, link, header);
      break;
    case PacketKind::kAnswer:
      TakeAnswer(server, link, header, now_us);
      break;
    case PacketKind::kAck:
      its.policy->Acknowledged(
          its.tensors[header.tensor]->parts[static_cast<size_t>(server)].portion, header.offset);
      break;
    case PacketKind::kResumed:
      status = TakeResumed(server, header, now_us);
      break;
    case PacketKind::kWanted:
      status = GiveSum(server, header);
      break;
    case PacketKind::kBehind:
      TakeBehind(server, header);
      break;
    case PacketKind::kTaken:
      status = TakeTaken(server, number % options_.lanes, header, now_us);
      break;
    case PacketKind::kSum:
    case PacketKind::kCodedSum:
      if (link.tensor != nullptr) status = EndSum(server, &link, header, now_us);
      link.room.reset();
      break;
    case PacketKind::kRowSum:
      if (link.tensor != nullptr) status = EndRows(server, &link, header, now_us);
      break;
    default:
      break;
  }
  // What has come may make room for more.
  calls_.Offer(server, number % options_.lanes);
  return status;
}

Status WorkerStreams::EndSum(int server, LinkState* link, const Header& header, int64_t now_us) {
  Stream* tensor = std::exchange(link->tensor, nullptr);
  std::shared_ptr<Operation> op = std::move(link->op);
  if (tensor->op != op) {  // failed meanwhile
    let_go_.push_back(std::move(op));
    return Status::Ok();
  }
  ServerStream& part = tensor->parts[static_cast<size_t>(server)];
  const uint64_t slot_elements = part.share.Elements(link->mine);
  const uint64_t before = link->before, now = before + link->count;
  if (part.received[link->mine] != before) return TwiceAtOnce(tensor->shared->traits.name);
  part.received[link->mine] = now;
  tensor->moved_us = now_us;
  // In bytes as they were sent, of which the policy keeps count.
  const Codec& sent = *CodedFor(*tensor, server).codec;
  servers_[static_cast<size_t>(server)]->policy->Returned(
      part.portion, sent.bytes(now) - sent.bytes(before), now_us);
  trace_.Received(server, tensor->shared->traits.index, part.share, header.length,
                  now >= slot_elements, now_us);
  if (now < slot_elements) return Status::Ok();
  const int workers = header.priority;
  if (options_.keeps_sums && (tensor->op->kind == Operation::Kind::kSum || op->fetches())) {
    part.kept[link->mine] = std::move(part.coming[link->mine]);
    part.kept[link->mine].workers = workers;
  }
  part.coming.erase(link->mine);
  if (SendsForHost(*tensor, server)) GiveToHost(*tensor, &part, link->mine, workers, link->lane);
  SlotOver(tensor, &part, link->mine, workers, now_us);
  return Status::Ok();
}

Status WorkerStreams::EndRows(int server, LinkState* link, const Header& header, int64_t now_us) {
  Stream* tensor = std::exchange(link->tensor, nullptr);
  std::shared_ptr<Operation> op = std::move(link->op);
  if (tensor->op != op) {
    let_go_.push_back(std::move(op));
    return Status::Ok();
  }
  ServerStream& part = tensor->parts[static_cast<size_t>(server)];
  if (part.received[link->mine] != link->before) return TwiceAtOnce(tensor->shared->traits.name);
  const uint64_t slot = part.share.Slot(link->mine);
  const uint64_t row = tensor->row_elements, row_bytes = tensor->plain().bytes(row);
  Buffer& set = op->answers[slot];
  if (part.received[link->mine] == 0) {
    // The first part says how much there is.
    const auto count = Load<uint64_t>(reinterpret_cast<const uint8_t*>(set.data));
    const uint64_t rows = part.share.Elements(link->mine) / row;
    const uint64_t bytes = sizeof(uint64_t) + std::min(count, rows) * (8 + row_bytes);
    if (count > rows || bytes < header.length) {
      return Status::Corrupt("tensor '" + tensor->shared->traits.name +
                             "': a set of more rows than there are");
    }
    if (bytes > set.bytes) {
      Buffer whole = Buffer::Allocate(bytes);
      if (whole.data == nullptr) return Status::Exhausted("no memory for the rows of a sum");
      std::memcpy(whole.data, set.data, header.length);
      set = std::move(whole);
    }
  }
  part.received[link->mine] += header.length;
  tensor->moved_us = now_us;
  const bool whole = part.received[link->mine] == set.bytes;
  trace_.Received(server, tensor->shared->traits.index, part.share, header.length, whole, now_us);
  if (!whole) return Status::Ok();
  // Whoever takes the sum puts each row where its number says.
  const auto [first, end] = part.share.Rows(link->mine, row);
  const SparseSum sum(tensor->shared->traits.dtype, row_bytes, first, end - 1);
  size_t count = 0;
  const Status fits = sum.Check(set.data, set.bytes, &count);
  if (!fits.ok()) {
    return Status::Corrupt("tensor '" + tensor->shared->traits.name + "': " + fits.detail());
  }
  servers_[static_cast<size_t>(server)]->policy->Returned(part.portion, op->sets[slot].bytes,
                                                          now_us);
  SlotOver(tensor, &part, link->mine, header.priority, now_us);
  return Status::Ok();
}

Status WorkerStreams::TakeTaken(int server, int lane, const Header& header, int64_t now_us) {
  Server& its = *servers_[static_cast<size_t>(server)];
  Stream* tensor = its.tensors[header.tensor];
  if (!tensor->shared->failure().ok() || !failure_.ok()) return Status::Ok();
  ServerStream& part = tensor->parts[static_cast<size_t>(server)];
  uint64_t mine;
  const bool for_host = tensor->op != nullptr && SendsForHost(*tensor, server);
  if (tensor->op == nullptr || tensor->row_elements != 0 ||
      !part.share.Find(header.offset, &mine) || part.share.Begin(mine) != header.offset ||
      (for_host ? !part.unwanted[mine] : tensor->op->writes()) ||
      (part.sent(mine) != ServerStream::kOver && !part.Awaits(mine)) || part.received[mine] != 0) {
    return Status::Corrupt("tensor '" + tensor->shared->traits.name +
                           "': it has taken what was not sent");
  }
  tensor->moved_us = now_us;
  const Codec& sent = *CodedFor(*tensor, server).codec;
  its.policy->Returned(part.portion, sent.bytes(part.share.Elements(mine)), now_us);
  if (for_host) GiveToHost(*tensor, &part, mine, header.priority, lane);
  SlotOver(tensor, &part, mine, header.priority, now_us);
  return Status::Ok();
}

// Nothing more may come of a slot, not even nothing.
void WorkerStreams::SlotOver(Stream* stream, ServerStream* part, uint64_t mine, int workers,
                             int64_t now_us) {
  stream->workers = std::max(stream->workers, std::min(workers, options_.num_workers));
  part->received[mine] = ServerStream::kOver;
  if (mine < part->kept.size() && stream->op->kind == Operation::Kind::kPush) part->kept[mine] = {};
  --part->waiting;
  if (stream->op->arrived && stream->op->writes()) {
    arrived_.push_back({stream->op, part->share.Begin(mine), part->share.Elements(mine)});
  }
  if (--stream->waiting != 0) return;
  if (profile_ != nullptr) profile_->Done(stream->shared->traits.key, now_us);
  const Operation::Kind kind = stream->op->kind;
  const bool sum = kind == Operation::Kind::kSum || kind == Operation::Kind::kRows;
  if (sum && stream->workers > 0) stream->shared->Summed(stream->workers);
  over_.push_back({stream->op, Status::Ok()});
  End(stream);
}

void WorkerStreams::TakeError(int server, const LinkState& link, const Header& header) {
  if (!failure_.ok()) return;
  Stream* tensor = servers_[static_cast<size_t>(server)]->tensors[header.tensor];
  Status status;
  Decode(link.text, &status);
  tensor->shared->Fail(status.Saying(status.detail() + " (said " + PeerName(server) + ")"));
  if (options_.host_sums != nullptr) {
    options_.host_sums->Fail(tensor->shared->traits, status, link.lane);
  }
  if (tensor->op != nullptr) GiveUp(tensor);
}

}  // namespace mercury
