// One lane over a real connection: what it does when its endpoint fails, and when there is nothing
// to do.
#include "links/lane.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/never.h"
#include "harness.h"
#include "links/local_pair.h"
#include "links/loopback.h"

using namespace mercury;
namespace {

struct Talker : Endpoint {
  Status OnHeader(int /*peer*/, const Header& /*header*/, int64_t /*now*/,
                  char** /*target*/) override {
    return Status::Ok();
  }
  Status OnPacket(int /*peer*/, const Header& /*header*/, int64_t /*now*/) override {
    return Status::Ok();
  }
  bool Next(int /*peer*/, int64_t /*now*/, OutPacket* out) override {
    if (throws) throw std::length_error("too much of something");
    out->header.length = static_cast<uint32_t>(payload.size());
    out->payload = payload.data();
    return talks;
  }
  // As a credit that has run out: the time to look again is long past.
  int64_t WakeAt(int /*peer*/) const override { return 1; }

  std::vector<char> payload = std::vector<char>(64 << 10);
  bool throws = false, talks = false;
};

struct Running {
  Running(bool throws, bool talks) {
    TcpSocket near;
    std::tie(near, far) = mercury::testing::ConnectedPair();
    auto endpoint = std::make_unique<Talker>();
    endpoint->throws = throws;
    endpoint->talks = talks;
    LaneEvents events;
    events.lost = [this](int peer, const Status& status) {
      const std::lock_guard<std::mutex> lock(mutex);
      lost.emplace_back(peer, status);
      changed.notify_all();
    };
    events.left = [](int /*peer*/) {};
    events.tick = [this](int64_t /*now*/) {
      const std::lock_guard<std::mutex> lock(mutex);
      turns_at_ticks.push_back(turns);
      changed.notify_all();
    };
    lane = std::make_unique<Lane>(std::move(endpoint), LinkOptions(), std::move(events));
    lane->on_turn = [this](int64_t /*now*/) { ++turns; };
    REQUIRE_OK(lane->Start("mercury-test"));
    auto moved = std::make_shared<TcpSocket>(std::move(near));
    lane->Post([this, moved] { lane->AddLink(std::move(*moved), 3); });
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<int, Status>> lost;
  std::vector<int> turns_at_ticks;
  std::atomic<int> turns{0};
  TcpSocket far;
  std::unique_ptr<Lane> lane;  // last: its thread uses the rest
};

TEST(an_endpoint_that_throws_ends_its_lane_and_not_the_process) {
  Running running(true, true);
  std::unique_lock<std::mutex> lock(running.mutex);
  REQUIRE_TRUE(running.changed.wait_for(lock, std::chrono::seconds(60),
                                        [&] { return !running.lost.empty(); }));
  CHECK_EQ(running.lost[0].first, -1);
  CHECK_STATUS(Code::kInternal, running.lost[0].second);
  CHECK_TRUE(running.lost[0].second.text().find("too much of something") != std::string::npos);
  lock.unlock();
  running.lane->Stop();
  CHECK_EQ(running.lost.size(), 1U);
}

// Who would have something to say, notes who was asked.
struct Asked : Talker {
  bool Next(int peer, int64_t /*now*/, OutPacket* /*out*/) override {
    const std::lock_guard<std::mutex> lock(*mutex);
    peers->push_back(peer);
    return false;
  }
  std::mutex* mutex = nullptr;
  std::vector<int>* peers = nullptr;
};

TEST(a_lane_begins_with_the_peer_that_it_was_told) {
  for (const auto& [first, wanted] : std::vector<std::pair<int, std::vector<int>>>{
           {0, {0, 1, 2}}, {1, {1, 2, 0}}, {2, {2, 0, 1}}, {5, {0, 1, 2}}}) {
    std::mutex mutex;
    std::vector<int> peers;
    auto endpoint = std::make_unique<Asked>();
    endpoint->mutex = &mutex;
    endpoint->peers = &peers;
    LinkOptions options;
    options.first_peer = first;
    LaneEvents events;
    events.lost = [](int /*peer*/, const Status& /*status*/) {};
    events.left = [](int /*peer*/) {};
    std::vector<std::pair<TcpSocket, TcpSocket>> pairs;
    for (int i = 0; i < 3; ++i) pairs.push_back(mercury::testing::ConnectedPair());
    Lane lane(std::move(endpoint), options, std::move(events));
    REQUIRE_OK(lane.Start("mercury-test"));
    REQUIRE_TRUE(lane.Ask([&] {
      for (int i = 0; i < 3; ++i) lane.AddLink(std::move(pairs[static_cast<size_t>(i)].first), i);
    }));
    const auto asked = [&] {
      const std::lock_guard<std::mutex> lock(mutex);
      return peers;
    };
    while (asked().size() < 3) std::this_thread::yield();
    std::vector<int> found = asked();
    found.resize(3);
    CHECK_TRUE(found == wanted);
    lane.Stop();
  }
}

// Says something to whoever is asked for, and notes who that was.
struct Generous : Asked {
  bool Next(int peer, int64_t now, OutPacket* out) override {
    Asked::Next(peer, now, out);
    return Talker::Next(peer, now, out);
  }
  int64_t WakeAt(int /*peer*/) const override { return kNever; }
};

// Into memory that nobody reads from.
TEST(no_link_writes_all_it_has_before_the_next_one_writes) {
  std::mutex mutex;
  std::vector<int> peers;
  auto endpoint = std::make_unique<Generous>();
  endpoint->talks = true;
  endpoint->mutex = &mutex;
  endpoint->peers = &peers;
  LaneEvents events;
  events.lost = [](int /*peer*/, const Status& /*status*/) {};
  events.left = [](int /*peer*/) {};
  std::vector<std::unique_ptr<Channel>> hosts;
  std::vector<TcpSocket> guests;
  for (int i = 0; i < 2; ++i) {
    auto [host, guest] = mercury::testing::LocalPair();
    hosts.push_back(mercury::testing::ChannelOf(std::move(host)));
    guests.push_back(std::move(guest));
  }
  Lane lane(std::move(endpoint), LinkOptions(), std::move(events));
  REQUIRE_OK(lane.Start("mercury-test"));
  REQUIRE_TRUE(lane.Ask([&] {
    for (int i = 0; i < 2; ++i) lane.AddLink(std::move(guests[static_cast<size_t>(i)]), i);
  }));
  const auto written = [&] {
    uint64_t bytes = 0;
    REQUIRE_TRUE(lane.Ask([&] {
      for (const auto& [peer, link] : lane.links()) bytes += link->counters().bytes_sent;
    }));
    return bytes;
  };
  while (written() < 2 * kRingBytes) std::this_thread::yield();
  lane.Stop();
  size_t longest = 0, run = 0;
  for (size_t i = 0; i < peers.size(); ++i) {
    run = i != 0 && peers[i] == peers[i - 1] ? run + 1 : 1;
    longest = std::max(longest, run);
  }
  CHECK_TRUE(longest <= (kRingBytes / 2 >> 16) + 1);
}

// Reads what it has said, before it says more: no memory is ever full.
struct SelfReading : Talker {
  bool Next(int peer, int64_t now, OutPacket* out) override {
    host->Woken(EPOLLIN);
    while (!mercury::testing::Receive(host.get()).empty()) continue;
    return Talker::Next(peer, now, out);
  }
  int64_t WakeAt(int /*peer*/) const override { return kNever; }
  std::unique_ptr<Channel> host;
};

TEST(a_lane_does_not_sleep_before_it_has_come_back_to_a_link_that_has_more) {
  auto [host, guest] = mercury::testing::LocalPair();
  auto endpoint = std::make_unique<SelfReading>();
  endpoint->talks = true;
  endpoint->host = mercury::testing::ChannelOf(std::move(host));
  bool more = false;
  std::atomic<int> back{0}, slept{0};
  LaneEvents events;
  events.lost = [](int /*peer*/, const Status& /*status*/) {};
  events.left = [](int /*peer*/) {};
  events.tick = [&](int64_t /*now*/) { slept += more ? 1 : 0; };  // asleep, it wakes for each
  Lane lane(std::move(endpoint), LinkOptions(), std::move(events));
  lane.on_turn = [&](int64_t /*now*/) {
    more = !lane.links().empty() && lane.links().begin()->second->has_more();
    back += more ? 1 : 0;
  };
  REQUIRE_OK(lane.Start("mercury-test"));
  REQUIRE_TRUE(lane.Ask([&, &come = guest] { lane.AddLink(std::move(come), 0); }));
  while (back < 4) std::this_thread::yield();
  lane.Stop();
  CHECK_TRUE(slept < back / 2);
}

TEST(a_link_whose_socket_is_full_does_not_keep_its_lane_awake) {
  Running running(false, true);  // and nobody reads
  const auto full = [&] {
    bool blocked = false;
    REQUIRE_TRUE(running.lane->Ask([&] {
      for (const auto& [peer, link] : running.lane->links()) blocked = link->blocked();
    }));
    return blocked;
  };
  while (!full()) std::this_thread::yield();
  std::unique_lock<std::mutex> lock(running.mutex);
  running.turns_at_ticks.clear();
  const auto& turns = running.turns_at_ticks;
  REQUIRE_TRUE(
      running.changed.wait_for(lock, std::chrono::seconds(60), [&] { return turns.size() >= 2; }));
  CHECK_TRUE(turns[1] - turns[0] < 100);  // awake, it would be many thousands in the second between
  lock.unlock();
  CHECK_TRUE(full());
}

}  // namespace
