// Workers come while others train, over simulated links, in new places and in those of the lost;
// they are lost again, as are those that let them in, and servers. Every sum is that of all who
// are in, all get the same one, and nobody waits for ever.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "packets/packet_network.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

// Of a worker's part, a digit, base 8: 8 workers at most.
constexpr int kPlacesMax = 8;

struct Training {
  struct Trainer {
    bool in = false;
    int entry = 0;            // how often its place was given away
    int step = 0, since = 0;  // rounds done; the first one that it is in, less one
    size_t under_way = 0;
  };
  struct LettingIn {
    int newcomer = -1, by = -1;
    size_t missing = 0;  // servers that do not expect it yet
  };

  Training(const NetworkOptions& its_options, Random* its_random, int tensors)
      : options(its_options), random(its_random), network(options, random) {
    trainers.resize(static_cast<size_t>(options.workers));
    for (int t = 0; t < tensors; ++t) {
      elements.push_back(static_cast<uint64_t>(random->Between(1, random->OneIn(2) ? 100 : 8000)));
    }
    for (int w = 0; w < options.workers; ++w) NewTensors(w);
    for (int w = 0; w < options.workers; ++w) {
      if (options.absent.count(w) != 0) continue;
      Of(w).in = true;
      Step(w);
    }
  }

  Trainer& Of(int worker) { return trainers[static_cast<size_t>(worker)]; }
  int First() const {
    for (int w = 0; w < options.workers; ++w) {
      if (trainers[static_cast<size_t>(w)].in) return w;
    }
    return -1;
  }
  size_t In() const {
    size_t in = 0;
    for (const Trainer& each : trainers) in += each.in ? 1 : 0;
    return in;
  }
  void NewTensors(int worker) {
    for (size_t t = 0; t < elements.size(); ++t) {
      TensorTraits traits;
      traits.key = t + 7;
      traits.shape = {elements[t]};
      traits.name = "t" + std::to_string(t);
      tensor_of[{worker, t}] = std::make_shared<Tensor>(traits);
    }
  }
  static float Part(int worker, size_t tensor, int round) {
    const int digit = 1 + static_cast<int>((tensor + static_cast<size_t>(round)) % 7);
    return static_cast<float>(digit << 3 * worker);
  }

  void Step(int worker) {
    Trainer& its = Of(worker);
    if (!its.in || its.step >= steps) return;
    its.under_way = elements.size();
    for (size_t t = 0; t < elements.size(); ++t) {
      network.After(random->Between(0, 300), [=, entry = its.entry, round = its.step + 1] {
        if (Of(worker).in && Of(worker).entry == entry) Sum(worker, t, round);
      });
    }
  }

  void Sum(int worker, size_t tensor, int round) {
    auto memory =
        std::make_shared<std::vector<float>>(elements[tensor], Part(worker, tensor, round));
    auto op = std::make_shared<Operation>();
    op->tensor = tensor_of[{worker, tensor}];
    op->src = reinterpret_cast<const char*>(memory->data());
    op->dst = reinterpret_cast<char*>(memory->data());
    op->keep = memory;
    op->priority = -static_cast<int>(tensor);
    op->done = [=, entry = Of(worker).entry](const Status& status) {
      Trainer& its = Of(worker);
      if (!its.in || its.entry != entry) return;
      CHECK_OK(status);
      sums[{tensor, round}][worker] = *memory;
      if (--its.under_way != 0) return;
      its.step = round;
      network.After(random->Between(0, 500), [=] {
        if (Of(worker).in && Of(worker).entry == entry) Boundary(worker);
      });
    };
    network.Submit(worker, op);
  }

  // Something happens within the next step or so.
  void Disturb() {
    network.After(random->Between(0, 3000), [this] {
      const auto worker = static_cast<int>(random->Below(static_cast<uint64_t>(options.workers)));
      const uint64_t what = random->Below(options.keeps_sums ? 6 : 5);
      if (what < 3) Come();
      if (what == 3) Lose(worker);
      if (what == 4 && let_in.newcomer >= 0) Lose(random->OneIn(2) ? let_in.by : let_in.newcomer);
      if (what == 5) {
        LoseServer(
            static_cast<int>(random->Below(static_cast<uint64_t>(options.shares.servers()))));
      }
    });
  }

  // The worker has done a step. The first one lets others in, one step after it has heard of them.
  void Boundary(int worker) {
    if (random->OneIn(4)) Disturb();
    const bool over = Of(worker).step == steps;
    if (over || worker != First() || let_in.newcomer >= 0) return Step(worker);
    const int before = std::exchange(heard_of, waiting.empty() ? -1 : *waiting.begin());
    if (heard_of < 0 || heard_of != before) return Step(worker);
    heard_of = -1;
    const int newcomer = *waiting.begin();
    waiting.erase(newcomer);
    let_in = {newcomer, worker, static_cast<size_t>(options.shares.servers())};
    CHECK_OK(network.streams(newcomer).TakeRounds(network.streams(worker).Rounds()));
    for (int s = 0; s < options.shares.servers(); ++s) {
      network.After(random->Between(0, 2000), [=, entry = Of(newcomer).entry] {
        if (let_in.newcomer != newcomer || Of(newcomer).entry != entry) return;
        network.LetIn(newcomer, s);
        if (--let_in.missing == 0) IsIn();
      });
    }
  }

  void IsIn() {
    const auto [newcomer, by, missing] = std::exchange(let_in, LettingIn());
    network.HasBeenLetIn(newcomer);
    Trainer& its = Of(newcomer);
    its.in = true;
    its.step = its.since = Of(by).step;
    ++joined;
    Step(by);
    network.After(random->Between(0, 3000), [this, newcomer = newcomer, entry = its.entry] {
      if (Of(newcomer).in && Of(newcomer).entry == entry) Step(newcomer);
    });
  }

  // Nothing comes of it: the newcomer is lost, and who lets it in goes on, if it is there.
  void GiveUp() {
    const auto [newcomer, by, missing] = std::exchange(let_in, LettingIn());
    if (newcomer < 0) return;
    ++given_up;
    network.Lose(newcomer, 2000);
    if (Of(by).in) Step(by);
  }

  void Come() {
    for (int w = 0; w < options.workers; ++w) {
      if (Of(w).in || w == let_in.newcomer || waiting.count(w) != 0) continue;
      ++Of(w).entry;
      NewTensors(w);
      network.Expect(w);
      waiting.insert(w);
      return;
    }
  }
  void Lose(int worker) {
    if (waiting.count(worker) != 0 || worker == let_in.newcomer) {
      if (worker == let_in.newcomer) return GiveUp();
      waiting.erase(worker);
      return network.Lose(worker, 2000);
    }
    if (!Of(worker).in || In() == 1) return;
    Of(worker).in = false;
    ++lost;
    network.Lose(worker, 2000);
    if (worker == let_in.by) GiveUp();
  }
  void LoseServer(int server) {
    GiveUp();
    network.LoseServer(server, 2000);
  }

  bool Done() {
    for (const Trainer& each : trainers) {
      if (each.in && each.step < steps) return false;
    }
    return true;
  }

  // Those who are there in the end had the same sums, of all of them as far as they were in.
  void Check() {
    for (const auto& [of, by_worker] : sums) {
      const std::vector<float>* first = nullptr;
      for (int w = 0; w < options.workers; ++w) {
        if (!Of(w).in || of.second <= Of(w).since) continue;
        const auto found = by_worker.find(w);
        if (of.second <= steps) REQUIRE_TRUE(found != by_worker.end());
        if (first == nullptr) first = &found->second;
        CHECK_TRUE(found->second == *first);
      }
      if (first == nullptr) continue;
      for (const float value : *first) {
        auto rest = static_cast<int64_t>(value);
        for (int w = 0; w < options.workers; ++w, rest >>= 3) {
          const bool in = Of(w).in && of.second > Of(w).since;
          const auto part = static_cast<int64_t>(Part(0, of.first, of.second));
          if (in) REQUIRE_EQ(rest & 7, part);
          REQUIRE_TRUE((rest & 7) == 0 || (rest & 7) == part);
        }
        REQUIRE_EQ(rest, 0);
      }
    }
  }

  NetworkOptions options;
  Random* random;
  std::vector<uint64_t> elements;
  std::vector<Trainer> trainers;
  std::map<std::pair<int, size_t>, std::shared_ptr<Tensor>> tensor_of;  // by worker and number
  std::map<std::pair<size_t, int>, std::map<int, std::vector<float>>> sums;
  std::set<int> waiting;
  int heard_of = -1;
  LettingIn let_in;
  int steps = 20, joined = 0, lost = 0, given_up = 0;
  Network network;
};

NetworkOptions Options(Random* random) {
  NetworkOptions o;
  o.workers = static_cast<int>(random->Between(2, kPlacesMax));
  o.shares = ServerShares(static_cast<int>(random->Between(1, 3)));
  o.lanes = random->OneIn(3) ? static_cast<int>(random->Between(2, 3)) : 1;
  o.checksum = random->OneIn(3);
  o.deterministic = random->OneIn(3);
  o.elastic = true;
  const PolicyKind kinds[] = {PolicyKind::kPriority, PolicyKind::kFifo, PolicyKind::kProphet};
  o.policy.kind = kinds[random->Below(3)];
  o.policy.packet_bytes = uint64_t{1} << random->Between(8, 14);
  const int first = static_cast<int>(random->Between(1, o.workers));
  for (int w = first; w < o.workers; ++w) o.absent.insert(w);
  return o;
}

}  // namespace

TEST(workers_come_and_go) {
  Random random;
  int joined = 0, lost = 0, given_up = 0;
  for (int trial = 0; trial < Trials(2500); ++trial) {
    NetworkOptions options = Options(&random);
    options.keeps_sums = options.shares.servers() > 1 && random.OneIn(3);
    Training training(options, &random, static_cast<int>(random.Between(1, 3)));
    CHECK_TRUE(training.network.Run([&] { return training.Done(); }));
    CHECK_OK(training.network.LinkStatus());
    training.Check();
    joined += training.joined;
    lost += training.lost;
    given_up += training.given_up;
  }
  // That it was tried.
  const int trials = Trials(2500);
  CHECK_TRUE(joined > trials && lost > trials / 2 && given_up > trials / 50);
}
