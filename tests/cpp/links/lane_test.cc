// One lane over a real connection: what it does when its endpoint fails, and when there is nothing
// to do.
#include "links/lane.h"

#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "harness.h"
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
