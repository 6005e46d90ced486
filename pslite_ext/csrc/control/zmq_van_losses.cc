// Nodes that are lost: what a node reports, and what it hears of those without which the job goes
// on. Runs on the I/O thread; see zmq_van.h.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/node_name.h"
#include "control/member_node.h"
#include "control/zmq_van.h"

namespace mercury {
namespace {

// ps-lite's node groups are sums of 1 (scheduler), 2 (servers) and 4 (workers).
int GroupOf(int node_id) {
  switch (RoleOf(node_id)) {
    case Role::kScheduler:
    case Role::kReplica:
      return ps::kScheduler;
    case Role::kServer:
      return ps::kServerGroup;
    case Role::kWorker:
      return ps::kWorkerGroup;
  }
  return 0;
}

}  // namespace

// Padded, so that what follows in a meta is aligned.
void ZmqVan::SetBody(ps::Meta* meta, const std::string& text) {
  meta->body = text.substr(0, kTextBytesMax);
  meta->body.resize((meta->body.size() + 7) / 8 * 8, ' ');
}

void ZmqVan::Report(int node, const Status& status) {
  Outbound item;
  item.run = [this, node, status] {
    const bool out = lost_.count(node) != 0 || departed_.count(node) != 0;
    if (over_ || out || reported_.count(node) != 0) return;
    const bool lost = status.code() == Code::kPeerLost;
    // The scheduler itself waits, to see who of the two is still there.
    reported_[node].status = status.By({lost ? Blame::kLost : Blame::kDid, node});
    SayReport(node);
  };
  Post(std::move(item));
}

void ZmqVan::SayReport(int node) {
  Reported& reported = reported_[node];
  reported.verdict_by_ms = NowMs() + 2 * options_.times.suspicion_ms();
  ps::Meta meta;
  meta.control.cmd = ps::Control::TERMINATE;
  meta.option = kReport;
  for (const Member& m : members_) {
    if (m.id == node) meta.control.node.push_back(ToNode(m));
  }
  SetBody(&meta, Encode(reported.status, kTextBytesMax));
  SendControl(kSchedulerId, meta);
}

void ZmqVan::SendLost(int receiver, int node, const Status& why, uint64_t generation) {
  ps::Meta meta;
  meta.recv_key = generation;
  meta.control.cmd = ps::Control::TERMINATE;
  meta.option = kGoesOn;
  for (const Member& m : scheduler_membership_->members()) {
    if (m.id == node) meta.control.node.push_back(ToNode(m));
  }
  SetBody(&meta, Encode(why, kTextBytesMax));
  SendControl(receiver, meta);
}

void ZmqVan::OnReport(const ps::Message& message, const Status& status, int64_t now_ms) {
  if (message.meta.control.node.empty()) return FailJob(status, true);
  const int node = message.meta.control.node[0].id;
  if (!scheduler_membership_->HasPlace(ToMember(message.meta.control.node[0], 0, node))) return;
  CarryOut(scheduler_membership_->Reported(message.meta.sender, node, status, now_ms));
}

void ZmqVan::NoMoreWork() {
  Outbound item;
  item.run = [this] {
    no_more_work_ = true;
    EndIfAlone();
  };
  Post(std::move(item));
}

void ZmqVan::IsLetIn(int node, uint8_t entry) {
  Outbound item;
  item.run = [this, node, entry] {
    if (node_membership_) node_membership_->IsLetIn(node, entry);
  };
  Post(std::move(item));
}

void ZmqVan::FailedElsewhere(bool have) {
  Outbound item;
  item.run = [this, have] {
    failed_elsewhere_ = have;
    EndIfAlone();
  };
  Post(std::move(item));
}

void ZmqVan::EndIfAlone() {
  if (over_ || !node_membership_ || !node_membership_->alone()) return;
  if (failed_elsewhere_) {
    const Status status =
        Status::PeerLost("it fell silent, and workers say that the job has failed");
    return FailJob(status.By({Blame::kLost, Party{Role::kScheduler, kOnlyOne, ""}}), false);
  }
  if (!no_more_work_) return;
  over_ = true;
  node_membership_->End();
  observer_->OnEnded();
}

// False: it has been.
bool ZmqVan::CountLost(int node) {
  if (!lost_.insert(node).second) return false;
  for (int group = 1; group < 8; ++group) {
    if ((group & GroupOf(node)) != 0) ++lost_count_[static_cast<size_t>(group)];
  }
  return true;
}

// Another has its place.
void ZmqVan::CountFound(int node) {
  if (lost_.erase(node) == 0) return;
  for (int group = 1; group < 8; ++group) {
    if ((group & GroupOf(node)) != 0) --lost_count_[static_cast<size_t>(group)];
  }
}

// A server may have been in since it was lost before, without this node's having heard it.
void ZmqVan::OnToldLoss(int node, const Status& why, uint64_t generation) {
  Begins(generation);
  uint64_t& changed = changed_[node];
  if (RoleOf(node) == Role::kServer && generation > std::max(changed, began_with_)) {
    Member member;
    member.role = Role::kServer;
    member.id = node;
    CountFound(node);
    observer_->OnAdmission(member, Admission::kIn);
  }
  changed = std::max(changed, generation);
  OnLoss(node, why);
}

void ZmqVan::OnLoss(int node, const Status& why) {
  if (node == my_id_) {
    const Status without = why.Saying(why.text() + "; the job goes on without it");
    return FailJob(without.By({Blame::kNamed, my_id_}), false);
  }
  if (!CountLost(node)) return;
  reported_.erase(node);
  Forget(node);
  observer_->OnLost(node, why);
}

}  // namespace mercury
