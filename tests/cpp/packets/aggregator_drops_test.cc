// Workers are lost, or leave, while others train on, over simulated links: every sum is that of all
// who are still there, and of what had come of those who are not; all get the same one; nobody
// waits for ever.
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "packets/lone_server.h"
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
  std::set<int> out;                                   // that are lost, or have left
  std::map<std::pair<int, size_t>, int> begun;         // rounds, by worker and tensor
  std::map<std::pair<size_t, int>, std::string> sums;  // as the first of the workers got them
  std::map<std::pair<size_t, int>, int> workers;       // the same
  size_t left = 0;                                     // sums that are still to come

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

  void Take(int worker, size_t tensor, int round, const std::vector<float>& sum) {
    const std::string bytes(reinterpret_cast<const char*>(sum.data()), sum.size() * sizeof(float));
    const auto [first, fresh] = sums.try_emplace({tensor, round}, bytes);
    CHECK_TRUE(first->second == bytes);
    int count = 0;
    CHECK_TRUE(tensors[tensor].at[static_cast<size_t>(worker)]->WorkersIn(0, 0, &count));
    const auto [counted, first_count] = workers.try_emplace({tensor, round}, count);
    CHECK_EQ(counted->second, count);
    (void)first_count;
    if (fresh && tensors[tensor].codec == nullptr) Check(tensor, round, sum, count);
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

std::unique_ptr<History> Train(PolicyKind kind, Random* random) {
  auto h = std::make_unique<History>();
  h->random = random;
  NetworkOptions& o = h->options;
  o.workers = static_cast<int>(random->Between(2, 5));
  o.shares = ServerShares(static_cast<int>(random->Between(1, 3)));
  o.lanes = random->OneIn(3) ? static_cast<int>(random->Between(2, 3)) : 1;
  o.checksum = random->OneIn(3);
  o.deterministic = random->OneIn(3);
  o.elastic = true;
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
  for (int trial = 0; trial < Trials(5000); ++trial) {
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
    const auto all = [&] {
      for (int w = 0; w < h->options.workers; ++w) {
        for (size_t t = 0; t < h->tensors.size(); ++t) {
          if (h->out.count(w) == 0 && h->begun[{w, t}] <= h->rounds) return false;
        }
      }
      return true;
    };
    CHECK_TRUE(network.Run(all));
    CHECK_OK(network.LinkStatus());
    network.Settle();
    // From the first round on that a lost worker had not begun, all sums are the others' alone.
    const int there = h->options.workers - static_cast<int>(h->out.size());
    for (size_t t = 0; t < h->tensors.size(); ++t) {
      int began = 0;
      for (const int w : h->out) began = std::max(began, std::min(h->begun[{w, t}], h->rounds));
      for (int r = began + 1; r <= h->rounds; ++r) CHECK_EQ((h->workers[{t, r}]), there);
    }
  }
}

TEST(workers_with_fewer_batches_leave) {
  Random random;
  for (int trial = 0; trial < Trials(1000); ++trial) {
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
      CHECK_EQ((h->workers[{t, last}]), h->options.workers);
      CHECK_EQ((h->workers[{t, last + 1}]), h->options.workers - 1);
    }
  }
}

// --- one server, packet by packet
// -----------------------------------------------------------------

namespace {

AggregatorOptions Elastic(int workers) {
  AggregatorOptions o = Options(workers);
  o.elastic = true;
  return o;
}

}  // namespace

TEST(a_part_of_a_copy_stays_and_the_rest_is_the_others) {
  LoneServer server(Elastic(3));
  for (int w = 0; w < 3; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 100));
  REQUIRE_OK(server.Data(0, 0, 0, 1, Of(64, 1)));
  REQUIRE_OK(server.Data(1, 0, 0, 1, Of(100, 2)));
  server.aggregator.Drop(0, 0);
  CHECK_TRUE(server.Drain(1).empty());
  REQUIRE_OK(server.Data(2, 0, 0, 1, Of(100, 4)));
  for (const int w : {1, 2}) {
    std::string sum;
    for (const Got& got : server.Drain(w)) {
      sum += got.payload;
      CHECK_EQ(got.header.priority, 3);  // it is, in part
    }
    CHECK_TRUE(sum == Of(64, 7) + Of(36, 6));
  }
  CHECK_TRUE(server.Drain(0).empty());
  CHECK_STATUS(Code::kClosed, server.Data(0, 0, 64, 1, Of(36, 1)));
  for (const int w : {1, 2}) REQUIRE_OK(server.Data(w, 0, 0, 2, Of(100, 1)));
  const auto next = server.Drain(1);
  REQUIRE_EQ(next.size(), size_t{1});
  CHECK_TRUE(next[0].payload == Of(100, 2));
  CHECK_EQ(next[0].header.priority, 2);
}

TEST(the_loss_of_the_last_one_awaited_makes_the_sum) {
  for (const bool deterministic : {false, true}) {
    AggregatorOptions options = Elastic(3);
    options.deterministic = deterministic;
    LoneServer server(options);
    for (int w = 0; w < 3; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 100));
    for (const int w : {0, 2}) REQUIRE_OK(server.Data(w, 0, 0, 1, Of(100, 3)));
    REQUIRE_OK(server.Data(1, 0, 0, 1, Of(64, 1)));
    for (const int w : {0, 1, 2}) server.Drain(w);  // what all have of it
    server.aggregator.Drop(1, 0);
    std::string rest;
    for (const Got& got : server.Drain(0)) rest += got.payload;
    // Kept copies are whole, or are not there.
    CHECK_TRUE(rest == (deterministic ? Of(100, 6) : Of(36, 6)));
  }
}

TEST(a_copy_that_is_whole_stays) {
  LoneServer server(Elastic(3));
  for (int w = 0; w < 3; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 10));
  REQUIRE_OK(server.Data(1, 0, 0, 1, Of(10, 1)));
  server.aggregator.Drop(1, 0);
  server.aggregator.Drop(1, 0);  // twice is once
  REQUIRE_OK(server.Data(0, 0, 0, 1, Of(10, 1)));
  CHECK_TRUE(server.Drain(0).empty());
  REQUIRE_OK(server.Data(2, 0, 0, 1, Of(10, 1)));
  const auto got = server.Drain(2);
  REQUIRE_EQ(got.size(), size_t{1});
  CHECK_TRUE(got[0].payload == Of(10, 3));
  CHECK_EQ(got[0].header.priority, 3);
}

TEST(what_was_to_be_sent_to_it_is_let_go_of) {
  LoneServer server(Elastic(2));
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 1000));
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Data(w, 0, 0, 1, Of(1000, 1)));
  server.aggregator.Drop(1, 0);
  CHECK_TRUE(server.aggregator.Depths(1).empty());
  server.Drain(0);
  for (uint8_t round = 2; round < 20; ++round) {
    REQUIRE_OK(server.Data(0, 0, 0, round, Of(1000, 1)));
    CHECK_EQ(server.Drain(0).size(), size_t{1});
  }
  CHECK_TRUE(server.aggregator.pool().bytes_handed_out() <= 8192);
}

TEST(without_worker_0_there_are_no_first_values) {
  LoneServer server(Elastic(2));
  for (int w = 0; w < 2; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 10));
  REQUIRE_OK(server.Send(1, PacketKind::kFetch, 0));
  server.aggregator.Drop(0, 0);
  auto got = server.Drain(1);
  REQUIRE_EQ(got.size(), size_t{1});
  CHECK_TRUE(got[0].header.kind == PacketKind::kError);
  // Nor of what is declared later.
  REQUIRE_OK(server.Declare(1, 1, 8, 10));
  REQUIRE_OK(server.Send(1, PacketKind::kFetch, 1));
  got = server.Drain(1);
  REQUIRE_EQ(got.size(), size_t{1});
  CHECK_TRUE(got[0].header.kind == PacketKind::kError &&
             got[0].payload.find("worker 0 has gone") != std::string::npos);
}

TEST(what_is_asked_does_not_name_it) {
  LoneServer server(Elastic(3));
  for (int w = 0; w < 3; ++w) REQUIRE_OK(server.Declare(w, 0, 7, 10));
  REQUIRE_OK(server.Data(0, 0, 0, 1, Of(10, 1)));
  server.aggregator.Drop(1, 0);
  REQUIRE_OK(server.Send(0, PacketKind::kAsk, 0));
  const auto got = server.Drain(0);
  REQUIRE_EQ(got.size(), size_t{1});
  CHECK_TRUE(got[0].payload == std::string("\0\0\1", 3));
}

// Lanes add what arrives while others have their turns, and one worker goes in the middle of it.
TEST(lanes_add_while_a_worker_goes) {
  constexpr int kWorkers = 4, kLanes = 2, kGone = 3;
  constexpr uint64_t kSlot = 16 << 10, kSlots = 8;
  Random random;
  for (int trial = 0; trial < Trials(1000); ++trial) {
    AggregatorOptions options = Elastic(kWorkers);
    options.lanes = kLanes;
    options.packet_bytes = kSlot;
    options.deterministic = random.OneIn(3);
    options.wake = [](int /*lane*/) {};
    options.allocate = nullptr;
    Aggregator aggregator(options);
    Declaration declared;
    declared.key = 7;
    declared.elements = kSlot * kSlots;
    declared.dtype = DType::kUint8;
    declared.codec = PlainCodec(DType::kUint8).number;
    const auto send = [&](int link, Header header, const std::string& payload) {
      header.length = static_cast<uint32_t>(payload.size());
      char* target = nullptr;
      Status status = aggregator.OnHeader(link, header, 0, &target);
      if (!status.ok()) return status;
      if (target != nullptr) std::memcpy(target, payload.data(), payload.size());
      return aggregator.OnPacket(link, header, 0);
    };
    for (int link = 0; link < kWorkers * kLanes; ++link) {
      Header header;
      header.kind = PacketKind::kDeclare;
      REQUIRE_OK(send(link, header, Encode(declared)));
    }
    std::vector<std::thread> threads;
    std::atomic<int> parts{0};
    const int drop_after = static_cast<int>(random.Below(kWorkers * kSlots * 4));
    for (int link = 0; link < kWorkers * kLanes; ++link) {
      threads.emplace_back([&, link, seed = random()] {
        Random own;
        own.seed(seed);
        const auto lane = static_cast<uint64_t>(link % kLanes);
        for (uint64_t slot = lane; slot < kSlots; slot += kLanes) {
          for (uint64_t at = 0; at < kSlot;) {
            const uint64_t left = (kSlot - at) / 64;
            const uint64_t count = own.OneIn(4) ? left * 64 : (own.Below(left) + 1) * 64;
            Header header;
            header.offset = slot * kSlot + at;
            header.round = 1;
            const Status status =
                send(link, header, Of(count, static_cast<char>(1 << link / kLanes)));
            ++parts;
            if (status.code() == Code::kClosed && link / kLanes == kGone) return;
            CHECK_OK(status);
            at += count;
          }
        }
      });
    }
    threads.emplace_back([&] {
      for (int look = 0; parts < drop_after && look < 20000; ++look) std::this_thread::yield();
      aggregator.Drop(kGone, 0);
    });
    for (std::thread& thread : threads) thread.join();
    std::vector<std::string> sums(kGone, Of(kSlot * kSlots, 0));
    std::vector<int> workers(kSlots, 0);
    for (int link = 0; link < kGone * kLanes; ++link) {
      OutPacket out;
      while (aggregator.Next(link, 0, &out)) {
        const Header& header = out.header;
        std::string& sum = sums[static_cast<size_t>(link / kLanes)];
        CHECK_TRUE(sum.substr(header.offset, header.length) == Of(header.length, 0));  // once
        std::memcpy(&sum[header.offset], out.payload, header.length);
        workers[header.offset / kSlot] = header.priority;
      }
    }
    for (uint64_t slot = 0; slot < kSlots; ++slot) {
      const bool some = sums[0].substr(slot * kSlot, kSlot).find('\x0f') != std::string::npos;
      CHECK_EQ(workers[slot], kGone + (some ? 1 : 0));
    }
    for (const std::string& sum : sums) {
      CHECK_TRUE(sum == sums[0]);
      CHECK_TRUE(sum.find_first_not_of("\x07\x0f") == std::string::npos);
    }
  }
}
