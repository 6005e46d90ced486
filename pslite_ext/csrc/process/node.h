// This process as one node of one job: its van, its worker or server half, and its fate.
//
// Thread-safety: all functions from any thread. Lifetime: one job per process; the singleton is
// never destroyed, so that threads that outlive main find it whole. Invariants: the first failure
// sticks and reaches every waiter and every pending operation. A forked child is in no job: it has
// none of the threads, and a lock may be held forever.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "control/zmq_van.h"
#include "packets/mercury_van.h"
#include "process/node_options.h"
#include "process/workers_present.h"
#include "transport/classic_path.h"
#include "worker/worker.h"

namespace mercury {

// A worker that comes while the job runs: how many have had its place before tells it from them.
struct Newcomer {
  int rank = -1, entry = 0;
};

class Node : public VanObserver {
 public:
  static Node& Get();

  // Begins to join; WaitReady tells when everybody is in. `told`: names of the settings that are
  // not defaults.
  Status Start(const Settings& settings, const std::set<std::string>& told);
  // Leaves the job (unless `why` is ok, it fails for everybody) and stops the van.
  void Finish(const Status& why);
  // The same once the process ends and its exit code is known: any but 0 fails the job.
  // If `code` > 0, it replaces an exit status of 0 or 1; if `over_chosen`, any that the script has
  // chosen.
  void FinishAtExit(int code, bool over_chosen);
  // The scheduler is told that another process has ended; false: it does not listen yet.
  bool OtherEnded(const Exit& exit);
  // Of a scheduler: the start has failed, and some may still come who do not know.
  bool awaits_late();

  // Each waits at most `slice_ms`; false: not yet. A failed job is an answer too.
  bool WaitReady(int slice_ms, Status* status);
  bool WaitEnd(int slice_ms, Status* status);
  bool WaitBarrier(int slice_ms, Status* status);
  void EnterBarrier();

  Status failure();
  // The job has failed, and the log says so.
  bool failed() const { return failed_; }
  // It has, and for what another node did: the log of that one says more.
  bool failed_elsewhere() const { return failed_elsewhere_; }
  int rank() const { return RankOf(id_); }
  // Once ready: the workers that share this worker's host, ascending; itself among them.
  std::vector<int> beside();
  // How many workers the job has now; 0: it has not begun.
  int workers();
  // For how many there are places.
  int Places();
  // Of workers that come while the job runs (control/membership.h). Whether this one has, and is
  // still to be let in.
  bool Outside() const { return outside_; }
  bool came_late() const { return came_late_; }
  int entry() const { return options_.mercury.entry; }
  // Whom this worker is to let in; rank -1: nobody, now.
  Newcomer NextToLetIn();
  void SayAdmission(const Newcomer& newcomer, Admission admission);
  // kPeerLost: the newcomer is gone.
  bool WaitAdmission(const Newcomer& newcomer, Admission admission, int slice_ms, Status* status);
  // The job goes on without that newcomer.
  void DoWithout(int newcomer, const std::string& why);
  // Where this worker stands, for one that is let in, while nothing is under way; of that one.
  std::string Standing();
  Status Enter(const std::string& standing);
  // Whether it goes on without those that it loses.
  bool elastic() const { return options_.mercury.elastic; }
  int NumLost(int group) const { return van_ == nullptr ? 0 : van_->NumLost(group); }
  // All that this process may ask of its job; kClosed if it is no worker of one that runs.
  Status worker(Worker** worker);
  std::string Figures();
  // As what gradients travel, unless somebody says otherwise; known once all nodes are there.
  std::string Wire();
  // A worker's Prophet profile; empty if there is none.
  std::string Profile();
  // For a dump: what a worker waits for, and who is in the job, a line for each.
  std::string Waiting();
  // When a stall ends the job, a byte is written to `fd`, and before anything fails of it, Dumped
  // is waited for a moment.
  void DumpTo(int fd) { dump_fd_ = fd; }
  void Dumped();

 private:
  Node() = default;
  bool Wait(int slice_ms, Status* status, const std::function<bool()>& done);
  void OpenTrace(int my_node_id);
  static void NoteFailure(const std::string& why);
  void AwaitDump();
  void FailMessages(const Status& status);
  bool OnItsWay() const;  // a newcomer that is not in; with the lock, on the van's thread
  Worker* Front();        // null unless this is a worker of a job that is, or was, ready
  Status OnAgreed(int my_node_id, const SharedSettings& agreed) override;
  void OnReady(int my_node_id) override;
  void OnBarrier() override;
  void OnDeparted(int node_id) override;
  void OnLost(int node_id, const Status& why) override;
  void OnAlone(const Status& why) override;
  void OnAdmission(const Member& newcomer, Admission admission) override;
  void OnFailed(const Status& status) override;
  void OnEnded() override;

  Settings settings_;
  NodeOptions options_;
  ZmqVan* van_ = nullptr;              // lives as long as the process
  MercuryVan* mercury_van_ = nullptr;  // the same, if it is one
  DispatchNumbers numbers_;
  std::unique_ptr<ClassicPath> classic_;  // in zmq mode
  std::atomic<bool> started_{false}, failed_{false}, forked_{false};
  std::atomic<bool> failed_elsewhere_{false}, came_late_{false}, outside_{false};
  std::atomic<int> exit_code_{0};  // instead of the process's own
  std::atomic<bool> over_chosen_{false};
  std::atomic<int> id_{0};
  std::atomic<int> dump_fd_{-1};

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool listens_ = false, ready_ = false, ended_ = false, finished_ = false, at_barrier_ = false;
  bool dumped_ = false;
  std::string peers_;
  std::vector<int> beside_;
  WorkersPresent present_;
  Status alone_;  // since the scheduler is lost
  Status failure_;
  std::unique_ptr<Worker> worker_;  // of the transport, once ready
};

}  // namespace mercury
