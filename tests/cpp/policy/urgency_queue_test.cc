#include "policy/urgency_queue.h"

#include <algorithm>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

constexpr int32_t kLowest = std::numeric_limits<int32_t>::min();
constexpr int32_t kHighest = std::numeric_limits<int32_t>::max();

// Counts how often such items are moved.
int moves = 0;
struct Moved {
  explicit Moved(int32_t its_priority) : priority(its_priority) {}
  Moved(Moved&& other) noexcept : priority(other.priority) { ++moves; }
  Moved& operator=(Moved&& other) noexcept {
    priority = other.priority;
    ++moves;
    return *this;
  }
  int32_t priority;
};

}  // namespace

TEST(the_most_urgent_comes_first_and_equals_in_order) {
  UrgencyQueue<int> queue;
  queue.Push(0, 1);
  queue.Push(kLowest, 2);
  queue.Push(kHighest, 3);
  queue.Push(0, 4);
  queue.Push(kHighest, 5);
  CHECK_EQ(queue.FrontPriority(), kHighest);
  for (const int expected : {3, 5, 1, 4, 2}) {
    CHECK_EQ(queue.Front(), expected);
    CHECK_EQ(queue.Pop(), expected);
  }
  CHECK_TRUE(queue.empty());
}

TEST(the_first_that_may_be_taken) {
  UrgencyQueue<int> queue;
  UrgencyQueue<int>::Position at;
  CHECK_FALSE(queue.Find([](int) { return true; }, &at));
  for (const int item : {10, 21, 31, 20, 11}) queue.Push(item / 10, item);
  const auto even = [](int item) { return item % 2 == 0; };
  REQUIRE_TRUE(queue.Find(even, &at));
  CHECK_EQ(queue.At(at), 20);
  queue.Erase(at);
  REQUIRE_TRUE(queue.Find(even, &at));
  CHECK_EQ(queue.At(at), 10);
  queue.Erase(at);
  CHECK_FALSE(queue.Find(even, &at));
  for (const int expected : {31, 21, 11}) CHECK_EQ(queue.Pop(), expected);
  CHECK_TRUE(queue.empty());
}

// With as many levels as priorities the order is that of a plain map.
TEST(any_sequence_of_calls_matches_a_map_of_lists) {
  mercury::testing::Random random;
  for (int trial = 0; trial < 60; ++trial) {
    UrgencyQueue<uint64_t> queue;
    std::map<int32_t, std::list<uint64_t>, std::greater<>> reference;
    const uint64_t priorities = 1 + random.Below(trial % 2 == 0 ? 5 : 300);
    size_t size = 0;
    for (uint64_t step = 0; step < 400; ++step) {
      const auto priority = static_cast<int32_t>(random.Below(priorities) * 0x01234567);
      switch (random.Below(7)) {
        case 0: {
          const uint64_t residue = random.Below(7);
          queue.Remove([&](uint64_t item) { return item % 7 == residue; });
          for (auto& [p, items] : reference) {
            items.remove_if([&](uint64_t item) { return item % 7 == residue; });
          }
          break;
        }
        case 1:
        case 2:
        case 3:
          if (queue.empty()) break;
          CHECK_EQ(queue.FrontPriority(), reference.begin()->first);
          REQUIRE_EQ(queue.Pop(), reference.begin()->second.front());
          reference.begin()->second.pop_front();
          break;
        default:
          queue.Push(priority, step);
          reference[priority].push_back(step);
      }
      std::vector<std::pair<int32_t, size_t>> depths;
      size = 0;
      for (auto it = reference.begin(); it != reference.end();) {
        size += it->second.size();
        if (!it->second.empty()) depths.emplace_back(it->first, it->second.size());
        it = it->second.empty() ? reference.erase(it) : std::next(it);
      }
      REQUIRE_EQ(queue.size(), size);
      CHECK_EQ(queue.empty(), size == 0);
      if (step % 16 == 0) CHECK_TRUE(queue.Depths() == depths);
    }
  }
}

// With fewer levels than priorities neighbours share, but the order within a priority holds, and
// nothing is lost; items more than a level's width apart keep their order of urgency.
TEST(more_priorities_than_levels_share_in_order) {
  mercury::testing::Random random;
  for (const size_t levels : {1, 2, 7, 64, 65}) {
    UrgencyQueue<std::pair<int32_t, int>> queue(levels);
    constexpr int kPriorities = 500;
    std::vector<std::pair<int32_t, int>> items;
    for (int i = 0; i < 3000; ++i) {
      items.emplace_back(static_cast<int32_t>(random.Below(kPriorities)), i);
    }
    std::set<int32_t> priorities;
    for (const auto& item : items) priorities.insert(item.first);
    for (const auto& item : items) queue.Push(item.first, item);
    std::map<int32_t, int> last;
    size_t least = priorities.size();  // by place among those that there are
    size_t popped = 0;
    for (; !queue.empty(); ++popped) {
      CHECK_EQ(queue.FrontPriority(), queue.Front().first);
      const auto [priority, number] = queue.Pop();
      const auto before = last.find(priority);
      CHECK_TRUE(before == last.end() || before->second < number);
      last[priority] = number;
      const size_t place =
          static_cast<size_t>(std::distance(priorities.begin(), priorities.find(priority)));
      CHECK_TRUE(place <= least + priorities.size() / levels + 1);
      least = std::min(least, place);
    }
    CHECK_EQ(popped, items.size());
  }
}

TEST(priorities_that_grow_without_end) {
  UrgencyQueue<int32_t> queue(64);
  queue.Push(-7, -7);
  for (int32_t i = 0; i < 60000; ++i) {
    queue.Push(i, i);
    REQUIRE_EQ(queue.Pop(), i);
  }
  CHECK_EQ(queue.Pop(), -7);
  CHECK_TRUE(queue.empty());
}

// A large model has more parameters than the queue remembers priorities, and all of them in every
// step: what has been learnt once stays, and only next neighbours are taken for one.
TEST(more_priorities_than_it_remembers_are_learnt_once) {
  UrgencyQueue<Moved> queue;
  constexpr int32_t kMany = 6000;
  for (int step = 0; step < 3; ++step) {
    moves = 0;
    // As gradients come, and the other way round.
    for (int32_t i = 0; i < kMany; ++i) {
      const int32_t priority = step == 1 ? -i : i - kMany;
      queue.Push(priority, Moved(priority));
    }
    for (int32_t least = kHighest - 1; !queue.empty();) {
      const int32_t priority = queue.Pop().priority;
      CHECK_TRUE(priority <= least + 1);
      least = std::min(least, priority);
    }
    if (step == 2) CHECK_TRUE(moves <= 4 * kMany);
  }
}

// However far apart they are.
TEST(priorities_from_end_to_end_are_told_apart_as_far_as_they_can_be) {
  mercury::testing::Random random;
  UrgencyQueue<int32_t> queue;
  constexpr int32_t kApart = 1 << 20;
  for (int i = 0; i < 5000; ++i) {
    const auto priority = static_cast<int32_t>(random.Below(uint64_t{1} << 32));
    queue.Push(priority, priority);
  }
  for (int64_t least = kHighest; !queue.empty();) {
    const int32_t priority = queue.Pop();
    CHECK_TRUE(priority < least + kApart);
    least = std::min<int64_t>(least, priority);
  }
}

// A peer chooses the priorities: however many wait at once, the queue takes them.
TEST(more_waiting_priorities_than_it_remembers) {
  UrgencyQueue<int32_t> queue(8);
  constexpr int32_t kMany = 9000;
  for (int32_t i = 0; i < kMany; ++i) queue.Push(-i, -i);
  CHECK_EQ(queue.size(), size_t{kMany});
  std::vector<bool> seen(kMany, false);
  while (!queue.empty()) {
    const int32_t item = -queue.Pop();
    CHECK_FALSE(seen[static_cast<size_t>(item)]);
    seen[static_cast<size_t>(item)] = true;
  }
  CHECK_EQ(std::count(seen.begin(), seen.end(), true), kMany);
}

TEST(items_that_can_only_be_moved) {
  UrgencyQueue<std::unique_ptr<int>> queue(2);
  for (int i = 0; i < 50; ++i) queue.Push(i % 10, std::make_unique<int>(i));
  queue.Remove([](const std::unique_ptr<int>& item) { return *item % 2 == 0; });
  CHECK_EQ(queue.size(), 25U);
  while (!queue.empty()) CHECK_EQ(*queue.Pop() % 2, 1);
}
