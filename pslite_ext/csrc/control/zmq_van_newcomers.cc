// Workers that come once the job has begun: what a node hears and says of them (membership.h).
// Runs on the I/O thread, but for Say; see zmq_van.h.
#include <algorithm>
#include <utility>

#include "base/node_name.h"
#include "control/member_node.h"
#include "control/zmq_van.h"

namespace mercury {

void ZmqVan::SayAdmission(int node, Admission admission) {
  Outbound item;
  item.run = [this, node, admission] {
    if (over_) return;
    Member member;
    member.role = Role::kWorker;
    member.id = node;
    SendControl(kSchedulerId, AdmissionOf(member, admission));
  };
  Post(std::move(item));
}

ps::Meta ZmqVan::AdmissionOf(const Member& member, Admission admission) {
  ps::Meta meta;
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
    return CarryOut(scheduler_membership_->Admits(message.meta.sender, node.id, admission));
  }
  if (message.meta.sender != kSchedulerId || RoleOf(node.id) != Role::kWorker) return;
  const Member member = ToMember(node, 0, node.id);
  if (!node_membership_->IsNews(member, admission)) return;
  // A newcomer hears of others that came before it only once they go on.
  MakeRoomFor(member);
  observer_->OnAdmission(member, admission);
}

// It has the place of one that is lost, or a new one.
void ZmqVan::MakeRoomFor(const Member& member) {
  const int node = member.id;
  const auto last = std::find_if(members_.begin(), members_.end(),
                                 [node](const Member& m) { return m.id == node; });
  if (last != members_.end()) {
    if (last->entry == member.entry) return;
    // The scheduler that said so was lost before this node heard it.
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
  table.control.node.push_back(my_node_);
  const Roster& roster = scheduler_membership_->roster();
  for (const Member& m : members_) {
    const bool counts = m.id == member.id || m.role == Role::kServer || !roster.IsOut(m.id);
    if (counts) table.control.node.push_back(ToNode(m));
  }
  SetBody(&table, ToText(scheduler_membership_->settings()));
  SendControl(member.id, table);
  for (const int lost : roster.lost()) {
    if (RoleOf(lost) == Role::kServer) {
      SendLost(member.id, lost, Status::PeerLost("it was lost before this node came"));
    }
  }
  Broadcast([&](int node) {
    if (node != member.id) SendControl(node, AdmissionOf(member, Admission::kComes));
  });
  observer_->OnAdmission(member, Admission::kComes);
}

void ZmqVan::Tell(int node, Admission admission) {
  for (const Member& m : scheduler_membership_->members()) {
    if (m.id != node) continue;
    const ps::Meta meta = AdmissionOf(m, admission);
    Broadcast([&](int to) { SendControl(to, meta); });
    observer_->OnAdmission(m, admission);
  }
}

}  // namespace mercury
