// Workers that come while the job runs, as a server's half of the data plane sees them: see
// mercury_server.h and aggregator_newcomers.cc. The scheduler says who comes, and in whose place;
// who is let in says so itself, by a command of the worker that does it.
#include <charconv>
#include <utility>
#include <vector>

#include "base/node_name.h"
#include "letters/letter_endpoint.h"
#include "packets/mercury_server.h"
#include "transport/operation.h"

namespace mercury {

void MercuryServer::Expect(int worker, uint8_t entry) {
  lanes_[0]->Post([this, worker, entry] {
    dropped_.erase(worker);
    out_.insert(worker);
    new_.insert(worker);
    failed_.erase(worker);
    let_in_.erase(worker);
    entries_[worker] = entry;
    for (std::set<std::pair<int, int>>* links : {&taken_, &gone_}) {
      for (auto it = links->begin(); it != links->end();) {
        it = WorkerOf(it->first) == worker ? links->erase(it) : std::next(it);
      }
    }
    for (const auto& shard : shards_) {
      if (shard->aggregator == nullptr) continue;
      shard->letters->Forget(worker);
      shard->clerk->Forget(worker);
      shard->aggregator->Expect(worker);
    }
    TakeEarly();
  });
}

// As the scheduler says it: those that take the place of a server that is lost from now on hear of
// it in no other way, nor does a server that comes.
void MercuryServer::LetIn(int worker) {
  lanes_[0]->Post([this, worker] {
    if (new_.erase(worker) == 0) return;  // it has finished, sooner than this was heard
    out_.erase(worker);
    let_in_.erase(worker);
    for (const auto& shard : shards_) {
      if (is_in_ || shard->aggregator == nullptr) continue;
      shard->clerk->Comes(worker);
      const Status status = shard->aggregator->LetIn(worker, 0);
      if (!status.ok()) events_.lost(-1, status);
    }
  });
}

// It has heard sooner than this server that it is to come.
bool MercuryServer::ComesEarly(const Terms& theirs) const {
  const auto worker = static_cast<int>(theirs.worker);
  const auto known = entries_.find(worker);
  if (known == entries_.end()) {
    return options_.late || worker >= options_.workers - options_.free || theirs.entry != 0;
  }
  return static_cast<int8_t>(theirs.entry - known->second) > 0;
}

Status MercuryServer::Obeys(Shard* shard, int head, const std::string& body) {
  if (head != kLetInHead && head != kReleaseHead) return Obey(head, body);
  std::vector<uint64_t> numbers;
  const char* const end = body.data() + body.size();
  for (const char* at = body.data(); at != end;) {
    const auto [next, error] = std::from_chars(at, end, numbers.emplace_back());
    if (error != std::errc()) return Status::Corrupt("a command that makes no sense");
    at = next != end ? next + 1 : next;
  }
  if (head == kReleaseHead) {
    for (const uint64_t key : numbers) {
      shard->aggregator->Release(key);
      shard->clerk->Release(key);
    }
    return Status::Ok();
  }
  if (numbers.size() != 2 || numbers[0] >= static_cast<uint64_t>(options_.workers)) {
    return Status::Corrupt("a worker is let in for whom there is no place");
  }
  return LetIn(shard, static_cast<int>(numbers[0]), numbers[1]);
}

// `entry`: whoever lets it in may not have heard yet that it is lost, nor that another has come in
// its place since.
Status MercuryServer::LetIn(Shard* shard, int worker, uint64_t entry) {
  if (dropped_.count(worker) != 0 || entries_[worker] != entry) {
    return Status::PeerLost(NodeName(Role::kWorker, worker) + " is gone");
  }
  const Status status = shard->aggregator->LetIn(worker, 0);
  if (!status.ok()) return status;
  shard->clerk->Comes(worker);
  const bool is_news = new_.count(worker) != 0 && let_in_.insert(worker).second;
  if (is_news && events_.let_in) events_.let_in(worker, entries_[worker]);
  return status;
}

}  // namespace mercury
