#include "packets/mercury_van.h"

#include <utility>
#include <vector>

#include "packets/links_beside.h"

namespace mercury {

MercuryVan::MercuryVan(const ZmqVanOptions& van, MercuryOptions options, VanObserver* observer)
    : ZmqVan(van, this),
      options_(std::move(options)),
      role_(van.role),
      host_(van.host),
      observer_(observer) {}

MercuryVan::~MercuryVan() { MercuryVan::Stop(); }

void MercuryVan::Start(int customer_id, bool standalone) {
  if (role_ == Role::kServer) {
    PlaneEvents events;
    events.lost = [this](int worker, const Status& status) { Lost(Role::kWorker, worker, status); };
    events.finished = [this](int worker, uint8_t entry) { HasFinished(worker, entry); };
    events.all_out = [this] { NoMoreWork(); };
    events.failed = [this](bool have) { FailedElsewhere(have); };
    server_ = std::make_unique<MercuryServer>(std::move(events));
    const Status status = server_->Listen(host_, options_.tcp, &data_port_);
    if (!status.ok()) return FailStart(status);
  }
  if (role_ == Role::kWorker) {
    const Status status = worker_door_.Open(host_, options_.tcp, &data_port_);
    if (!status.ok()) return FailStart(status);
  }
  ZmqVan::Start(customer_id, standalone);
}

void MercuryVan::Stop() {
  ZmqVan::Stop();  // first, so that what this node has to say arrives before its links go
  server_ready_ = false;
  if (worker_) worker_->Stop();
  if (server_) server_->Stop();
}

// Policies that wait for whole units are those of systems that do not, either. A job that goes on
// without those it loses would lose a whole host with its leader.
bool MercuryVan::SumsHosts() const {
  return !options_.elastic && !AnswersUnits(options_.policy.kind) &&
         !Acknowledges(options_.policy.kind);
}

void MercuryVan::OnReady(int my_node_id) {
  options_.job = job();
  homes_ = ShardHomes(options_.shares.servers());
  options_.rank = RankOf(my_node_id);
  options_.links_beside = LinksBeside(members(), my_node_id, options_.lanes, SumsHosts());
  options_.hosts = Hosts::Of(members(), SumsHosts());
  if (role_ == Role::kWorker) return StartWorker(my_node_id);
  if (role_ == Role::kServer) return StartServer(my_node_id);
  observer_->OnReady(my_node_id);
}

void MercuryVan::StartWorker(int my_node_id) {
  const bool follows = options_.hosts.Follows(options_.rank);
  const int leader = NodeId(Role::kWorker, options_.hosts.LeaderOf(options_.rank));
  std::vector<Address> servers(static_cast<size_t>(options_.shares.servers() + (follows ? 1 : 0)));
  for (const Member& m : members()) {
    if (m.role == Role::kServer) {
      servers.at(static_cast<size_t>(RankOf(m.id))) = {m.host, m.data_port};
    } else if (follows && m.id == leader) {
      servers.back() = {m.host, m.data_port};
    }
  }
  PlaneEvents events;
  events.lost = [this](int server, const Status& status) { Lost(Role::kServer, server, status); };
  events.lost_beside = [this](int worker, const Status& status) {
    Lost(Role::kWorker, worker, status);
  };
  events.ready = [this, my_node_id] { observer_->OnReady(my_node_id); };
  worker_ = std::make_unique<MercuryWorker>(options_, std::move(events));
  const Status status = worker_->Start(servers, std::move(worker_door_));
  if (!status.ok()) Report(my_node_id, status);
}

void MercuryVan::StartServer(int my_node_id) {
  const Status status = server_->Start(options_);
  if (!status.ok()) return Report(my_node_id, status);
  server_ready_ = true;
  observer_->OnReady(my_node_id);
}

void MercuryVan::Lost(Role role, int rank, const Status& status) {
  const int me = NodeId(role_, options_.rank);
  Report(rank < 0 ? me : NodeId(role, rank), status);
}

void MercuryVan::OnLost(int node_id, const Status& why) {
  if (RoleOf(node_id) == Role::kServer) {
    LoseServer(RankOf(node_id));
  } else if (server_ready_) {
    server_->Drop(RankOf(node_id));
  }
  observer_->OnLost(node_id, why);
}

void MercuryVan::OnAdmission(const Member& newcomer, Admission admission) {
  const int rank = RankOf(newcomer.id);
  if (server_ready_ && admission == Admission::kComes) server_->Expect(rank, newcomer.entry);
  if (server_ready_ && admission == Admission::kIn) server_->LetIn(rank);
  observer_->OnAdmission(newcomer, admission);
}

void MercuryVan::LoseServer(int server) {
  std::vector<int> moved;
  int home = 0;
  moved = homes_.Lose(server);
  if (!moved.empty()) home = homes_.Of(moved[0]);
  Address address;
  for (const Member& m : members()) {
    if (m.role == Role::kServer && RankOf(m.id) == home) address = {m.host, m.data_port};
  }
  for (const int shard : moved) {
    if (worker_) worker_->Move(shard, home, address);
    if (server_ready_ && home == options_.rank) server_->Adopt(shard);
  }
}

void MercuryVan::OnFailed(const Status& status) {
  // First: whoever hears of an operation's failure can ask whose it is.
  observer_->OnFailed(status);
  if (worker_) worker_->Fail(status);
}

}  // namespace mercury
