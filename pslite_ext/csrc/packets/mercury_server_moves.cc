// A server takes the place of one that is lost, and gives it up to one that comes: see
// mercury_server.h. Workers hear of it in their own time. They leave links that are still of use
// then, and until all have, those who have not heard yet go on with what is here: whoever has a sum
// that others lack says so to the server that has the slots by now (resumption.h).
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/node_name.h"
#include "packets/mercury_server.h"

namespace mercury {
namespace {

constexpr int64_t kGivesWithinUs = 60000000;  // what is only here
constexpr int64_t kArrivesWithinUs = 500000;  // what has been sent

}  // namespace

void MercuryServer::Adopt(int server, uint64_t generation) {
  lanes_[0]->Post([this, server, generation] {
    if (Here(server) == shards_.size()) Begin(server, generation);
  });
}

// The number of that server's slots here; as many as there are: they are not.
size_t MercuryServer::Here(int server) const {
  const auto found = std::find_if(shards_.begin(), shards_.end(), [server](const auto& each) {
    return each->server == server && each->here();
  });
  return static_cast<size_t>(found - shards_.begin());
}

void MercuryServer::Begin(int server, uint64_t generation) {
  auto made = std::make_shared<Shard>();
  Shard* shard = made.get();
  shard->server = server;
  shard->since = generation;
  shard->aggregator = NewAggregator(server, true);
  const auto gone = std::find_if(shards_.begin(), shards_.end(),
                                 [](const auto& each) { return each->aggregator == nullptr; });
  const auto number = static_cast<size_t>(gone - shards_.begin());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (number == shards_.size()) shards_.emplace_back();
    shards_[number] = std::move(made);
  }
  for (int i = 0; i < options_.lanes; ++i) {
    // Moved into a function that can be copied.
    auto end = std::make_shared<std::unique_ptr<Endpoint>>(EndOf(shard, i));
    const auto set = [end, number, all = ends_[static_cast<size_t>(i)]] {
      all->Set(number, std::move(*end));
    };
    if (i == 0) set();
    if (i != 0) lanes_[static_cast<size_t>(i)]->Post(set);
  }
}

void MercuryServer::Hears(uint64_t generation) {
  lanes_[0]->Post([this, generation] {
    generation_ = std::max(generation_, generation);
    TakeEarly();
  });
}

// Whether a worker came for slots that were here, and has heard since that they had moved on.
bool MercuryServer::MovesOn(const Terms& theirs) const {
  const size_t number = Here(static_cast<int>(theirs.server));
  if (number == shards_.size() || theirs.generation >= shards_[number]->since) return false;
  const int peer = static_cast<int>(number) * options_.workers + static_cast<int>(theirs.worker);
  return taken_.count({peer, theirs.lane}) != 0;
}

void MercuryServer::IsIn() {
  lanes_[0]->Post([this] { is_in_ = true; });
}

void MercuryServer::IsAlone(bool alone) {
  lanes_[0]->Post([this, alone] {
    is_alone_ = alone;
    waits_since_us_ = NowUs();
  });
}

void MercuryServer::CheckAlone(int64_t now_us) {
  if (!options_.late || !is_alone_) return;
  std::string missing;
  for (int w = 0; w < options_.workers && is_in_; ++w) {
    const bool came = out_.count(w) != 0 || taken_.count({w, 0}) != 0;
    if (!came) missing = ", and " + NodeName(Role::kWorker, w) + " has not come";
  }
  if (is_in_ && missing.empty()) {
    waits_since_us_ = now_us;
    return;
  }
  const int64_t patience_us = is_in_ ? 2 * options_.handshake_timeout_us : 0;
  if (now_us - waits_since_us_ < patience_us) return;
  events_.lost(-1, Status::PeerLost("the scheduler was lost while it was let in" + missing));
}

void MercuryServer::Comes(int server, const std::set<int>& shards, Says says) {
  lanes_[0]->Post([this, server, shards, says = std::move(says)] {
    coming_[server] = {shards, says, NowUs(), 0};
    some_come_ = true;
    AnswerThoseThatCome(NowUs());
  });
}

// Once nothing is only here, nor on its way to the first worker that has fetched it. What is given
// to a newcomer is only here until that one has it; it may take its time.
void MercuryServer::AnswerThoseThatCome(int64_t now_us) {
  for (auto& [server, its] : coming_) {
    if (its.says == nullptr) continue;
    Aggregator::Held held;
    for (const auto& shard : shards_) {
      const bool would_go = shard->here() && its.shards.count(shard->server) != 0;
      if (would_go) held.Add(shard->aggregator->OnlyHere());
    }
    const bool late = now_us - its.since_us >= kGivesWithinUs && new_.empty();
    if (!held.tensor.empty()) its.free_since_us = 0;
    if (held.for_good || (late && !held.tensor.empty())) {
      std::exchange(its.says, nullptr)(Status::Closed(
          "tensor '" + held.tensor + "' is on " + NodeName(Role::kServer, options_.rank) +
          " alone, which does its work, and cannot be given"));
    } else if (held.tensor.empty()) {
      if (its.free_since_us == 0) its.free_since_us = now_us;
      const bool arrived = !held.fetched || now_us - its.free_since_us >= kArrivesWithinUs;
      if (arrived) std::exchange(its.says, nullptr)(Status::Ok());
    }
  }
}

void MercuryServer::NoLongerComes(int server) {
  lanes_[0]->Post([this, server] {
    coming_.erase(server);
    some_come_ = !coming_.empty();
  });
}

void MercuryServer::Yield(int server, uint64_t generation) {
  lanes_[0]->Post([this, server, generation] {
    const size_t number = Here(server);
    if (number == shards_.size() || server == options_.rank) return;
    if (generation < shards_[number]->since) return;
    shards_[number]->given = true;
    ForgetThoseGiven();
  });
}

std::shared_ptr<MercuryServer::Shard> MercuryServer::ShardOf(int peer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return shards_[static_cast<size_t>(peer / options_.workers)];
}

// Whether a link that ends says that a worker is lost: not where it may have left for the server
// that has the slots now, or soon.
bool MercuryServer::IsMissed(const Shard& shard) const {
  return !shard.given && (shard.server == options_.rank || !some_come_);
}

void MercuryServer::LinkGone(const Shard* shard, int peer, int lane) {
  if (shards_[static_cast<size_t>(peer / options_.workers)].get() != shard) return;
  gone_.emplace(peer, lane);
  const int worker = WorkerOf(peer);
  // It has left, by what the scheduler says, which may be heard sooner than that its link ends.
  if (out_.count(worker) != 0 && new_.count(worker) == 0) ForgetWhereItHasNotCome(worker);
  ForgetThoseGiven();
}

// Of those whose slots another server has, the ones to which no worker has a link.
void MercuryServer::ForgetThoseGiven() {
  std::set<size_t> used;
  for (const auto& link : taken_) {
    const int worker = WorkerOf(link.first);
    const bool out = out_.count(worker) != 0 && new_.count(worker) == 0;
    if (!out && gone_.count(link) == 0) {
      used.insert(static_cast<size_t>(link.first / options_.workers));
    }
  }
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (shards_[i]->given && shards_[i]->aggregator != nullptr && used.count(i) == 0) Forget(i);
  }
}

void MercuryServer::Forget(size_t number) {
  const auto of_it = [this, number](const std::pair<int, int>& link) {
    return static_cast<size_t>(link.first / options_.workers) == number;
  };
  for (std::set<std::pair<int, int>>* links : {&taken_, &gone_}) {
    for (auto it = links->begin(); it != links->end();) {
      it = of_it(*it) ? links->erase(it) : std::next(it);
    }
  }
  for (int i = 0; i < options_.lanes; ++i) {
    ShardsEndpoint* all = ends_[static_cast<size_t>(i)];
    // Workers that are out may have links still.
    const auto close = [this, i, all, number] {
      for (int w = 0; w < options_.workers; ++w) {
        lanes_[static_cast<size_t>(i)]->Close(static_cast<int>(number) * options_.workers + w);
      }
      all->Set(number, nullptr);
    };
    if (i == 0) close();
    if (i != 0) lanes_[static_cast<size_t>(i)]->Post(close);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  shards_[number]->aggregator = nullptr;
  shards_[number]->clerk = nullptr;
  shards_[number]->letters = nullptr;
}

}  // namespace mercury
