// Workers and servers that come once the job has begun: what a node hears and says of them
// (membership.h).
// Runs on the I/O thread, but for Say; see zmq_van.h.
#include <algorithm>
#include <utility>

#include "base/node_name.h"
#include "control/member_node.h"
#include "control/zmq_van.h"

namespace mercury {

void ZmqVan::SayAdmission(int node, uint8_t entry, Admission admission) {
  Outbound item;
  item.run = [this, node, entry, admission] {
    if (over_) return;
    Member member;
    member.role = RoleOf(node);
    member.id = node;
    member.entry = entry;
    SendControl(kSchedulerId, AdmissionOf(member, admission, 0));
  };
  Post(std::move(item));
}

bool ZmqVan::MayBe(int node) const {
  const int places = RoleOf(node) == Role::kServer ? options_.servers : places_;
  return RoleOf(node) != Role::kScheduler && RankOf(node) >= 0 && RankOf(node) < places;
}

ps::Meta ZmqVan::AdmissionOf(const Member& member, Admission admission, uint64_t generation) {
  ps::Meta meta;
  meta.recv_key = generation;
  meta.control.cmd = ps::Control::ADD_NODE;
  meta.option = kFirstAdmission + static_cast<int>(admission);
  meta.control.node.push_back(ToNode(member));
  return meta;
}

void ZmqVan::OnAdmission(const ps::Message& message) {
  const int number = message.meta.option - kFirstAdmission;
  if (message.meta.sender == ps::Meta::kEmpty) return Refuse("its sender is not in the job yet");
  if (number < 0 || number >= kAdmissions || message.meta.control.node.size() != 1) {
    return Refuse("it says nothing of a newcomer that makes sense");
  }
  const auto admission = static_cast<Admission>(number);
  const ps::Node& node = message.meta.control.node[0];
  if (is_scheduler_) {
    if (!scheduler_membership_->HasPlace(ToMember(node, 0, node.id))) return;
    return CarryOut(scheduler_membership_->Admits(message.meta.sender, node.id, admission));
  }
  if (message.meta.sender != kSchedulerId) return;
  if (!MayBe(node.id) || message.meta.recv_key == 0) {
    return Refuse("it speaks of a node for which there is no place");
  }
  const Member member = ToMember(node, 0, node.id);
  const bool before = admission == Admission::kIn && message.meta.recv_key <= began_with_;
  if (before || !node_membership_->IsNews(member, admission)) return;
  if (admission == Admission::kIn) changed_[node.id] = message.meta.recv_key;
  // A worker that comes hears of others that came before it only once they go on.
  if (node.id != my_id_) MakeRoomFor(member, message.meta.recv_key);
  Begins(message.meta.recv_key);
  observer_->OnAdmission(member, admission);
}

// It has the place of one that is lost, or a new one.
void ZmqVan::MakeRoomFor(const Member& member, uint64_t generation) {
  const int node = member.id;
  const auto last = std::find_if(members_.begin(), members_.end(),
                                 [node](const Member& m) { return m.id == node; });
  if (last != members_.end()) {
    if (last->entry == member.entry) return;
    // The scheduler that said so was lost before this node heard it.
    Begins(generation - 1);
    OnLoss(node, Status::PeerLost("another has its place").By({Blame::kNamed, node}));
  }
  members_.erase(std::remove_if(members_.begin(), members_.end(),
                                [node](const Member& m) { return m.id == node; }),
                 members_.end());
  members_.push_back(member);
  CountFound(node);
  life_of_.erase(node);
  reported_.erase(node);
  finished_.erase(node);
}

// Of a scheduler.
void ZmqVan::Admit(const Member& member) {
  CountFound(member.id);
  life_of_[member.id] = member.life;
  sequence_to_[member.id] = 0;
  members_ = scheduler_membership_->members();
  Connect(ToNode(member));
  if (over_) return;
  ps::Meta table;
  table.control.cmd = ps::Control::ADD_NODE;
  table.option = kNewcomersTable;
  table.key = scheduler_membership_->releases();
  table.recv_key = scheduler_membership_->roster().generation();
  table.control.node.push_back(my_node_);
  const Roster& roster = scheduler_membership_->roster();
  for (const Member& m : members_) {
    if (m.id == member.id || !roster.IsOut(m.id)) table.control.node.push_back(ToNode(m));
  }
  SetBody(&table, ToText(scheduler_membership_->settings()));
  SendControl(member.id, table);
  for (const Member& m : members_) {  // a server awaits workers that have said who they are
    const bool awaits = member.role == Role::kServer && m.id != member.id && roster.IsNew(m.id);
    if (awaits) SendControl(member.id, AdmissionOf(m, Admission::kComes, table.recv_key));
  }
  Broadcast([&](int node) {
    if (node != member.id) {
      SendControl(node, AdmissionOf(member, Admission::kComes, table.recv_key));
    }
  });
  observer_->OnAdmission(member, Admission::kComes);
}

void ZmqVan::Tell(int node, Admission admission, uint64_t generation) {
  for (const Member& m : scheduler_membership_->members()) {
    if (m.id != node) continue;
    const ps::Meta meta = AdmissionOf(m, admission, generation);
    Broadcast([&](int to) { SendControl(to, meta); });
    observer_->OnAdmission(m, admission);
  }
}

}  // namespace mercury
