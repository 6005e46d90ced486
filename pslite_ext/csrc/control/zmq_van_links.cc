// The links between workers and servers: what link_watch.h decides, carried out. Runs on the I/O
// thread; see zmq_van.h.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/node_name.h"
#include "control/data_sum.h"
#include "control/zmq_van.h"

namespace mercury {
namespace {

std::string WhatIs(const ps::Meta& meta, uint64_t bytes) {
  const std::string what = meta.simple_app ? "command" : meta.push ? "push" : "pull";
  return (meta.request ? "a " : "the answer to a ") + what + " (" + std::to_string(bytes) +
         " bytes, key " + std::to_string(meta.key) + ")";
}

}  // namespace

bool ZmqVan::Watched(int node) const {
  return !is_scheduler_ && node != kSchedulerId && node != kNoNode;
}

bool ZmqVan::MaySpeak(int sender) const {
  if (sender == kNoNode) return is_scheduler_;
  if (lost_.count(sender) != 0) return false;
  if (is_scheduler_) return life_of_.count(sender) != 0;
  const Role role = RoleOf(sender);
  if (role == Role::kScheduler) return sender == kSchedulerId;
  return RankOf(sender) < (role == Role::kWorker ? options_.workers : options_.servers);
}

// Whether anybody waits for them or not: what is not taken adds up.
void ZmqVan::HearConnections() {
  for (auto& [node, dealer] : dealers_) {
    if (Watched(node)) link_ends_[node].progress.Hear(&dealer);
  }
}

// It has left in good order: nothing is expected of it, and nothing more is said to it. Whoever
// listens in its place one day is not called on.
void ZmqVan::Forget(int peer) {
  if (!Watched(peer)) return;
  link_watch_.Forget(peer);
  dealers_.erase(peer);
}

void ZmqVan::WatchLinks(int64_t now_ms) {
  if (is_scheduler_ || !ready_ || over_) return;
  for (int peer : link_watch_.Waiting()) LookAt(peer, now_ms);
  const LinkWatch::Due due = link_watch_.Tick(now_ms);
  for (int peer : due.acknowledge) Acknowledge(peer);
  for (int peer : due.ask) Ask(peer);
  const auto seconds = [](int64_t ms) { return std::to_string((ms + 999) / 1000) + " s"; };
  const int64_t timeout_ms = options_.times.heartbeat_timeout_ms;
  for (int peer : due.silent) {
    LoseLink(peer, Status::PeerLost("nothing that " + NodeName(my_id_) + " sent has arrived for " +
                                    seconds(timeout_ms)));
  }
  for (int peer : due.cut) {
    LoseLink(peer,
             Status::PeerLost("the connection of " + NodeName(my_id_) +
                              " broke, and there was no other for " + seconds(timeout_ms / 2)));
  }
}

// What the peer has acknowledged, and how much of what it has not is on its way.
void ZmqVan::LookAt(int peer, int64_t now_ms) {
  const auto dealer = dealers_.find(peer);
  if (dealer == dealers_.end()) return;
  std::vector<ZmqFrame> frames;
  while (dealer->second.Receive(&frames)) {
    Envelope envelope;
    const Status status = Open(key_, frames[0].data(), frames[0].size(), &envelope);
    const auto life = life_of_.find(peer);
    if (!status.ok() || envelope.kind != EnvelopeKind::kAcknowledgement ||
        envelope.sender != peer || envelope.receiver != my_id_ ||
        (life != life_of_.end() && life->second != envelope.life)) {
      Refuse(status.ok() ? "it acknowledges nothing of this node's" : status.text());
      continue;
    }
    link_watch_.Acknowledged(peer, envelope.sequence, now_ms);
  }
  ConnectionProgress& progress = link_ends_[peer].progress;
  const int64_t bytes = progress.BytesTaken(&dealer->second);
  if (bytes >= 0) link_watch_.Moved(peer, progress.connections(), bytes, now_ms);
  link_watch_.Connected(peer, !progress.down(), now_ms);
}

void ZmqVan::Ask(int peer) {
  const auto dealer = dealers_.find(peer);
  if (dealer == dealers_.end()) return;
  Envelope envelope = NextEnvelope(peer);
  envelope.kind = EnvelopeKind::kQuestion;
  uint8_t frame[kEnvelopeBytes];
  Seal(key_, envelope, nullptr, 0, frame);
  dealer->second.SendCopy(frame, sizeof(frame), false);
}

// On the connection on which its messages come, against their stream.
void ZmqVan::Acknowledge(int peer) {
  Envelope envelope;
  envelope.sender = my_id_;
  envelope.receiver = peer;
  envelope.life = life_;
  envelope.kind = EnvelopeKind::kAcknowledgement;
  envelope.sequence = link_watch_.received(peer);
  uint8_t frame[kEnvelopeBytes];
  Seal(key_, envelope, nullptr, 0, frame);
  const std::string& routing = link_ends_[peer].routing;
  if (router_.SendCopy(routing.data(), routing.size(), true)) {
    router_.SendCopy(frame, sizeof(frame), false);
  }
}

// Messages from it were lost or damaged, or nothing reaches it. Nothing more of it is used.
void ZmqVan::LoseLink(int peer, const Status& status) {
  if (!Watched(peer)) {
    const int node = is_scheduler_ ? peer : my_id_;
    if (node == kNoNode) {
      return FailJob(status.Saying("a new node and " + NodeName(kSchedulerId) +
                                   " cannot reach each other: " + status.detail()),
                     true);
    }
    const std::vector<Party> both = {{RoleOf(node), RankOf(node), ""}, {Role::kScheduler, 0, ""}};
    const Status apart = status.By({Blame::kApart, both});
    const bool may_go = is_scheduler_ && scheduler_membership_->running() &&
                        scheduler_membership_->roster().elastic();
    if (!may_go) return FailJob(apart, true);
    return CarryOut(scheduler_membership_->DoWithout(node, apart));
  }
  link_watch_.Break(peer);
  Report(peer, status);
}

// It counts as received, and somebody may wait for what it asks.
Status ZmqVan::OfNoUse(const std::string& why) const {
  return Status::Corrupt("a message for " + NodeName(my_id_) + " is of no use: " + why);
}

Status ZmqVan::CheckSum(const Envelope& envelope, std::vector<ZmqFrame>& frames,
                        const ps::Meta& meta) const {
  if (!envelope.checked) return Status::Ok();
  DataSum sum;
  for (size_t i = 2; i < frames.size(); ++i) sum.Add(Crc32c(0, frames[i].data(), frames[i].size()));
  if (sum.value() == envelope.data_sum) return Status::Ok();
  return Status::Corrupt(WhatIs(meta, envelope.data_bytes) + " for " + NodeName(my_id_) +
                         " was damaged on the way: its checksum is wrong");
}

}  // namespace mercury
