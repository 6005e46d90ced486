// What the scripts of a simulated job do: sums, step after step; the first worker lets newcomers
// in between two of them, as pslite_ext/saving/letting_in.py does; a barrier, and the end.
//
// Thread-safety: none. Invariant: what a worker adds to an element says who is in its sum.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/disturbed_job.h"

namespace mercury::testing {

constexpr int kPlacesMax = 8;  // a digit of each worker's, base 8

class Training : public DisturbedJob {
 public:
  Training(const WholeJobOptions& options, Random* random, int tensors, int steps)
      : DisturbedJob(options, random), steps_(steps) {
    for (int t = 0; t < tensors; ++t) {
      elements_.push_back(static_cast<uint64_t>(random->Between(1, random->OneIn(2) ? 50 : 2000)));
    }
  }

  int joined() const { return joined_; }
  // Servers that have come while the job ran, and were let in.
  int served() const {
    return static_cast<int>(std::count_if(all().begin(), all().end(), [](const auto& each) {
      const auto server = AsServer(each);
      return server != nullptr && server->late && server->in;
    }));
  }
  // Those who have had all sums, or do to the end, had the same ones, of all of them as far as they
  // were in; nothing of anybody's twice. Otherwise, where not.
  std::string WrongSum() const {
    for (const auto& [of, by_life] : sums_) {
      // Of who has left nobody gets the last sum, should a server have been lost with it.
      if (of.second == steps_ && SomeWaitedForNobody() && LostServers()) continue;
      const std::vector<float>* first = nullptr;
      std::set<int> must;  // ranks
      const std::string where =
          "round " + std::to_string(of.second) + " of tensor " + std::to_string(of.first) + ": ";
      for (const auto& each : all()) {
        const auto worker = Trained(each);
        if (worker == nullptr || of.second <= worker->since) continue;
        // In its last round, it does not hear how the others go on, nor they that it does not.
        if (of.second == steps_ && worker->isolated) continue;
        must.insert(worker->rank);
        const auto found = by_life.find(worker->life);
        if (found == by_life.end()) return where + NodeName(worker->id()) + " has no sum";
        if (first == nullptr) first = &found->second;
        if (found->second != *first) return where + NodeName(worker->id()) + " has another sum";
      }
      if (first == nullptr) continue;
      const auto part = static_cast<int64_t>(Part(0, of.first, of.second));
      for (const float value : *first) {
        auto rest = static_cast<int64_t>(value);
        for (int w = 0; w < places(); ++w, rest >>= 3) {
          const bool in = (rest & 7) == part, out = (rest & 7) == 0;
          if (!in && !(out && must.count(w) == 0)) {
            return where + NodeName(Role::kWorker, w) + " has no part in it, or another";
          }
        }
        if (rest != 0) return where + "it has more than all parts";
      }
    }
    return {};
  }
  // It has had all its rounds, and ended well. Who alone has lost the scheduler does not hear in
  // its last round that the others have gone on without it: it is none of them.
  std::shared_ptr<WorkerProcess> Trained(const std::shared_ptr<Process>& process) const {
    if (process->role != Role::kWorker || !process->over || !process->how.ok()) return nullptr;
    auto worker = std::static_pointer_cast<WorkerProcess>(process);
    return worker->step == steps_ && !HasLost(*worker) ? worker : nullptr;
  }

 private:
  bool LostServers() const {
    return std::any_of(all().begin(), all().end(), [](const auto& each) {
      const auto server = AsServer(each);
      return server != nullptr && server->in && !(each->over && each->how.ok());
    });
  }
  static float Part(int rank, size_t tensor, int round) {
    const int digit = 1 + static_cast<int>((tensor + static_cast<size_t>(round)) % 7);
    return static_cast<float>(digit << 3 * rank);
  }
  void Starts(const Worker& worker) override {
    for (size_t t = 0; t < elements_.size(); ++t) {
      TensorTraits traits;
      traits.key = t + 7;
      traits.shape = {elements_[t]};
      traits.name = "t" + std::to_string(t);
      worker->tensors.push_back(std::make_shared<Tensor>(traits));
    }
    if (worker->in) Step(worker);
  }
  void Later(const Worker& worker, int64_t within_us, std::function<void()> call) {
    network_.After(random_->Between(0, within_us), [worker, call = std::move(call)] {
      if (worker->runs()) call();
    });
  }
  void Step(const Worker& worker) {
    if (worker->step == steps_) return Finish(worker);
    worker->under_way = elements_.size();
    for (size_t t = 0; t < elements_.size(); ++t) {
      Later(worker, 300, [this, worker, t] { Sum(worker, t, worker->step + 1); });
    }
  }
  void Sum(const Worker& worker, size_t t, int round) {
    auto memory = std::make_shared<std::vector<float>>(elements_[t], Part(worker->rank, t, round));
    auto op = std::make_shared<Operation>();
    op->tensor = worker->tensors[t];
    op->src = reinterpret_cast<const char*>(memory->data());
    op->dst = reinterpret_cast<char*>(memory->data());
    op->keep = memory;
    op->priority = -static_cast<int>(t);
    op->done = [=](const Status& status) {
      if (!worker->runs()) return;
      if (!status.ok()) return Fail(worker, status, true);
      sums_[{t, round}][worker->life] = *memory;
      if (--worker->under_way != 0) return;
      worker->step = round;
      Later(worker, 500, [this, worker] { Boundary(worker); });
    };
    worker->streams->Submit(op, network_.now_us());
  }

  // Between two steps. The first worker lets others in, one step after it has heard of them.
  void Boundary(const Worker& worker) {
    const bool first = worker->present.IsFirst(worker->rank) && worker->step < steps_;
    const int ready = first ? worker->present.Ready() : -1;
    const int before = std::exchange(worker->heard_of, ready);
    if (ready < 0 || ready != before) return Step(worker);
    worker->heard_of = -1;
    worker->lets_in = {ready, worker->present.EntryOf(ready), Admission::kTakes, {}};
    says_.Admission(worker, ready, Admission::kTakes);
    Hears(worker);
  }
  void Hears(const Worker& worker) override {
    // Of who was lost without hearing it, servers close the connections when another has its place.
    const bool lost = worker->rank >= 0 && this->worker(worker->rank) != worker;
    if (!worker->in && (worker->has || lost) && worker->membership.alone()) {
      return Fail(worker, Status::PeerLost("the scheduler is lost"), true);
    }
    if (!worker->in && worker->rank >= 0 &&
        worker->present.IsAt(worker->rank, worker->entry, Admission::kIn)) {
      Enter(worker);
    }
    WorkerProcess::LettingIn& its = worker->lets_in;
    if (its.rank < 0) return;
    if (!worker->present.IsThere(its.rank, its.entry)) return Resume(worker);
    if (worker->membership.alone()) {
      if (!its.shards_left.empty()) return;  // servers hear it from this worker still
      if (its.waits_for != Admission::kIn) return Resume(worker);
      its.rank = -1;
      return Fail(worker, Status::PeerLost("the scheduler is lost while it lets one in"), true);
    }
    if (!worker->present.IsAt(its.rank, its.entry, its.waits_for)) return;
    if (its.waits_for == Admission::kTakes) return Give(worker);
    if (its.waits_for == Admission::kHas && its.shards_left.empty()) return LetIn(worker);
    if (its.waits_for == Admission::kIn) Resume(worker);
  }
  void Resume(const Worker& worker) {
    worker->lets_in = WorkerProcess::LettingIn();
    Step(worker);
  }
  void Give(const Worker& worker) {
    worker->lets_in.waits_for = Admission::kHas;
    const Worker newcomer = this->worker(worker->lets_in.rank);
    Later(worker, 3000, [this, worker, newcomer] {
      const WorkerProcess::LettingIn& its = worker->lets_in;
      const bool there = newcomer != nullptr && newcomer->runs() && newcomer->entry == its.entry;
      if (!there || its.rank != newcomer->rank) return;
      newcomer->standing = worker->streams->Rounds();
      newcomer->stands_at = worker->step;
      newcomer->has = true;
      says_.Admission(newcomer, newcomer->rank, Admission::kHas);
    });
  }
  void LetIn(const Worker& worker) {
    for (int shard = 0; shard < servers(); ++shard) {
      worker->lets_in.shards_left.insert(shard);
      Command(worker, shard, worker->lets_in.rank, worker->lets_in.entry);
    }
  }
  // To whoever has these slots; again, to the next one, if that one is lost before it answers.
  void Command(const Worker& worker, int shard, int rank, uint8_t entry) {
    Later(worker, 2000, [=] {
      const bool of_use = worker->lets_in.rank == rank && worker->lets_in.entry == entry;
      if (!of_use) return;
      const WorkerProcess::Home& link = worker->links[shard];
      if (link.at == nullptr || !link.at->runs() || link.at->dropped.count(worker->rank) != 0) {
        return Command(worker, shard, rank, entry);
      }
      if (link.at->dropped.count(rank) != 0 || link.at->entries[rank] != entry) {
        return Resume(worker);
      }
      CHECK_OK(link.slots->LetIn(rank, 0));
      if (link.at->new_ones.count(rank) != 0) {
        link.at->let_in.insert(rank);
        link.at->membership.IsLetIn(NodeId(Role::kWorker, rank), entry);
      }
      Later(worker, 1000, [=] {
        if (worker->lets_in.rank != rank || worker->lets_in.entry != entry) return;
        worker->lets_in.shards_left.erase(shard);
        if (!worker->lets_in.shards_left.empty()) return;
        worker->lets_in.waits_for = Admission::kIn;
        says_.Admission(worker, rank, Admission::kIn);
        Hears(worker);
      });
    });
  }
  void Enter(const Worker& worker) {
    CHECK_OK(worker->streams->TakeRounds(worker->standing));
    worker->in = true;
    worker->step = worker->since = worker->stands_at;
    ++joined_;
    Later(worker, 3000, [this, worker] { Step(worker); });
  }

  const int steps_;
  std::vector<uint64_t> elements_;
  std::map<std::pair<size_t, int>, std::map<uint64_t, std::vector<float>>> sums_;
  int joined_ = 0;
};

}  // namespace mercury::testing
