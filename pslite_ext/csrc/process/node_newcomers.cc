// Workers, and servers, that come while the job runs: see node.h, and control/membership.h for the
// order of things.
#include "base/log.h"
#include "process/node.h"

namespace mercury {

int Node::Places() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return options_.mercury.workers;
}

bool Node::OnItsWay() const {
  return van_->newcomer() && options_.van.role == Role::kWorker && (!ready_ || outside_);
}

Newcomer Node::NextToLetIn() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (outside_ || !alone_.ok() || !present_.IsFirst(rank())) return {};
  const int ready = present_.Ready();
  return {ready, ready < 0 ? 0 : int{present_.EntryOf(ready)}};
}

void Node::SayAdmission(const Newcomer& newcomer, Admission admission) {
  if (van_ == nullptr) return;
  const auto entry = static_cast<uint8_t>(newcomer.entry);
  van_->SayAdmission(NodeId(Role::kWorker, newcomer.rank), entry, admission);
}

// Without a scheduler nobody says how far others are. Who has let one in cannot go on then: servers
// may wait for that one, which will not come.
bool Node::WaitAdmission(const Newcomer& newcomer, Admission admission, int slice_ms,
                         Status* status) {
  const auto entry = static_cast<uint8_t>(newcomer.entry);
  const std::string who = NodeName(Role::kWorker, newcomer.rank);
  bool there = false, gone = false, alone = false;
  const bool over = Wait(slice_ms, status, [&] {
    there = present_.IsAt(newcomer.rank, entry, admission);
    gone = !present_.IsThere(newcomer.rank, entry);
    alone = !alone_.ok();
    return there || gone || alone;
  });
  if (!over || !status->ok() || there) return over;
  *status = Status::PeerLost(gone ? who + " is gone" : "the scheduler is lost");
  if (gone || newcomer.rank == rank() || admission != Admission::kIn) return true;
  van_->Leave(Status::PeerLost("the scheduler was lost while this worker let " + who + " in"));
  return Wait(slice_ms, status, [] { return false; });
}

void Node::DoWithout(int newcomer, const std::string& why) {
  if (van_ != nullptr) van_->Report(NodeId(Role::kWorker, newcomer), Status::Closed(why));
}

std::string Node::Standing() {
  Worker* worker = Front();
  if (worker == nullptr) return "";
  return std::to_string(numbers_.next()) + "\n" + worker->Standing();
}

Status Node::Enter(const std::string& standing) {
  Worker* worker = Front();
  if (worker == nullptr) return Status::Closed("this process is not a worker of a running job");
  char* end = nullptr;
  const uint64_t next = std::strtoull(standing.c_str(), &end, 10);
  if (*end != '\n') return Status::Corrupt("where other workers stand makes no sense");
  const Status status = worker->Enter(end + 1);
  if (!status.ok()) return status;
  numbers_.GoOnFrom(next);
  const std::lock_guard<std::mutex> lock(mutex_);
  outside_ = false;
  return status;
}

void Node::OnAdmission(const Member& newcomer, Admission admission) {
  const bool worker = RoleOf(newcomer.id) == Role::kWorker;
  int workers = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (worker) present_.Admits(RankOf(newcomer.id), newcomer.entry, admission);
    workers = present_.workers();
    changed_.notify_all();
  }
  const std::string who = NodeName(newcomer.id);
  const bool says = options_.van.role == Role::kScheduler || id_ == newcomer.id;
  if (says && admission == Admission::kComes) {
    Log(LogLevel::kNote, who + " comes to the job from " + newcomer.host);
  }
  if (says && admission == Admission::kIn) {
    Log(LogLevel::kNote,
        who + " is in" +
            (worker ? "; the job goes on with " + std::to_string(workers) + " workers" : ""));
  }
}

}  // namespace mercury
