// Before ranks are given: the scheduler connects to everybody who has registered, so that it
// notices who dies while others are still awaited; and it tells those who come when the start has
// failed. Runs on the I/O thread; see zmq_van.h.
#include <algorithm>
#include <utility>

#include "base/node_name.h"
#include "control/descriptors.h"
#include "control/member_node.h"
#include "control/zmq_van.h"

namespace mercury {

Actions ZmqVan::Tick(int64_t now_ms) {
  if (!is_scheduler_) return node_membership_->Tick(now_ms);
  const bool starved = !ready_ && !DescriptorLeft();
  return scheduler_membership_->Tick(now_ms, starved ? NoDescriptorLeft(NodeName(my_id_)) : "");
}

// `status` is ok where a connection could be made, but not be watched.
Status ZmqVan::CannotConnect(const Status& status) const {
  if (!status.ok() && status.code() != Code::kExhausted) return status;
  // The scheduler says which node it was that had no rank yet.
  if (my_id_ == kNoNode) return Status::Exhausted(NoDescriptorLeft("this node"));
  return Status::PeerLost(NoDescriptorLeft(NodeName(my_id_))).By({Blame::kNamed, my_id_});
}

// To those who are members now, and to nobody else.
void ZmqVan::ConnectGuests() {
  const std::vector<Member>& members = scheduler_membership_->members();
  std::vector<int> gone;
  for (const auto& [id, dealer] : dealers_) {
    const bool stays = std::any_of(members.begin(), members.end(),
                                   [id = id](const Member& m) { return m.guest == id; });
    if (id < kNoNode && !stays) gone.push_back(id);
  }
  for (int id : gone) dealers_.erase(id);
  for (const Member& m : members) {
    if (m.id != kNoNode || dealers_.count(m.guest) != 0) continue;
    ps::Node node = ToNode(m);
    node.id = m.guest;
    Connect(node);
  }
}

// A guest has been given a rank: its connection is that of the rank from now on.
void ZmqVan::TakeIn(const Member& member) {
  auto dealer = dealers_.extract(member.guest);
  if (dealer.empty()) return Connect(ToNode(member));
  dealer.key() = member.id;
  dealers_.insert(std::move(dealer));
}

// A process that dies closes its connections: it is missed sooner than by its heartbeats alone.
void ZmqVan::HearDisconnects(int64_t now_ms) {
  std::vector<std::pair<int, int>> heard;
  for (auto& [id, dealer] : dealers_) {
    if (Watched(id)) continue;  // acknowledgements tell more
    ZmqEvent event;
    while (dealer.NextEvent(&event)) heard.emplace_back(id, event.event);
  }
  for (const auto& [id, event] : heard) {
    if (id < kNoNode) OnGuestEvent(id, event, now_ms);
    if (id < kNoNode || event != ZMQ_EVENT_DISCONNECTED) continue;
    if (scheduler_membership_) CarryOut(scheduler_membership_->Suspect(id, now_ms));
    if (node_membership_) node_membership_->Suspect(now_ms);
  }
}

void ZmqVan::OnGuestEvent(int guest, int event, int64_t now_ms) {
  if (event != ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
    return scheduler_membership_->GuestBroke(guest, now_ms);
  }
  CarryOut(scheduler_membership_->GuestIsThere(guest, now_ms));
}

void ZmqVan::OtherEnded(const Exit& exit) {
  Outbound item;
  item.run = [this, exit] {
    if (!scheduler_membership_) return;
    CarryOut(scheduler_membership_->Ended(exit));
    if (over_) LookForLate(late_hear_);
  };
  Post(std::move(item));
}

void ZmqVan::LookForLate(const Status& failure) {
  if (!scheduler_membership_) return;
  late_hear_ = failure;
  // When the start has timed out, so have they, or soon will.
  awaits_late_ = failure.code() != Code::kTimeout && scheduler_membership_->AwaitsLate();
}

// Who comes when the start has failed is told of it; else he would wait until his patience ends.
void ZmqVan::OnLate(const ps::Message& message) {
  const auto& control = message.meta.control;
  if (!scheduler_membership_ || message.meta.sender != ps::Meta::kEmpty ||
      control.cmd != ps::Control::ADD_NODE || control.node.size() != 1) {
    return;
  }
  const Member member = ToMember(control.node[0], control.msg_sig, -1);
  if (!scheduler_membership_->ComesLate(member)) return;
  Reject(member, late_hear_);
  LookForLate(late_hear_);
}

}  // namespace mercury
