// Workers and servers are lost, or leave, while others train on, over simulated links: every sum is
// that of all who are still there, and of what had come of those who are not; all get the same one;
// nobody waits for ever.
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "packets/packet_network.h"
#include "sums/codec.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

// What worker w adds to an element says who is in its sum: a digit for each of them, base 8.
int Digit(size_t tensor, int round, uint64_t element) {
  return 1 + static_cast<int>((element + tensor + static_cast<uint64_t>(round)) % 7);
}

float Part(int worker, size_t tensor, int round, uint64_t element) {
  return static_cast<float>(Digit(tensor, round, element) << 3 * worker);
}

struct Tensors {
  uint64_t elements = 0;
  const Codec* codec = nullptr;             // null: sums are exact
  std::vector<std::shared_ptr<Tensor>> at;  // by worker
};

struct History {
  NetworkOptions options;
  std::unique_ptr<Network> network;
  Random* random = nullptr;
  int rounds = 0;
  std::vector<Tensors> tensors;
  std::set<int> out;                            // that are lost, or have left
  std::map<std::pair<int, size_t>, int> begun;  // rounds, by worker and tensor
  struct Sum {
    std::vector<float> values;
    int workers = 0;
  };
  std::map<std::pair<size_t, int>, std::map<int, Sum>> sums;  // by tensor and round, by worker
  size_t left = 0;                                            // sums that are still to come

  void Begin(int worker, size_t tensor) {
    const int round = ++begun[{worker, tensor}];
    if (round > rounds || out.count(worker) != 0) return;
    const Tensors& of = tensors[tensor];
    auto memory = std::make_shared<std::vector<float>>(of.elements);
    for (uint64_t i = 0; i < of.elements; ++i) (*memory)[i] = Part(worker, tensor, round, i);
    auto op = std::make_shared<Operation>();
    op->tensor = of.at[static_cast<size_t>(worker)];
    op->codec = of.codec;
    op->src = reinterpret_cast<const char*>(memory->data());
    op->dst = reinterpret_cast<char*>(memory->data());
    op->keep = memory;
    op->priority = -static_cast<int>(tensor);
    op->done = [=](const Status& status) {
      if (out.count(worker) != 0) return;
      CHECK_OK(status);
      Take(worker, tensor, round, *memory);
      --left;
      network->After(random->Between(0, 500), [=] { Begin(worker, tensor); });
    };
    ++left;
    network->Submit(worker, op);
  }

  // Whoever is still there has had all of its rounds.
  bool AllDone() {
    for (int w = 0; w < options.workers; ++w) {
      for (size_t t = 0; t < tensors.size(); ++t) {
        if (out.count(w) == 0 && begun[{w, t}] <= rounds) return false;
      }
    }
    return true;
  }

  void Take(int worker, size_t tensor, int round, const std::vector<float>& sum) {
    int count = 0;
    CHECK_TRUE(tensors[tensor].at[static_cast<size_t>(worker)]->WorkersIn(0, 0, &count));
    sums[{tensor, round}][worker] = {sum, count};
  }

  // Whoever is there to the end has the same. What others had before they went is nobody's.
  void CheckAll() {
    for (auto& [of, by_worker] : sums) {
      const Sum* first = nullptr;
      for (const auto& [worker, sum] : by_worker) {
        if (out.count(worker) != 0) continue;
        if (first == nullptr) first = &sum;
        CHECK_TRUE(sum.values == first->values);
        CHECK_EQ(sum.workers, first->workers);
      }
      if (first == nullptr) continue;
      if (tensors[of.first].codec == nullptr) {
        Check(of.first, of.second, first->values, first->workers);
      }
    }
  }
  int WorkersOf(size_t tensor, int round) {
    for (const auto& [worker, sum] : sums[{tensor, round}]) {
      if (out.count(worker) == 0) return sum.workers;
    }
    return -1;
  }

  // Of each worker, all of a packet or nothing of it; of those who are there, all.
  void Check(size_t tensor, int round, const std::vector<float>& sum, int count) {
    size_t most = 0;
    for (uint64_t i = 0; i < sum.size(); ++i) {
      auto value = static_cast<int64_t>(sum[i]);
      std::set<int> in;
      for (int w = 0; w < options.workers; ++w, value >>= 3) {
        if ((value & 7) == 0) continue;
        in.insert(w);
        REQUIRE_EQ(static_cast<int>(value & 7), Digit(tensor, round, i));
      }
      REQUIRE_EQ(value, 0);
      most = std::max(most, in.size());
      for (int w = 0; w < options.workers; ++w) {
        const bool there = out.count(w) == 0;
        if (there) REQUIRE_EQ(in.count(w), size_t{1});
        const auto ever = begun.find({w, tensor});
        const bool sent = ever != begun.end() && ever->second >= round;
        if (!sent) REQUIRE_EQ(in.count(w), size_t{0});
      }
    }
    CHECK_TRUE(static_cast<int>(most) <= count && count <= options.workers);
  }
};

std::unique_ptr<History> Train(PolicyKind kind, Random* random, bool loses_servers = false) {
  auto h = std::make_unique<History>();
  h->random = random;
  NetworkOptions& o = h->options;
  o.workers = static_cast<int>(random->Between(2, 5));
  o.shares = ServerShares(static_cast<int>(random->Between(1, 3)));
  o.lanes = random->OneIn(3) ? static_cast<int>(random->Between(2, 3)) : 1;
  o.checksum = random->OneIn(3);
  o.deterministic = random->OneIn(3);
  o.elastic = true;
  o.keeps_sums = loses_servers;
  o.policy.kind = kind;
  o.policy.packet_bytes = uint64_t{1} << random->Between(8, 14);
  o.policy.adapt_packets = random->OneIn(2);
  h->network = std::make_unique<Network>(o, random);
  h->rounds = static_cast<int>(random->Between(3, 8));
  for (size_t t = 0; t < static_cast<size_t>(random->Between(1, 4)); ++t) {
    Tensors& of = h->tensors.emplace_back();
    of.elements = static_cast<uint64_t>(random->Between(1, random->OneIn(2) ? 200 : 20000));
    if (random->OneIn(4)) of.codec = FindCompression("bf16");
    for (int w = 0; w < o.workers; ++w) {
      TensorTraits traits;
      traits.key = t + 7;
      traits.shape = {of.elements};
      traits.name = "t" + std::to_string(t);
      of.at.push_back(std::make_shared<Tensor>(traits));
    }
  }
  for (int w = 0; w < o.workers; ++w) {
    for (size_t t = 0; t < h->tensors.size(); ++t) h->Begin(w, t);
  }
  return h;
}

}  // namespace

TEST(the_others_train_on) {
  constexpr PolicyKind kPolicies[] = {PolicyKind::kPriority, PolicyKind::kFifo, PolicyKind::kWfbp,
                                      PolicyKind::kP3, PolicyKind::kByteScheduler};
  Random random;
  for (int trial = 0; trial < Trials(1500, 30); ++trial) {
    const std::unique_ptr<History> h = Train(kPolicies[trial % 5], &random);
    Network& network = *h->network;
    // One or two go, sometimes at the same time; one at least stays.
    const int go = random.OneIn(3) && h->options.workers > 2 ? 2 : 1;
    for (int i = 0; i < go; ++i) {
      const int64_t when_us = random.Between(0, random.OneIn(2) ? 3000 : 60000);
      network.After(when_us, [&] {
        const auto worker =
            static_cast<int>(random.Below(static_cast<uint64_t>(h->options.workers)));
        if (!h->out.insert(worker).second) return;
        network.Lose(worker, random.OneIn(2) ? 100 : 30000);
      });
    }
    CHECK_TRUE(network.Run([&] { return h->AllDone(); }));
    h->CheckAll();
    CHECK_OK(network.LinkStatus());
    network.Settle();
    // From the first round on that a lost worker had not begun, all sums are the others' alone.
    const int there = h->options.workers - static_cast<int>(h->out.size());
    for (size_t t = 0; t < h->tensors.size(); ++t) {
      int began = 0;
      for (const int w : h->out) began = std::max(began, std::min(h->begun[{w, t}], h->rounds));
      for (int r = began + 1; r <= h->rounds; ++r) CHECK_EQ(h->WorkersOf(t, r), there);
    }
  }
}

TEST(servers_are_lost) {
  Random random;
  for (int trial = 0; trial < Trials(1500, 30); ++trial) {
    const PolicyKind kinds[] = {PolicyKind::kPriority, PolicyKind::kFifo, PolicyKind::kProphet};
    const PolicyKind kind = kinds[random.Below(3)];
    const std::unique_ptr<History> h = Train(kind, &random, true);
    Network& network = *h->network;
    const int losses = static_cast<int>(random.Between(1, 3));
    for (int i = 0; i < losses; ++i) {
      const int64_t when_us = random.Between(0, random.OneIn(2) ? 3000 : 60000);
      const int64_t within_us = random.OneIn(2) ? 200 : 20000;
      network.After(when_us, [&, within_us] {
        // With a worker of its host, or one while the others still say where they stand.
        const auto workers = static_cast<uint64_t>(h->options.workers);
        if (!random.OneIn(3)) {
          network.After(random.OneIn(2) ? 0 : random.Between(0, 3 * within_us),
                        [&, within_us, workers] {
                          const auto worker = static_cast<int>(random.Below(workers));
                          const bool may_go = h->out.size() + 1 < workers;
                          if (may_go && h->out.insert(worker).second)
                            network.Lose(worker, within_us);
                        });
        }
        network.LoseServer(
            static_cast<int>(random.Below(static_cast<uint64_t>(h->options.shares.servers()))),
            within_us);
      });
    }
    CHECK_TRUE(network.Run([&] { return h->AllDone(); }));
    h->CheckAll();
    CHECK_OK(network.LinkStatus());
  }
}

TEST(workers_with_fewer_batches_leave) {
  Random random;
  for (int trial = 0; trial < Trials(400); ++trial) {
    const std::unique_ptr<History> h = Train(PolicyKind::kPriority, &random);
    const int leaver = static_cast<int>(random.Below(static_cast<uint64_t>(h->options.workers)));
    const int last = static_cast<int>(random.Between(1, h->rounds - 1));
    bool has_left = false;
    const auto done = [&](int w, int rounds) {
      for (size_t t = 0; t < h->tensors.size(); ++t) {
        if (h->begun[{w, t}] <= rounds) return false;
      }
      return true;
    };
    // It begins no more after its last round, and says goodbye when that is in.
    h->rounds = last;
    CHECK_TRUE(h->network->Run([&] {
      for (int w = 0; w < h->options.workers; ++w) {
        if (!done(w, last)) return false;
      }
      return true;
    }));
    h->out.insert(leaver);
    h->network->Depart(leaver);
    has_left = true;
    h->rounds = last + 3;
    for (int w = 0; w < h->options.workers; ++w) {
      for (size_t t = 0; t < h->tensors.size(); ++t) {
        h->begun[{w, t}] = last;
        if (w != leaver) h->Begin(w, t);
      }
    }
    CHECK_TRUE(h->network->Run([&] {
      for (int w = 0; w < h->options.workers; ++w) {
        if (w != leaver && !done(w, last + 3)) return false;
      }
      return true;
    }));
    CHECK_TRUE(has_left);
    for (size_t t = 0; t < h->tensors.size(); ++t) {
      CHECK_EQ(h->WorkersOf(t, last), h->options.workers);
      CHECK_EQ(h->WorkersOf(t, last + 1), h->options.workers - 1);
    }
  }
}
