// A worker whose host's workers are summed before their copies leave it: what goes together, what a
// leader sends and gives, what a follower loses with its leader.
#include <cstring>

#include "base/node_name.h"
#include "packets/has_left.h"
#include "packets/worker_stream.h"

namespace mercury {

std::string WorkerStreams::PeerName(int peer) const {
  return peer < servers() ? NodeName(Role::kServer, peer)
                          : NodeName(Role::kWorker, options_.hosts.LeaderOf(options_.rank));
}

// Whether its copies leave the host in one with others: what can be coded only by each worker for
// itself, and rows, would be more in one.
bool WorkerStreams::GoesTogether(const Stream& stream) const {
  const Codec* codec = stream.op->codec;
  const bool in_one = (codec == nullptr || codec->back) && stream.row_elements == 0 &&
                      !stream.shared->traits.asynchronous;
  return in_one && (options_.host_sums != nullptr || peers() > servers());
}

// Whether the operation under way has to do with that peer.
bool WorkerStreams::Carries(const Stream& stream, int peer) const {
  if (!options_.hosts.Follows(options_.rank)) return true;
  if (peer == servers()) return stream.together;
  return !stream.together || options_.hosts.Beside(options_.rank, peer);
}

bool WorkerStreams::SendsForHost(const Stream& stream, int peer) const {
  return stream.together && options_.host_sums != nullptr &&
         !options_.hosts.Beside(options_.rank, peer);
}

uint8_t WorkerStreams::RoundAt(const Stream& stream, int peer) const {
  return peer < servers() ? stream.round : stream.host_round;
}

Status WorkerStreams::BeginTogether(Stream* tensor) {
  if (options_.host_sums == nullptr) return leader_left_;
  std::vector<uint64_t> ready(static_cast<size_t>(servers()), 0);
  const Status status = options_.host_sums->Begin(tensor->op, tensor->round, &ready);
  for (int s = 0; s < servers(); ++s) {
    const auto at = static_cast<size_t>(s);
    if (!SendsForHost(*tensor, s)) continue;
    tensor->parts[at].ready = ready[at];
    tensor->parts[at].unwanted.assign(tensor->parts[at].share.count, false);
  }
  return status;
}

// The host's workers cannot sum it: the servers are told, as others wait for the host's copy.
void WorkerStreams::FailTogether(Stream* tensor, const Status& status) {
  for (int s = 0; s < servers() && options_.host_sums != nullptr; ++s) {
    const ServerStream& part = tensor->parts[static_cast<size_t>(s)];
    if (part.share.count == 0 || options_.hosts.Beside(options_.rank, s)) continue;
    LinkState& link = LinkTo(s, 0);
    Declare(&link, *tensor, part);
    link.first.push_back(TextPacket(PacketKind::kError, part.number, 0, Encode(status)));
    calls_.OfferTo(s, 0);
  }
  tensor->shared->Fail(status.About({Subject::kTensor, tensor->shared->traits.key,
                                     "tensor '" + tensor->shared->traits.name + "'"}));
  GiveUp(tensor);
}

void WorkerStreams::HostReady(uint64_t key, int server, uint64_t slots, uint8_t round, int lane,
                              int64_t now_us) {
  const Turn turn(this);
  const auto found = tensors_.find({key, false});
  if (found == tensors_.end()) return;
  Stream* tensor = found->second.get();
  if (tensor->op != nullptr && tensor->round == round) {
    TakeReady(tensor, server, slots, lane, now_us);
  }
}

void WorkerStreams::HostFailed(uint64_t key, const Status& status) {
  const Turn turn(this);
  if (!failure_.ok()) return;
  const auto found = tensors_.find({key, false});
  if (found == tensors_.end() || found->second->op == nullptr) return;
  FailTogether(found->second.get(), status);
}

// The host's copy of the slot that a lane begins; false: it could not be made.
bool WorkerStreams::TakeForHost(Stream* tensor, ServerStream* part, Begun* begun) {
  const Status status = options_.host_sums->Take(*tensor->op, part->share.Slot(begun->mine),
                                                 &begun->copy, &begun->wanted);
  part->unwanted[begun->mine] = status.ok() && !begun->wanted;
  if (!status.ok()) FailTogether(tensor, status);
  return status.ok();
}

// A slot's sum is in, for all of the host: in its room, or nobody wanted it.
void WorkerStreams::GiveToHost(const Stream& stream, ServerStream* part, uint64_t mine, int workers,
                               int lane) {
  const auto room = part->rooms.find(mine);
  const Block sum = room != part->rooms.end() ? room->second : nullptr;
  if (room != part->rooms.end()) part->rooms.erase(room);
  const Operation& op = *stream.op;
  if (op.writes() && sum != nullptr) {
    const Codec& plain = stream.plain();
    std::memcpy(op.dst + plain.bytes(part->share.Begin(mine)), sum.get(),
                plain.bytes(part->share.Elements(mine)));
  }
  options_.host_sums->Give(op, part->share.Slot(mine), sum, workers, lane);
}

// Sums that the leader was to make are made no more.
void WorkerStreams::LeaderLeft() {
  if (!leader_left_.ok() || !failure_.ok()) return;
  leader_left_ = HasLeft(options_.hosts.LeaderOf(options_.rank));
  std::vector<Stream*> lost;
  for (const auto& [start, tensor] : active_) {
    if (tensor->together && tensor->parts.back().waiting != 0) lost.push_back(tensor);
  }
  for (Stream* tensor : lost) FailTogether(tensor, leader_left_);
}

}  // namespace mercury
