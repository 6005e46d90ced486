// Nodes of a simulated job (simulated_job.h): real sums, real daemons, no links.
#pragma once

#include <cmath>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "fabric/live/letters.h"
#include "fabric/live/model_daemon.h"
#include "fabric/live/worker_daemon.h"
#include "harness.h"
#include "sums/momentum_sum.h"

namespace mercury::testing {

using namespace mercury::fabric;

constexpr size_t kSize = 3;
constexpr int64_t kBytes = 25'000'000;
constexpr int kEventsMost = 10'000;
constexpr int kSteps = 4;  // of a worker
using Values = std::vector<double>;

inline double Norm(const Values& vector) {
  double square = 0;
  for (const double value : vector) square += value * value;
  return std::sqrt(square);
}

inline void Add(const Values& more, Values* sum) {
  for (size_t i = 0; i < kSize; ++i) (*sum)[i] += more[i];
}

inline void CheckSame(const Values& one, const Values& other) {
  for (size_t i = 0; i < kSize; ++i) CHECK_TRUE(std::abs(one[i] - other[i]) < 1e-9);
}

// A model, a group on its way, or a single update: `updates` of them. What is summed without
// momentum has the same `step` as `sum`.
struct Sums {
  Values sum = Values(kSize, 0);
  Values step = Values(kSize, 0);
  int64_t updates = 0;

  void Take(double momentum, int64_t versions, const Sums& group) {
    Append<double>(StrideOf(momentum, versions), {sum.data(), step.data()},
                   {group.sum.data(), group.step.data()}, kSize);
    updates += group.updates;
  }
};

// An update.
inline Sums Drawn(Random* random) {
  Sums update;
  for (double& value : update.sum) value = 2 * random->Unit() - 1;
  update.step = update.sum;
  update.updates = 1;
  return update;
}

// A model as a worker has got it: so many updates were in it, the last at that place.
struct Known {
  int64_t version = 0;
  int64_t reign = 0;  // of the server that gave it
  size_t updates = 0;
  int64_t last_place = 0;
};

// A process that has the model: a server, or a replica.
struct Holder {
  Holder(int its_node, Role role, int64_t bound, bool confirm)
      : node(its_node), daemon(role, bound, confirm) {}
  int node;
  bool alive = true;
  bool followed = false;     // a replica that has the model, as the scheduler knows
  int64_t reign = 0;         // of one that is, or was, the server
  int tells = kReplicaNode;  // the replica that a server tells what it has applied
  ModelDaemon daemon;
  Sums model;
  std::map<int64_t, Sums> memory;  // what has come, by the number that the daemon was told
  int64_t numbers = 0;
  int64_t versions = 0;
  std::vector<Placed> lineage;  // all that is in the model
  std::map<int, Wish> wishes;   // by worker
  std::map<int, int64_t> progress;
  Sums reduced;
  std::set<UpdateId> reduced_of;

  Known Shows() const {
    const int64_t last = lineage.empty() ? 0 : lineage.back().place;
    return {daemon.version(), reign, lineage.size(), last};
  }

  void Apply(const ModelStep& step, double momentum, int64_t delay_bound,
             const std::map<UpdateId, Known>& origins) {
    const Sums& group = memory.at(step.memory);
    if (step.updates[0].reduce) {
      CHECK_EQ(step.versions, 0);
      if (step.first) reduced = Sums();
      if (step.first) reduced_of.clear();
      reduced.Take(0, 0, group);
      for (const Placed& update : step.updates) reduced_of.insert(update.id);
      return;
    }
    int64_t version = step.version - step.versions;
    for (const Placed& update : step.updates) {
      CHECK_TRUE(lineage.empty() || lineage.back().place < update.place ||
                 lineage.back().round == update.round);
      if (update.round == 0) {
        CHECK_TRUE(++version - update.version <= delay_bound);
        const Known& origin = origins.at(update.id);  // of which nothing was lost
        CHECK_TRUE(origin.updates == 0 ||
                   lineage.at(origin.updates - 1).place == origin.last_place);
      }
      lineage.push_back(update);
      ++progress[update.id.worker];
    }
    model.Take(momentum, step.versions, group);
    versions += step.versions;
    CHECK_EQ(versions, step.version);
  }

  bool Grants(int w, const Wish& wish, const std::vector<bool>& workers_alive) const {
    if (wish.reduce != 0) return reduced_of.count({w, wish.reduce}) != 0;
    for (size_t other = 0; other < workers_alive.size(); ++other) {
      const auto its = progress.find(static_cast<int>(other));
      const int64_t updates = its == progress.end() ? 0 : its->second;
      if (workers_alive[other] && updates < wish.updates) return false;
    }
    return true;
  }
};

struct Worker {
  bool alive = true;
  int64_t steps = 0;     // begun
  int64_t finished = 0;  // and over
  int64_t numbers_used = 0;
  int64_t pushed = 0;  // updates, not parts of an all-reduce
  std::optional<Wish> wish;
  std::optional<Sums> sum;  // of an all-reduce, before all have it
  size_t reign = 0;         // of the server, as it knows
  Known known;
  WorkerDaemon daemon;
  std::map<UpdateId, Sums> updates;
  std::map<int64_t, Sums> memory;         // what has come, by the number that the daemon was told
  std::map<int64_t, Sums> groups;         // by hop
  std::set<int64_t> started;              // hops
  std::map<int64_t, Hop> passes_on;       // by hop, what it is told to pass on
  std::list<std::pair<Hop, Sums>> comes;  // along chains, and nobody has told of it yet
  int64_t numbers = 0;

  void OfChain(const Step& step) {
    if (step.kind == Step::kAbort) passes_on.erase(step.hop);
    if (step.kind == Step::kPassOn) passes_on[step.hop] = *daemon.Find(step.hop);
  }
  // What a hop that is over has brought.
  Sums Leaves(int64_t hop, const Parcel& parcel) {
    passes_on.erase(hop);
    const bool own = parcel.places.size() == 1 && !parcel.hop.gathered;
    const Sums sums = own ? updates.at(parcel.hop.update) : groups.at(hop);
    groups.erase(hop);
    CHECK_EQ(sums.updates, parcel.places.size());
    return sums;
  }
  // What has come along a chain goes on, with this worker's update added, once it is told so.
  void PassOn(double momentum) {
    for (auto it = comes.begin(); it != comes.end();) {
      bool taken = false;
      for (const auto& [number, hop] : passes_on) {
        std::vector<int64_t> places = it->first.places;
        places.push_back(hop.places.back());
        if (hop.goal != it->first.goal || hop.places != places) continue;
        Sums& sums = groups[number] = it->second;
        sums.Take(momentum, hop.two_sums ? 1 : 0, updates.at(hop.update));
        daemon.Reach(number, 2 * kBytes);
        taken = true;
      }
      it = taken ? comes.erase(it) : std::next(it);
    }
  }
};

// As the other end reads it.
template <typename L>
L Received(const L& letter) {
  Letter received;
  CHECK_OK(Decode(Encode(letter), &received));
  return std::get<L>(received);
}

}  // namespace mercury::testing
