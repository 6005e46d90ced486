#include "process/node.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iomanip>
#include <sstream>
#include <utility>

#include "base/log.h"
#include "process/blame.h"
#include "ps/internal/env.h"
#include "ps/internal/postoffice.h"
#include "trace/trace_text.h"
#include "transport/figures.h"

namespace mercury {
namespace {

constexpr char kVanName[] = "mercury-van";

// Of the others, who are told before, some have ended by then.
constexpr std::chrono::seconds kDumpPatience(2);

constexpr int kExceptionExitCode = 1;  // Python's, after an exception that nobody caught

// Every peer, and every stranger in the handshake, is a descriptor.
void RaiseOpenFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 65536);
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Node& Node::Get() {
  static Node* node = new Node;
  return *node;
}

Status Node::Start(const Settings& settings, const std::set<std::string>& told) {
  NodeOptions options;
  Status made = MakeNodeOptions(settings, &options);
  if (!made.ok()) return made;
  std::unique_ptr<ClassicPath> classic;
  if (!options.packets) made = MakeClassicPath(&classic);
  if (!made.ok()) return made;
  if (started_.exchange(true)) return Status::Closed("this process has joined a job before");
  options.van.settings = SharedOf(settings, told);
  classic_ = std::move(classic);
  if (classic_) classic_->Prepare(&options.van);
  settings_ = settings;
  options_ = options;
  pthread_atfork(nullptr, nullptr, [] { Get().forked_ = true; });
  SetLogName(Name(options.van.role));
  RaiseOpenFileLimit();
  TraceLog::Start(options.trace);
  // ps-lite reads its settings through this table before it looks at the environment.
  ps::Environment::Init({{"DMLC_ENABLE_RDMA", kVanName},
                         {"DMLC_ENABLE_UCX", "0"},
                         {"DMLC_NUM_WORKER", std::to_string(options.van.workers)},
                         {"DMLC_NUM_SERVER", std::to_string(options.van.servers)},
                         {"DMLC_ROLE", Name(options.van.role)},
                         {"PS_VERBOSE", "0"}});
  ps::Van::Register(kVanName, [this]() -> ps::Van* {
    if (options_.packets) {
      mercury_van_ = new MercuryVan(options_.van, options_.mercury, this);
      van_ = mercury_van_;
    } else {
      van_ = new ZmqVan(options_.van, this);
    }
    return van_;
  });
  if (options.van.token.empty() && options.van.role == Role::kScheduler) {
    Log(LogLevel::kWarning,
        "no job token: whoever can reach this job's ports can join it; set MERCURY_JOB_TOKEN");
  }
  try {
    ps::Postoffice::Get()->Start(0, nullptr, false);
  } catch (const std::exception& error) {
    return Status::Internal(error.what());
  }
  const Status status = van_->start_status();
  if (!status.ok()) {
    std::lock_guard<std::mutex> lock(mutex_);
    failure_ = status;
    return status;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  listens_ = true;
  return status;
}

void Node::Finish(const Status& why) {
  if (forked_) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (finished_ || van_ == nullptr) return;
    finished_ = true;
  }
  if (!why.ok() && !failed_) NoteFailure(why.text());
  if (van_->start_status().ok()) {
    if (options_.van.role == Role::kWorker || !why.ok()) van_->Leave(why);
  }
  van_->Stop();
  FailMessages(Status::Closed("this node has left the job"));
  if (TraceLog* log = TraceLog::Started()) log->Close();
}

void Node::FinishAtExit(int code, bool over_chosen) {
  exit_code_ = code;
  over_chosen_ = over_chosen;
  // The C library calls it before anything of this process is taken apart.
  on_exit(
      [](int status, void* /*unused*/) {
        Node& node = Get();
        node.Finish(status == 0
                        ? Status::Ok()
                        : Status::PeerLost("it ended with exit code " + std::to_string(status)));
        if (node.forked_ || node.exit_code_ <= 0) return;
        if (status > kExceptionExitCode && !node.over_chosen_) return;
        std::fflush(nullptr);
        _exit(node.exit_code_);
      },
      nullptr);
}

bool Node::OtherEnded(const Exit& exit) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!listens_) return false;
  }
  van_->OtherEnded(exit);
  return true;
}

bool Node::awaits_late() {
  std::lock_guard<std::mutex> lock(mutex_);
  return listens_ && !finished_ && van_->awaits_late();
}

bool Node::Wait(int slice_ms, Status* status, const std::function<bool()>& done) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(slice_ms),
                    [&] { return done() || !failure_.ok(); });
  *status = failure_;
  return done() || !failure_.ok();
}

bool Node::WaitReady(int slice_ms, Status* status) {
  return Wait(slice_ms, status, [this] { return ready_; });
}
bool Node::WaitEnd(int slice_ms, Status* status) {
  return Wait(slice_ms, status, [this] { return ended_; });
}
bool Node::WaitBarrier(int slice_ms, Status* status) {
  // One that all have reached is passed, though a worker may have failed since.
  bool passed = false;
  const bool over = Wait(slice_ms, status, [&] { return (passed = !at_barrier_) || !alone_.ok(); });
  if (passed) {
    *status = Status::Ok();
  } else if (over && status->ok()) {
    *status = alone_;
  }
  return over;
}

void Node::EnterBarrier() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    at_barrier_ = true;
  }
  van_->EnterBarrier();
}

Status Node::failure() {
  if (forked_) {
    return Status::Closed("this process was forked by a worker, which alone may use its stores");
  }
  std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}

void Node::OpenTrace(int my_node_id) {
  TraceLog* log = TraceLog::Started();
  if (log == nullptr) return;
  TraceIdentity identity;
  identity.role = Traced(options_.van.role);
  identity.rank = static_cast<uint32_t>(RankOf(my_node_id));
  identity.workers = static_cast<uint32_t>(options_.van.workers);
  identity.servers = static_cast<uint32_t>(options_.van.servers);
  identity.asynchronous = van_->asynchronous();
  std::ostringstream run;
  run << std::hex << std::setw(16) << std::setfill('0') << JobNumber(van_->job());
  identity.run = run.str();
  std::optional<TraceIdentity> host_sums;
  const Hosts hosts = mercury_van_ != nullptr ? mercury_van_->hosts() : Hosts();
  const int rank = RankOf(my_node_id);
  const size_t leaders = hosts.Leaders().size();
  identity.servers += static_cast<uint32_t>(leaders);
  if (identity.role == TraceRole::kServer && leaders != 0) {
    for (const int worker : hosts.Senders(rank, options_.van.workers)) {
      identity.senders.push_back(static_cast<uint32_t>(worker));
    }
  }
  if (identity.role == TraceRole::kWorker && hosts.Leads(rank)) {
    host_sums = identity;
    host_sums->role = TraceRole::kServer;
    host_sums->rank = static_cast<uint32_t>(hosts.AsServer(rank));
    for (const int worker : hosts.Workers(rank)) {
      if (worker != rank) host_sums->senders.push_back(static_cast<uint32_t>(worker));
    }
  }
  log->Open(std::move(identity), std::move(host_sums));
}

std::vector<int> Node::beside() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return beside_;
}

int Node::workers() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return present_.workers();
}

Status Node::worker(Worker** worker) {
  Status status = failure();
  if (!status.ok()) return status;
  *worker = Front();
  if (*worker != nullptr) return Status::Ok();
  return Status::Closed("this process is not a worker of a running job");
}

std::string Node::Wire() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ready_ ? settings_.wire : "";
}

std::string Node::Figures() {
  if (forked_) return "{}";
  std::string figures = "{}";
  if (Worker* worker = Front()) {
    figures = worker->Figures();
  } else if (mercury_van_ != nullptr) {
    figures = mercury_van_->ServerFigures();
  }
  if (van_ == nullptr || id_ == 0) return figures;
  if (figures == "{}")
    figures = FiguresJson(Name(options_.van.role), rank(), settings_.policy, {}, {});
  figures = WithMessages(std::move(figures), van_->Traffic());
  if (TraceLog* log = TraceLog::Started()) {
    figures = WithTotal(std::move(figures), "trace_events_lost", log->ring()->lost());
  }
  figures = WithTotal(std::move(figures), "workers", static_cast<uint64_t>(workers()));
  return WithTotal(std::move(figures), "control_refused", van_->refused());
}

std::string Node::Profile() {
  Worker* worker = forked_ ? nullptr : Front();
  return worker != nullptr ? worker->Profile() : "";
}

std::string Node::Waiting() {
  if (forked_) return "";
  std::string lines;
  if (Worker* worker = Front()) lines = worker->Waiting();
  const std::lock_guard<std::mutex> lock(mutex_);
  return lines + (at_barrier_ ? "the other workers, at a barrier\n" : "") + peers_;
}

void Node::Dumped() {
  const std::lock_guard<std::mutex> lock(mutex_);
  dumped_ = true;
  changed_.notify_all();
}

void Node::AwaitDump() {
  const char byte = 0;
  if (dump_fd_ < 0 || write(dump_fd_, &byte, 1) != 1) return;
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, kDumpPatience, [this] { return dumped_; });
}

Worker* Node::Front() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return worker_.get();
}

// Messages that are not control's are kept by the van until this is over, so that none finds its
// receiver missing.
Status Node::OnAgreed(int my_node_id, const SharedSettings& agreed) {
  for (const SharedSetting& setting : agreed) {
    Status status = SetSetting(setting.name, setting.value, &settings_);
    if (!status.ok()) return status;
  }
  NodeOptions made;
  Status status = MakeNodeOptions(settings_, &made);
  if (!status.ok()) return status;
  options_.mercury = made.mercury;
  options_.classic = made.classic;
  options_.classic.rank = RankOf(my_node_id);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    peers_ = van_->Peers();
    std::set<int> in;
    for (const Member& m : van_->members()) {
      const bool itself = van_->newcomer() && m.id == my_node_id;
      if (itself) options_.mercury.entry = m.entry;
      if (m.role == Role::kWorker && !itself) in.insert(RankOf(m.id));
    }
    present_.Begin(in);
    if (van_->newcomer() && RoleOf(my_node_id) == Role::kWorker) {
      present_.Admits(RankOf(my_node_id), options_.mercury.entry, Admission::kComes);
    }
    beside_ = Hosts::Of(van_->members()).Workers(RankOf(my_node_id));
  }
  van_->CheckData(made.mercury.checksum);
  // Values that are the servers' own are lost with them; nor can others answer for whole units.
  const PolicyKind policy = made.mercury.policy.kind;
  options_.mercury.servers_may_go = made.mercury.elastic && options_.van.servers > 1 &&
                                    !van_->asynchronous() && !AnswersUnits(policy) &&
                                    !Acknowledges(policy);
  // What a trace has of a worker begins with the job.
  const bool joinable = TraceLog::Started() == nullptr;
  van_->GoOnWith(made.least_workers, options_.mercury.servers_may_go,
                 joinable ? made.mercury.workers : 0);
  options_.mercury.numbers = options_.classic.numbers = &numbers_;
  options_.mercury.stalled =
      options_.classic.stalled = [this](int worker, const std::string& line) {
        if (worker >= options_.mercury.workers) return;  // a server that cannot count
        if (outside_) return;                            // it may be that nobody lets it in yet
        van_->Report(
            NodeId(Role::kWorker, worker),
            Status::Timeout(NodeName(id_.load()) + " gives up (MERCURY_STALL_TIMEOUT_S): " + line));
      };
  if (TraceLog* log = TraceLog::Active()) {
    options_.mercury.trace = options_.classic.trace = log->ring();
  }
  if (mercury_van_ != nullptr) mercury_van_->Configure(options_.mercury);
  if (classic_) classic_->Begin(options_.van.role, options_.classic);
  return Status::Ok();
}

void Node::OnReady(int my_node_id) {
  OpenTrace(my_node_id);
  std::lock_guard<std::mutex> lock(mutex_);
  id_ = my_node_id;
  outside_ = came_late_ = OnItsWay();
  if (options_.van.role == Role::kWorker) {
    Transport* transport = classic_ ? classic_->worker() : mercury_van_->worker();
    worker_ = std::make_unique<Worker>(transport, options_.mercury.deterministic, outside_);
  }
  ready_ = true;
  changed_.notify_all();
}

void Node::OnBarrier() {
  std::lock_guard<std::mutex> lock(mutex_);
  at_barrier_ = false;
  changed_.notify_all();
}

void Node::OnDeparted(int node_id) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (RoleOf(node_id) == Role::kWorker) present_.Out(RankOf(node_id));
    changed_.notify_all();
  }
  if (classic_) classic_->Departed(RankOf(node_id));
}

void Node::OnLost(int node_id, const Status& why) {
  std::string line = why.text() + "; the job goes on";
  if (RoleOf(node_id) == Role::kWorker) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int before = present_.workers();
    present_.Out(RankOf(node_id));
    const int left = present_.workers();
    line += left == before ? ""
                           : " with " + std::to_string(left) + (left == 1 ? " worker" : " workers");
    changed_.notify_all();
  }
  if (options_.van.role != Role::kWorker || rank() == 0) Log(LogLevel::kWarning, line);
  if (TraceLog* log = TraceLog::Active())
    log->Note(TraceWithoutNote(NodeName(node_id), why.text()));
}

void Node::OnAlone(const Status& why) {
  Log(LogLevel::kWarning, why.ok() ? "the scheduler is heard again"
                                   : why.text() +
                                         "; the job goes on, but not without another "
                                         "node, and no barrier is passed");
  const std::lock_guard<std::mutex> lock(mutex_);
  alone_ = why;
  changed_.notify_all();
  if (why.ok() || !OnItsWay()) return;
  van_->Leave(Status::PeerLost(kLostWithScheduler));
}

void Node::FailMessages(const Status& status) {
  if (Transport* worker = classic_ ? classic_->worker() : nullptr) worker->Fail(status);
}

void Node::OnFailed(const Status& status) {
  Log(LogLevel::kError, status.text());
  // In a job that has begun, this is a stall.
  if (status.code() == Code::kTimeout && id_ != 0) AwaitDump();
  NoteFailure(status.text());
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const int me = options_.van.role == Role::kScheduler ? kSchedulerId : id_.load();
    failed_elsewhere_ = !finished_ && BlamesAnother(status, me);  // a leaver's reason is its own
    failed_ = true;
    failure_ = status;
    changed_.notify_all();
  }
  FailMessages(status);
}

// So that nobody takes what the failure cut short for a fault of the trace.
void Node::NoteFailure(const std::string& why) {
  if (TraceLog* log = TraceLog::Active()) log->Note(TraceFailedNote(why));
}

void Node::OnEnded() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    changed_.notify_all();
    if (!OnItsWay()) return;
  }
  // Nobody will give it what it waits for.
  const Status over = Status::PeerLost("the job ended before this worker was let in");
  OnFailed(over);
  if (Transport* worker = mercury_van_->worker()) worker->Fail(over);
}

}  // namespace mercury
