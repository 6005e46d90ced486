// Over loopback: a server ends in the middle of rounds, and another takes its place.
#include <algorithm>
#include <functional>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "packets/plane.h"

using namespace mercury;
namespace {

using testing::Plane;
using testing::PlaneOptions;

const std::vector<size_t> kSizes = {1, 7, 0, 1000, 70001};

MercuryOptions Elastic(int workers, int servers, int lanes) {
  MercuryOptions options = PlaneOptions(workers, servers);
  options.lanes = lanes;
  options.elastic = options.servers_may_go = true;
  options.checksum = lanes == 1;
  return options;
}

// With all whose slots it sums. Some workers may hear of it before the server that takes the place
// does.
void Lose(Plane* plane, int workers, int server, const std::vector<int>& with, int next,
          bool workers_first) {
  plane->server(server).Stop();
  const uint64_t now = plane->Begins();
  const auto adopt = [&](int each) {
    plane->server(next).Adopt(each, now);
    plane->server(next).Hears(now);
  };
  for (const int each : with) {
    if (!workers_first) adopt(each);
    for (int w = 0; w < workers; ++w) plane->worker(w).Move(each, next, plane->address(next), now);
    if (workers_first) adopt(each);
  }
}

// Of worker 0, to both servers.
Status LetIn(Plane* plane, const std::string& newcomer) {
  auto op = std::make_shared<Operation>();
  op->kind = Operation::Kind::kCommand;
  op->command.head = kLetInHead;
  op->command.body = newcomer;
  std::promise<Status> answered;
  op->done = [&answered](const Status& status) { answered.set_value(status); };
  plane->worker(0).Submit(std::move(op));
  return answered.get_future().get();
}

}  // namespace

TEST(another_takes_the_place_between_rounds_and_within_them) {
  testing::Random random;
  for (int trial = 0; trial < 12; ++trial) {
    const int lanes = trial % 3 == 0 ? 2 : 1;
    const MercuryOptions options = Elastic(3, 3, lanes);
    Plane plane(options);
    plane.StartWorkers();
    REQUIRE_TRUE(plane.WaitReady());
    for (int round = 0; round < 2; ++round) REQUIRE_TRUE(plane.Round(kSizes));
    const auto lose = [&](int server, const std::vector<int>& with, int next) {
      if (random.OneIn(3)) return Lose(&plane, 3, server, with, next, random.OneIn(2));
      std::vector<std::shared_ptr<testing::Exchange>> exchanges;
      for (int w = 0; w < 3; ++w) {
        exchanges.push_back(plane.Submit(w, 4, kSizes[4], 1));
        if (random.OneIn(3)) std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
      Lose(&plane, 3, server, with, next, random.OneIn(2));
      for (const auto& exchange : exchanges) {
        REQUIRE_TRUE(plane.WaitDone(exchange));
        CHECK_OK(exchange->status);
        CHECK_TRUE(plane.Right(*exchange, 4));
      }
    };
    lose(1, {1}, 2);
    for (int round = 0; round < 2; ++round) REQUIRE_TRUE(plane.Round(kSizes));
    // With its own, what it has taken on moves on; and values can still be fetched.
    if (trial % 2 == 0) {
      lose(2, {1, 2}, 0);
      for (int round = 0; round < 2; ++round) REQUIRE_TRUE(plane.Round(kSizes));
    }
    for (int w = 0; w < 3; ++w) {
      const auto fetched = plane.Submit(w, 4, kSizes[4], 9, true);
      REQUIRE_TRUE(plane.WaitDone(fetched));
      CHECK_OK(fetched->status);
      CHECK_TRUE(plane.Right(*fetched, 4));
    }
    plane.Stop();
  }
}

// Workers hear of it one by one, before and after those that served meanwhile, within rounds and
// between them.
TEST(a_server_that_comes_has_the_slots_again) {
  testing::Random random;
  for (int trial = 0; trial < 12; ++trial) {
    const MercuryOptions options = Elastic(3, 3, trial % 3 == 0 ? 2 : 1);
    Plane plane(options);
    plane.StartWorkers();
    REQUIRE_TRUE(plane.WaitReady());
    REQUIRE_TRUE(plane.Round(kSizes));
    for (int times = 0; times < 3; ++times) {
      Lose(&plane, 3, 1, {1}, 2, random.OneIn(2));
      for (int round = 0; round < 2; ++round) REQUIRE_TRUE(plane.Round(kSizes));
      plane.StartServerAgain(1);
      std::promise<Status> may;
      plane.server(2).Comes(1, {1}, [&may](const Status& status) { may.set_value(status); });
      CHECK_OK(may.get_future().get());
      std::vector<std::shared_ptr<testing::Exchange>> exchanges;
      const auto submit = [&](int w) {
        if (random.OneIn(2)) exchanges.push_back(plane.Submit(w, 4, kSizes[4], 1));
        return exchanges.size();
      };
      const uint64_t now = plane.Begins();
      std::vector<std::function<void()>> hear = {[&] {
                                                   plane.server(1).IsIn();
                                                   plane.server(1).Hears(now);
                                                 },
                                                 [&] {
                                                   plane.server(2).Yield(1, now);
                                                   plane.server(2).NoLongerComes(1);
                                                   plane.server(2).Hears(now);
                                                 }};
      std::set<int> begun;
      for (int w = 0; w < 3; ++w) {
        const size_t before = exchanges.size();
        if (submit(w) != before) begun.insert(w);
        hear.push_back([&plane, w, now] { plane.worker(w).Move(1, 1, plane.address(1), now); });
      }
      std::shuffle(hear.begin(), hear.end(), random);
      for (const auto& each : hear) {
        each();
        if (random.OneIn(3)) std::this_thread::sleep_for(std::chrono::microseconds(300));
      }
      for (int w = 0; w < 3; ++w) {
        if (begun.count(w) == 0) exchanges.push_back(plane.Submit(w, 4, kSizes[4], 1));
      }
      for (const auto& exchange : exchanges) {
        REQUIRE_TRUE(plane.WaitDone(exchange));
        CHECK_OK(exchange->status);
        CHECK_TRUE(plane.Right(*exchange, 4));
      }
      for (int round = 0; round < 2; ++round) REQUIRE_TRUE(plane.Round(kSizes));
      CHECK_TRUE(plane.server(2).Figures().find("tensors") != std::string::npos);
    }
    CHECK_TRUE(plane.events().empty());
    plane.Stop();
  }
}

TEST(first_values_that_were_fetched_are_not_lost_with_a_server) {
  Plane plane(Elastic(2, 2, 1));
  plane.StartWorkers();
  REQUIRE_TRUE(plane.WaitReady());
  const auto fetch = [&](int w) { return plane.Submit(w, 4, kSizes[4], 9, true); };
  const auto given = plane.Give(0, 4, kSizes[4]);
  REQUIRE_TRUE(plane.WaitDone(given));
  CHECK_OK(given->status);
  const auto one = fetch(0), other = fetch(1);
  REQUIRE_TRUE(plane.WaitDone(one) && plane.WaitDone(other));
  CHECK_OK(one->status);
  CHECK_TRUE(one->sum == given->values && other->sum == given->values);
  Lose(&plane, 2, 1, {1}, 0, false);
  const auto again = fetch(1);
  REQUIRE_TRUE(plane.WaitDone(again));
  CHECK_OK(again->status);
  CHECK_TRUE(again->sum == given->values);
}

// Nor is such a server let in before they are.
TEST(what_nobody_else_has_is_not_given) {
  Plane plane(Elastic(2, 2, 1));
  plane.StartWorkers();
  REQUIRE_TRUE(plane.WaitReady());
  Lose(&plane, 2, 1, {1}, 0, false);
  REQUIRE_TRUE(plane.WaitDone(plane.Give(0, 4, kSizes[4])));
  std::promise<Status> says;
  plane.server(0).Comes(1, {1}, [&says](const Status& status) { says.set_value(status); });
  auto said = says.get_future();
  const auto is_there = [&said](int ms) {
    return said.wait_for(std::chrono::milliseconds(ms)) == std::future_status::ready;
  };
  CHECK_TRUE(!is_there(1500));
  REQUIRE_TRUE(plane.WaitDone(plane.Submit(1, 4, kSizes[4], 9, true)));
  REQUIRE_TRUE(is_there(20000));
  CHECK_OK(said.get());
  // Where it has nothing that the other one would have, it has nothing to say.
  std::promise<Status> at_once;
  plane.server(0).Comes(1, {}, [&at_once](const Status& status) { at_once.set_value(status); });
  CHECK_OK(at_once.get_future().get());
}

TEST(what_the_lost_one_had_is_fetched_at_once) {
  const MercuryOptions options = Elastic(2, 2, 1);
  Plane plane(options);
  plane.StartWorkers();
  REQUIRE_TRUE(plane.WaitReady());
  REQUIRE_TRUE(plane.Round(kSizes));
  Lose(&plane, 2, 1, {1}, 0, true);
  for (int w = 0; w < 2; ++w) {
    const auto fetched = plane.Submit(w, 4, kSizes[4], 9, true);
    REQUIRE_TRUE(plane.WaitDone(fetched));
    CHECK_OK(fetched->status);
    CHECK_TRUE(plane.Right(*fetched, 4));
  }
  // What is new there is summed and fetched as anywhere.
  const auto one = plane.Submit(0, 9, 5000, 1), other = plane.Submit(1, 9, 5000, 1);
  REQUIRE_TRUE(plane.WaitDone(one) && plane.WaitDone(other));
  CHECK_TRUE(plane.Right(*one, 9) && plane.Right(*other, 9));
}

// One has left, or leaves without having heard that a server is lost.
TEST(who_has_left_is_not_waited_for) {
  for (const bool before : {true, false}) {
    const MercuryOptions options = Elastic(3, 2, 1);
    Plane plane(options);
    plane.StartWorkers();
    REQUIRE_TRUE(plane.WaitReady());
    REQUIRE_TRUE(plane.Round(kSizes));
    if (before) plane.worker(2).Stop();
    Lose(&plane, 2, 1, {1}, 0, false);
    if (!before) plane.worker(2).Stop();
    for (int round = 0; round < 2; ++round) {
      const auto one = plane.Submit(0, 4, kSizes[4], 1), other = plane.Submit(1, 4, kSizes[4], 1);
      REQUIRE_TRUE(plane.WaitDone(one) && plane.WaitDone(other));
      CHECK_OK(one->status);
      CHECK_TRUE(one->sum == other->sum);
    }
  }
}

TEST(who_was_there_and_is_not_takes_no_part_in_what_is_moved) {
  const MercuryOptions options = Elastic(3, 2, 1);
  Plane plane(options);
  plane.StartWorkers();
  REQUIRE_TRUE(plane.WaitReady());
  REQUIRE_TRUE(plane.Round(kSizes));
  for (int s = 0; s < 2; ++s) plane.server(s).Drop(2);
  Lose(&plane, 2, 1, {1}, 0, false);
  for (int round = 0; round < 3; ++round) {
    const auto one = plane.Submit(0, 4, kSizes[4], 1), other = plane.Submit(1, 4, kSizes[4], 1);
    REQUIRE_TRUE(plane.WaitDone(one) && plane.WaitDone(other));
    CHECK_OK(one->status);
    CHECK_TRUE(one->sum == other->sum);
    for (size_t i = 0; i < one->sum.size(); ++i) {
      const float both = Plane::ValueOf(0, 4, i) + Plane::ValueOf(1, 4, i);
      if (!CHECK_TRUE(one->sum[i] == both)) break;
    }
  }
}

// Whoever lets it in may not have heard of it.
TEST(who_is_gone_is_not_let_in_nor_who_has_come_in_its_place) {
  Plane plane(Elastic(3, 2, 1));
  plane.StartWorkers();
  REQUIRE_TRUE(plane.WaitReady());
  for (int s = 0; s < 2; ++s) plane.server(s).Drop(2);
  CHECK_STATUS(Code::kPeerLost, LetIn(&plane, "2 0"));
  for (int s = 0; s < 2; ++s) plane.server(s).Expect(2, 1);
  CHECK_STATUS(Code::kPeerLost, LetIn(&plane, "2 0"));
  CHECK_OK(LetIn(&plane, "2 1"));
  for (const char* const nonsense : {"3 0", "2", "2 1 0", "x"}) {
    CHECK_STATUS(Code::kCorrupt, LetIn(&plane, nonsense));
  }
}
