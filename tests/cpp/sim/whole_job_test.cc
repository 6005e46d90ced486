// Jobs that lose nodes, and get new ones, as a whole: who is lost is whom something has happened
// to; all others end well, with the same sums; nobody waits for ever.
#include "sim/whole_job.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "sim/training.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

// Of one history: what may happen in it, and what has.
struct History {
  explicit History(uint64_t seed, Planted planted = Planted::kNothing) {
    random.seed(seed);
    WholeJobOptions o;
    o.planted = planted;
    o.network.workers = static_cast<int>(random.Between(2, kPlacesMax));
    o.network.shares = ServerShares(static_cast<int>(random.Between(1, 3)));
    o.network.lanes = random.OneIn(3) ? 2 : 1;
    o.network.checksum = random.OneIn(3);
    o.network.deterministic = random.OneIn(3);
    o.network.elastic = true;
    o.network.keeps_sums = o.network.shares.servers() > 1;
    const PolicyKind kinds[] = {PolicyKind::kPriority, PolicyKind::kFifo, PolicyKind::kProphet};
    o.network.policy.kind = kinds[random.Below(3)];
    o.network.policy.packet_bytes = uint64_t{1} << random.Between(8, 13);
    o.workers = static_cast<int>(random.Between(2, o.network.workers));
    for (int w = o.workers; w < o.network.workers; ++w) o.network.absent.insert(w);
    o.least = static_cast<int>(random.Between(1, o.workers - 1));
    o.barrier = random.OneIn(2);
    workers_may_go = o.workers - o.least;
    job = std::make_unique<Training>(o, &random, static_cast<int>(random.Between(1, 3)),
                                     static_cast<int>(random.Between(4, 12)));
  }

  // Whatever happens to it, it may be lost for it; false: the job could not do without it.
  bool MayGo(const std::shared_ptr<Process>& process) {
    if (process == nullptr || !process->runs()) return false;
    if (victims.count(process->life) != 0) return true;
    if (process->rank < 0) return true;  // it is nobody yet
    const bool worker = process->role == Role::kWorker;
    const bool may = !IsIn(*process) || (worker ? workers_may_go > 0 : ServersLeft() > 1);
    if (!may) return false;
    if (worker && IsIn(*process)) --workers_may_go;
    victims.insert(process->life);
    return true;
  }
  static bool IsIn(const Process& process) {
    if (process.role == Role::kWorker) return static_cast<const WorkerProcess&>(process).in;
    return static_cast<const ServerProcess&>(process).in;
  }
  int ServersLeft() const {
    const auto& all = job->all();
    return static_cast<int>(std::count_if(all.begin(), all.end(), [this](const auto& each) {
      const bool serves = each->role == Role::kServer && each->runs() && IsIn(*each);
      return serves && victims.count(each->life) == 0;
    }));
  }
  // Who was lost without hearing it does not, once another has it.
  bool HasPlace(const std::shared_ptr<Process>& process) {
    if (process->rank < 0) return false;
    if (process->role == Role::kServer) return job->server(process->rank) == process;
    return job->worker(process->rank) == process;
  }
  std::shared_ptr<Process> Any() {
    const auto& all = job->all();
    return all[random.Below(all.size())];
  }
  void Happens() {
    const bool silently = random.OneIn(3);
    switch (random.Below(11)) {
      case 0:
      case 1: {
        const auto process = Any();
        if (MayGo(process)) job->Kill(process, silently);
        break;
      }
      case 2: {  // a host
        const auto worker = job->worker(static_cast<int>(random.Below(2)));
        const auto server = job->server(0);
        if (MayGo(worker) && MayGo(server)) {
          job->Kill(worker, silently);
          job->Kill(server, silently);
        }
        break;
      }
      case 3: {
        const auto worker = job->worker(Rank(job->places()));
        const auto server = job->server(Rank(job->servers()));
        if (held.empty() && MayGo(worker) && MayGo(server)) {
          job->CutLink(worker->rank, server->rank);
        }
        break;
      }
      case 4: {
        const auto process = Any();
        if (held.count(process->life) == 0 && HasPlace(process) && MayGo(process)) {
          job->Isolate(process, random.OneIn(2));
        }
        break;
      }
      case 5: {
        const auto process = Any();
        if (victims.count(process->life) != 0 || !HasPlace(process)) break;
        if (held.insert(process->life).second) job->Hold(process, random.Between(0, 5000));
        break;
      }
      case 6:
      case 7:
        job->Come(random.OneIn(2) ? -1 : Rank(job->servers()), Role::kServer);
        break;
      default:
        job->Come(random.OneIn(2) ? -1 : Rank(job->places()));
    }
  }
  int Rank(int ranks) { return static_cast<int>(random.Below(static_cast<uint64_t>(ranks))); }

  void Run(int events, bool without_scheduler) {
    for (int i = 0; i < events; ++i) {
      job->network().After(random.Between(0, random.OneIn(2) ? 5000 : 200000), [=] { Happens(); });
    }
    if (without_scheduler) {
      job->network().After(random.Between(0, 50000),
                           [this] { job->KillScheduler(random.OneIn(2)); });
    }
    (void)job->network().Run([this] { return job->Over(); }, 200000000);
  }

  // Why it did not go as it should; empty: it did. `alone`: whatever happens without a scheduler
  // may end the job.
  std::string Wrong(bool alone) const {
    for (const auto& each : job->all()) {
      if (each->runs()) return NodeName(each->id()) + " waits for ever";
    }
    for (const auto& each : job->all()) {
      if (alone || victims.count(each->life) != 0) continue;
      if (!Counts(*each)) continue;
      if (!each->how.ok()) return NodeName(each->id()) + ": " + each->how.text();
    }
    return {};
  }

  // A newcomer does not until it is in, nor if what it was given is lost with who gave it.
  static bool Counts(const Process& process) {
    if (process.role == Role::kServer) return IsIn(process);
    const auto& worker = static_cast<const WorkerProcess&>(process);
    return worker.in && !(worker.has && worker.how.code() == Code::kClosed);
  }

  Random random;
  std::unique_ptr<Training> job;
  int workers_may_go = 0;
  std::set<uint64_t> victims, held;  // lives
};

// One history by itself, as a test that failed has named it.
std::vector<uint64_t> Seeds(Random* random, int all) {
  if (const char* one = std::getenv("MERCURY_HISTORY")) return {std::strtoull(one, nullptr, 0)};
  std::vector<uint64_t> seeds;
  for (int i = 0; i < Trials(all, 100); ++i) seeds.push_back((*random)());
  return seeds;
}

bool Holds(const History& history, uint64_t seed, bool alone) {
  std::string wrong = history.Wrong(alone);
  if (wrong.empty()) wrong = history.job->WrongSum();
  if (wrong.empty()) return true;
  if (std::getenv("MERCURY_HISTORY") != nullptr) {
    for (const std::string& note : history.job->notes()) std::fprintf(stderr, "%s\n", note.c_str());
  }
  wrong += "; repeat it with MERCURY_HISTORY=" + std::to_string(seed);
  return CheckTrue(__FILE__, __LINE__, wrong.c_str(), false);
}

// Whether some of so many histories show it.
bool IsFound(Planted planted, int histories) {
  Random random;
  for (int i = 0; i < histories; ++i) {
    History history(random(), planted);
    history.Run(static_cast<int>(history.random.Between(1, 6)), false);
    if (!history.Wrong(false).empty() || !history.job->WrongSum().empty()) return true;
  }
  return false;
}

}  // namespace

TEST(a_job_goes_on) {
  Random random;
  int joined = 0, served = 0, lost = 0;
  for (const uint64_t seed : Seeds(&random, 100000)) {
    History history(seed);
    history.Run(static_cast<int>(history.random.Between(0, 10)), false);
    REQUIRE_TRUE(Holds(history, seed, false));
    joined += history.job->joined();
    served += history.job->served();
    lost += static_cast<int>(history.victims.size());
  }
  CHECK_TRUE(joined > 0 && served > 0 && lost > 0);
}

TEST(a_job_goes_on_without_its_scheduler) {
  Random random;
  for (const uint64_t seed : Seeds(&random, 30000)) {
    History history(seed);
    const bool alone = history.random.OneIn(2);
    history.Run(alone ? 0 : static_cast<int>(history.random.Between(1, 4)), true);
    REQUIRE_TRUE(Holds(history, seed, !alone));
  }
}

// Soon, nobody notices; late, everybody has given up what could not wait for it.
TEST(another_scheduler_goes_on_where_one_was_lost) {
  Random random;
  int lost = 0, joined = 0, served = 0;
  for (const uint64_t seed : Seeds(&random, 100000)) {
    History history(seed);
    const bool late = history.random.OneIn(4);
    int64_t at_us = 0;
    const int times = history.random.OneIn(3) ? 2 : 1;
    for (int i = 0; i < times; ++i) {
      at_us += history.random.Between(0, history.random.OneIn(2) ? 15000 : 60000);
      history.job->network().After(at_us,
                                   [&] { history.job->KillScheduler(history.random.OneIn(2)); });
      at_us += history.random.Between(0, late ? 600000 : 120000 / times);
      history.job->network().After(at_us, [&] { history.job->ReturnScheduler(); });
    }
    history.Run(static_cast<int>(history.random.Between(0, 8)), false);
    REQUIRE_TRUE(Holds(history, seed, late || history.job->EndedUnheard()));
    lost += static_cast<int>(history.victims.size());
    joined += history.job->joined();
    served += history.job->served();
  }
  CHECK_TRUE(lost > 0 && joined > 0 && served > 0);
}

// Whatever it has missed. What else happens meanwhile may end the job, but not divide it.
TEST(a_scheduler_that_stops_for_a_while_loses_nobody) {
  Random random;
  for (const uint64_t seed : Seeds(&random, 10000)) {
    History history(seed);
    const int64_t for_us = history.random.Between(0, history.random.OneIn(2) ? 100000 : 1000000);
    history.job->network().After(history.random.Between(0, 50000),
                                 [&] { history.job->StopScheduler(for_us); });
    const bool more = history.random.OneIn(2);
    history.Run(more ? static_cast<int>(history.random.Between(1, 4)) : 0, false);
    REQUIRE_TRUE(Holds(history, seed, more));
  }
}

TEST(what_is_broken_on_purpose_is_found) {
  CHECK_TRUE(IsFound(Planted::kForgetsSums, 3000));
  CHECK_TRUE(IsFound(Planted::kBelievesItself, 3000));
  CHECK_TRUE(IsFound(Planted::kKeepsTheLost, 3000));
}
