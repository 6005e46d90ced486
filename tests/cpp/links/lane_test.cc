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

namespace mercury {
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
    lane = std::make_unique<Lane>(std::move(endpoint), LinkOptions(), std::move(events));
    lane->on_turn = [this](int64_t /*now*/) { ++turns; };
    REQUIRE_OK(lane->Start("mercury-test"));
    auto moved = std::make_shared<TcpSocket>(std::move(near));
    lane->Post([this, moved] { lane->AddLink(std::move(*moved), 3); });
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<int, Status>> lost;
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
  CHECK_TRUE(running.lost[0].second.message.find("too much of something") != std::string::npos);
  lock.unlock();
  running.lane->Stop();
  CHECK_EQ(running.lost.size(), 1U);
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
  const int before = running.turns;
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK_TRUE(full());
  CHECK_TRUE(running.turns - before < 100);  // awake, it would be many thousands
}

}  // namespace
}  // namespace mercury
