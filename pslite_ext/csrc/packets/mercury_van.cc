#include "packets/mercury_van.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "packets/links_beside.h"

namespace mercury {
namespace {

Address AddressOf(const Member& member) { return {member.host, member.data_port}; }

}  // namespace

MercuryVan::MercuryVan(const ZmqVanOptions& van, MercuryOptions options, VanObserver* observer)
    : ZmqVan(van, this),
      options_(std::move(options)),
      role_(van.role),
      host_(van.host),
      observer_(observer) {}

MercuryVan::~MercuryVan() { MercuryVan::Stop(); }

const Member* MercuryVan::MemberOf(int node) const {
  const auto found = std::find_if(members().begin(), members().end(),
                                  [node](const Member& m) { return m.id == node; });
  return found == members().end() ? nullptr : &*found;
}

void MercuryVan::Start(int customer_id, bool standalone) {
  if (role_ == Role::kServer) {
    PlaneEvents events;
    events.lost = [this](int worker, const Status& status) { Lost(Role::kWorker, worker, status); };
    events.finished = [this](int worker, uint8_t entry) { HasFinished(worker, entry); };
    events.all_out = [this] { NoMoreWork(); };
    events.let_in = [this](int worker, uint8_t entry) {
      IsLetIn(NodeId(Role::kWorker, worker), entry);
    };
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
  std::set<int> there;
  for (const Member& m : members()) there.insert(m.id);
  for (int s = 0; s < options_.shares.servers(); ++s) {
    if (there.count(NodeId(Role::kServer, s)) == 0) homes_.Lose(s);
  }
  options_.rank = RankOf(my_node_id);
  options_.late = newcomer();
  options_.generation = generation();
  options_.links_beside = LinksBeside(members(), my_node_id, options_.lanes, SumsHosts());
  options_.hosts = Hosts::Of(members(), SumsHosts());
  if (role_ == Role::kWorker) return StartWorker(my_node_id);
  if (role_ == Role::kServer) return StartServer(my_node_id);
  observer_->OnReady(my_node_id);
}

void MercuryVan::StartWorker(int my_node_id) {
  const bool follows = options_.hosts.Follows(options_.rank);
  const int leader = NodeId(Role::kWorker, options_.hosts.LeaderOf(options_.rank));
  std::vector<MercuryWorker::Home> servers;
  for (int s = 0; s < options_.shares.servers(); ++s) {
    const int home = homes_.Of(s);
    const Member* of = MemberOf(NodeId(Role::kServer, home));
    if (of == nullptr) return Report(my_node_id, Status::PeerLost("no server is there"));
    servers.push_back({home, AddressOf(*of), home != s || of->entry != 0});
  }
  if (follows) {
    const Member* of = MemberOf(leader);
    if (of == nullptr) return Report(my_node_id, Status::PeerLost("its leader is not there"));
    servers.push_back({options_.shares.servers(), AddressOf(*of), false});
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
  std::map<int, uint8_t> entries;
  for (const Member& m : members()) {
    if (m.role == Role::kWorker) entries[RankOf(m.id)] = m.entry;
    if (m.id == my_node_id) options_.entry = m.entry;
  }
  const Status status = server_->Start(options_, entries);
  if (!status.ok()) return Report(my_node_id, status);
  server_ready_ = true;
  observer_->OnReady(my_node_id);
  if (!options_.late) return;
  for (int shard = 0; shard < options_.shares.servers(); ++shard) {
    const bool adopted = shard != options_.rank && homes_.Of(shard) == options_.rank;
    if (adopted) server_->Adopt(shard, 0);
  }
  SayAdmission(my_node_id, options_.entry, Admission::kReady);
}

void MercuryVan::Lost(Role role, int rank, const Status& status) {
  const int me = NodeId(role_, options_.rank);
  Report(rank < 0 ? me : NodeId(role, rank), status);
}

void MercuryVan::OnDeparted(int node_id) {
  if (server_ready_ && RoleOf(node_id) == Role::kWorker) server_->Departed(RankOf(node_id));
  observer_->OnDeparted(node_id);
}

void MercuryVan::OnLost(int node_id, const Status& why) {
  const int rank = RankOf(node_id);
  if (RoleOf(node_id) == Role::kServer) {
    Move(homes_.Lose(rank));
    if (server_ready_) server_->NoLongerComes(rank);
  } else if (server_ready_) {
    server_->Drop(rank);
  }
  if (server_ready_) server_->Hears(generation());
  observer_->OnLost(node_id, why);
}

void MercuryVan::OnAdmission(const Member& newcomer, Admission admission) {
  const int rank = RankOf(newcomer.id);
  if (newcomer.role == Role::kServer) {
    OnServer(newcomer, admission);
    return observer_->OnAdmission(newcomer, admission);
  }
  if (server_ready_ && admission == Admission::kComes) server_->Expect(rank, newcomer.entry);
  if (server_ready_ && admission == Admission::kIn) server_->LetIn(rank);
  if (server_ready_) server_->Hears(generation());
  observer_->OnAdmission(newcomer, admission);
}

// Another has the place of one that was lost. It is in once who has done its work has said that it
// may have it: a worker that hears so first leaves that one, which is not told.
void MercuryVan::OnServer(const Member& newcomer, Admission admission) {
  const int rank = RankOf(newcomer.id);
  if (admission == Admission::kComes && server_ready_) {
    ShardHomes with_it = homes_;
    std::set<int> shards;
    for (const int shard : with_it.Find(rank)) shards.insert(shard);
    server_->Comes(rank, shards,
                   [this, id = newcomer.id, entry = newcomer.entry](const Status& may) {
                     if (may.ok()) return SayAdmission(id, entry, Admission::kTakes);
                     Report(id, may);
                   });
  }
  if (admission != Admission::kIn) return;
  Move(homes_.Find(rank));
  if (!server_ready_) return;
  if (rank == options_.rank) server_->IsIn();
  if (rank != options_.rank) server_->NoLongerComes(rank);
  server_->Hears(generation());
}

// To where they are at home now.
void MercuryVan::Move(const std::vector<int>& shards) {
  for (const int shard : shards) {
    const int home = homes_.Of(shard);
    const Member* of = MemberOf(NodeId(Role::kServer, home));
    if (worker_ && of != nullptr) worker_->Move(shard, home, AddressOf(*of), generation());
    if (!server_ready_) continue;
    if (home == options_.rank) server_->Adopt(shard, change());
    if (home != options_.rank) server_->Yield(shard, change());
  }
}

void MercuryVan::OnAlone(const Status& why) {
  if (server_ready_) server_->IsAlone(!why.ok());
  observer_->OnAlone(why);
}

void MercuryVan::OnFailed(const Status& status) {
  // First: whoever hears of an operation's failure can ask whose it is.
  observer_->OnFailed(status);
  if (worker_) worker_->Fail(status);
  if (server_) server_->Fail();
}

}  // namespace mercury
