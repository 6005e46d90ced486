// A scheduler that goes on where another was lost: what it wrote down, what it tells everybody
// again, and what they say again, since the other may not have heard it. Runs on the I/O thread,
// but for Begin; see zmq_van.h.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/node_name.h"
#include "control/member_node.h"
#include "control/zmq_van.h"

namespace mercury {

// Of a scheduler: the job begins, or goes on.
Status ZmqVan::Begin() {
  bool there = false;
  JobRecord record;
  if (!options_.journal.empty()) {
    const Status status = ReadRecord(options_.journal, &record, &there);
    if (!status.ok()) return status;
  }
  if (!there) {
    EnterJob(RandomIdentity());
    return Status::Ok();
  }
  const std::string here = options_.scheduler_host + ":" + std::to_string(options_.scheduler_port);
  const std::string there_is = record.address.host + ":" + std::to_string(record.address.port);
  if (there_is != here) {
    return Status::InvalidArgument("MERCURY_JOURNAL=" + options_.journal +
                                   " is of the scheduler at " + there_is +
                                   ", where its nodes look for it, and this one is at " + here +
                                   "; to begin another job, remove it");
  }
  const auto servers =
      std::count_if(record.placed.begin(), record.placed.end(),
                    [](const PlaceRecord& p) { return p.member.role == Role::kServer; });
  if (servers != options_.servers) {
    return Status::InvalidArgument("MERCURY_JOURNAL=" + options_.journal + " is of a job with " +
                                   std::to_string(servers) + " servers, and DMLC_NUM_SERVER is " +
                                   std::to_string(options_.servers) + "; to begin one, remove it");
  }
  life_ = record.life;
  EnterJob(record.job);
  Outbound item;
  item.run = [this, record] { GoOn(record); };
  Post(std::move(item));
  return Status::Ok();
}

// Before anybody is told.
void ZmqVan::WriteDown() {
  const bool goes_on =
      scheduler_membership_->running() && scheduler_membership_->roster().elastic();
  if (options_.journal.empty() || !goes_on) return;
  JobRecord record = scheduler_membership_->Record();
  record.address = {options_.scheduler_host, options_.scheduler_port};
  record.job = job_;
  record.life = life_;
  record.returns = returns_;
  const Status status = WriteRecord(options_.journal, record);
  if (!status.ok() && !cannot_write_) {
    Log(LogLevel::kWarning, status.text() + "; if the scheduler is lost, no other can go on");
  }
  cannot_write_ = !status.ok();
  writes_down_ = status.ok();
}

// The job is over: whoever starts a scheduler now begins another.
void ZmqVan::Unwrite() {
  if (std::exchange(writes_down_, false)) std::remove(options_.journal.c_str());
}

void ZmqVan::GoOn(const JobRecord& record) {
  writes_down_ = true;  // the file is there
  returns_ = record.returns + 1;
  scheduler_membership_->GoOnFrom(record, NowMs());
  const Roster& roster = scheduler_membership_->roster();
  const uint64_t counted = returns_ << kReturnShift;
  for (const Member& m : scheduler_membership_->members()) {
    if (roster.IsLost(m.id)) CountLost(m.id);
    if (roster.IsLost(m.id) || roster.HasLeft(m.id)) continue;
    life_of_[m.id] = m.life;
    sequence_to_[m.id] = counted;
    sequence_from_.CountFrom(m.life, counted);
    Connect(ToNode(m));
    if (over_) return;
    if (!roster.IsNew(m.id)) members_.push_back(m);
  }
  const Status agreed = observer_->OnAgreed(kSchedulerId, scheduler_membership_->settings());
  if (!agreed.ok()) return FailJob(agreed, true);
  ready_ = true;
  WriteDown();
  observer_->OnReady(kSchedulerId);
  Log(LogLevel::kNote, "goes on with a job of " + std::to_string(roster.workers()) +
                           " workers whose scheduler was lost");
  TellAgain();
}

// What some may not have heard.
void ZmqVan::TellAgain() {
  ps::Meta back;
  back.control.cmd = ps::Control::ADD_NODE;
  back.option = kIsBack;
  back.key = returns_;
  back.control.node.push_back(my_node_);
  Broadcast([&](int node) { SendControl(node, back); });
  for (const PlaceRecord& placed : scheduler_membership_->Record().placed) {
    const Member& m = placed.member;
    const bool was_in = placed.presence == Presence::kIn ||
                        (placed.presence == Presence::kLost && m.role == Role::kServer);
    if (was_in && placed.late) {  // who has missed it has not heard whose slots were whose
      const uint64_t before = placed.presence == Presence::kLost ? 1 : 0;
      const ps::Meta in = AdmissionOf(m, Admission::kIn, placed.changed - before);
      Broadcast([&](int node) { SendControl(node, in); });
    }
    if (placed.presence == Presence::kLost) {
      const Status why = Status::PeerLost("it was lost before the scheduler was");
      const Status named = why.By({Blame::kNamed, m.id});
      Broadcast([&](int node) { SendLost(node, m.id, named, placed.changed); });
    } else if (placed.presence == Presence::kLeft) {
      CarryOut({{Action::kDeparted, m.id, "", {}}});
    }
  }
  CarryOut(scheduler_membership_->LoseNewcomers());
}

// Of a node: another scheduler goes on, who has heard nothing of it yet.
void ZmqVan::OnReturn(const ps::Message& message, int64_t now_ms) {
  if (message.meta.sender != kSchedulerId || my_id_ == kNoNode) return;
  // The connection may not know yet that the other end is gone, and what waits on it is of no use.
  dealers_.erase(kSchedulerId);
  Connect(scheduler_);
  if (over_) return;
  sequence_to_[kSchedulerId] = message.meta.key << kReturnShift;
  SendHeartbeat(kSchedulerId);
  CarryOut(node_membership_->Heard(now_ms));
  returns_ = message.meta.key;
  for (const auto& [worker, entry] : finished_) SayFinished(worker, entry);
  if (at_barrier_) SayBarrier();
  for (const auto& [node, reported] : std::map<int, Reported>(reported_)) SayReport(node);
}

void ZmqVan::SayBarrier() {
  ps::Meta meta;
  meta.control.cmd = ps::Control::BARRIER;
  meta.control.barrier_group = ps::kWorkerGroup;
  meta.request = true;
  meta.key = passed_;
  SendControl(kSchedulerId, meta);
}

void ZmqVan::HasFinished(int worker, uint8_t entry) {
  Outbound item;
  item.run = [this, node = NodeId(Role::kWorker, worker), entry] {
    finished_[node] = entry;
    // It may have said so to the scheduler that was lost.
    if (returns_ != 0 && !over_) SayFinished(node, entry);
  };
  Post(std::move(item));
}

void ZmqVan::SayFinished(int worker, uint8_t entry) {
  ps::Meta meta;
  meta.control.cmd = ps::Control::TERMINATE;
  meta.option = kHasFinished;
  for (const Member& m : members_) {
    if (m.id == worker && m.entry == entry) meta.control.node.push_back(ToNode(m));
  }
  SendControl(kSchedulerId, meta);
}

void ZmqVan::OnFinished(const ps::Message& message, int64_t now_ms) {
  if (message.meta.control.node.size() != 1 || RoleOf(message.meta.sender) != Role::kServer) return;
  const ps::Node& node = message.meta.control.node[0];
  if (!scheduler_membership_->HasPlace(ToMember(node, 0, node.id))) return;
  CarryOut(scheduler_membership_->Leave(node.id, Status::Ok(), now_ms));
}

}  // namespace mercury
