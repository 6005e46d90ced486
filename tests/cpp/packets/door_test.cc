// Both sides of a server's door over loopback: who is let in, who must make room, and a worker that
// is turned away and knocks again.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "links/dialer.h"
#include "links/local_socket.h"
#include "packets/plane.h"

using namespace mercury;
namespace {

using testing::Plane;
using testing::PlaneOptions;

// A connection from `host` on which nothing is ever said.
TcpSocket Knock(const std::string& host, int port) {
  TcpSocket made(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in from{}, to{};
  from.sin_family = to.sin_family = AF_INET;
  REQUIRE_EQ(inet_pton(AF_INET, host.c_str(), &from.sin_addr), 1);
  REQUIRE_EQ(bind(made.fd(), reinterpret_cast<sockaddr*>(&from), sizeof(from)), 0);
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE_EQ(connect(made.fd(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  // Once it is challenged, it is at the door.
  char challenge[kChallengeBytes];
  REQUIRE_EQ(recv(made.fd(), challenge, sizeof(challenge), MSG_WAITALL), kChallengeBytes);
  return made;
}

bool Waits(const TcpSocket& stranger) {
  char byte;
  return recv(stranger.fd(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

bool IsGone(const TcpSocket& stranger) {
  char byte;
  return recv(stranger.fd(), &byte, 1, 0) <= 0;
}

TEST(who_fills_the_door_makes_room_at_it) {
  MercuryOptions options = PlaneOptions(1, 1);
  options.strangers_max = 3;
  Plane plane(options);
  const int port = plane.address(0).port;
  const TcpSocket alone = Knock("127.0.0.1", port);
  std::vector<TcpSocket> crowd;
  for (int i = 0; i < 6; ++i) crowd.push_back(Knock("127.0.0.2", port));
  for (size_t i = 0; i < 4; ++i) CHECK_TRUE(IsGone(crowd[i]));  // the oldest ones
  for (size_t i = 4; i < 6; ++i) CHECK_TRUE(Waits(crowd[i]));
  CHECK_TRUE(Waits(alone));
  plane.StartWorkers();
  CHECK_TRUE(plane.WaitReady());
  CHECK_TRUE(plane.Round({1000}));
}

std::atomic<int> failures_left{0};
int Accept4(int fd, sockaddr* address, socklen_t* bytes, int flags) {
  if (failures_left > 0) {
    --failures_left;
    errno = EHOSTUNREACH;
    return -1;
  }
  return accept4(fd, address, bytes, flags);
}

TEST(a_connection_that_fails_by_itself_costs_nobody_else_his_place) {
  Calls().accept = Accept4;  // before there is a thread that calls it
  {
    Plane plane(PlaneOptions(1, 1));
    const TcpSocket stranger = Knock("127.0.0.1", plane.address(0).port);
    failures_left = 3;
    plane.StartWorkers();
    CHECK_TRUE(plane.WaitReady());
    CHECK_EQ(int{failures_left}, 0);
    CHECK_TRUE(Waits(stranger));
  }
  Calls().accept = accept4;
}

// A server that turns the first ones away, without a word.
class Doorkeeper {
 public:
  Doorkeeper(const MercuryOptions& options, int turned_away)
      : key_(DataKey(options.token, options.job)), terms_(options.terms()) {
    options_.congestion = "";
    REQUIRE_OK(Listen("127.0.0.1", &port_, options_, &listener_));
    thread_ = std::thread([this, turned_away] {
      for (int i = 0; !stop_;) {
        TcpSocket guest;
        std::string from;
        if (!Accept(listener_, options_, &guest, &from).ok()) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        } else if (++i > turned_away) {
          return Welcome(std::move(guest));
        }
      }
    });
  }
  ~Doorkeeper() {
    stop_ = true;
    thread_.join();
  }
  int port() const { return port_; }

 private:
  void Welcome(TcpSocket guest) {
    ServerHandshake handshake(key_, terms_, RandomNonce());
    std::string say = handshake.Challenge();
    while (!stop_) {
      if (!say.empty()) CHECK_EQ(send(guest.fd(), say.data(), say.size(), 0), say.size());
      if (handshake.done()) break;
      say.clear();
      char buffer[kHelloBytes];
      const ssize_t got = recv(guest.fd(), buffer, handshake.wants(), 0);
      if (got > 0) CHECK_OK(handshake.Feed(buffer, static_cast<size_t>(got), &say));
    }
    guest_ = std::move(guest);
  }
  TcpOptions options_;
  const HmacKey key_;
  const Terms terms_;
  TcpSocket listener_, guest_;
  int port_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// `squatter`: somebody has the server's local name, and says nothing.
Status Dialled(int turned_away, int64_t deadline_us, bool squatter = false) {
  const MercuryOptions options = PlaneOptions(1, 1);
  Doorkeeper keeper(options, turned_away);
  EventLoop loop;
  TcpSocket taken;
  if (squatter) REQUIRE_OK(ListenLocally({"127.0.0.1", keeper.port()}, &taken));
  const HmacKey key = DataKey(options.token, options.job);
  TcpOptions tcp;
  tcp.congestion = "";
  std::vector<Status> done;
  Dialer dialer(&loop, key, options.terms(), {"127.0.0.1", keeper.port()}, tcp,
                NowUs() + deadline_us, [&](const Status& status, TcpSocket socket) {
                  done.push_back(status);
                  CHECK_EQ(static_cast<bool>(socket), status.ok());
                  CHECK_FALSE(socket && IsUnixSocket(socket.fd()));
                });
  dialer.Start(NowUs());
  while (!dialer.finished()) {
    loop.Wait(10);
    dialer.Turn(NowUs());
  }
  REQUIRE_EQ(done.size(), 1U);
  return done[0];
}

TEST(who_is_turned_away_knocks_again) { CHECK_OK(Dialled(2, 60000000)); }

TEST(who_takes_a_server_s_local_name_does_not_keep_its_workers) {
  CHECK_OK(Dialled(0, 6000000, true));
}

// It may have let the worker in just now, and would take its next connection for a second one.
TEST(a_server_that_has_spoken_and_is_slow_is_not_left) {
  const MercuryOptions options = PlaneOptions(1, 1);
  const HmacKey key = DataKey(options.token, options.job);
  const Address address{"127.0.0.1", 9};  // nobody is there but by the local name
  TcpSocket listener;
  REQUIRE_OK(ListenLocally(address, &listener));
  EventLoop loop;
  const int64_t began = NowUs(), deadline = began + 20000000;
  std::vector<Status> done;
  Dialer dialer(&loop, key, options.terms(), address, options.tcp, deadline,
                [&](const Status& status, TcpSocket /*socket*/) { done.push_back(status); });
  dialer.Start(began);
  const TcpSocket guest(accept(listener.fd(), nullptr, nullptr));
  REQUIRE_TRUE(guest);
  ServerHandshake handshake(key, options.terms(), RandomNonce());
  const std::string challenge = handshake.Challenge();
  REQUIRE_EQ(send(guest.fd(), challenge.data(), challenge.size(), 0), challenge.size());
  for (int i = 0; i < 3; ++i) loop.Wait(10);
  dialer.Turn(began + 15000000);  // most of its patience is over
  REQUIRE_FALSE(dialer.finished());
  char hello[kHelloBytes];
  REQUIRE_EQ(recv(guest.fd(), hello, sizeof(hello), MSG_WAITALL), kHelloBytes);
  std::string welcome;
  REQUIRE_OK(handshake.Feed(hello, sizeof(hello), &welcome));
  REQUIRE_EQ(send(guest.fd(), welcome.data(), welcome.size(), 0), welcome.size());
  for (int i = 0; i < 3 && !dialer.finished(); ++i) loop.Wait(10);
  REQUIRE_EQ(done.size(), 1U);
  CHECK_OK(done[0]);
}

TEST(a_worker_on_the_server_s_host_comes_by_its_local_name) {
  const MercuryOptions options = PlaneOptions(1, 1);
  Plane plane(options);
  EventLoop loop;
  const HmacKey key = DataKey(options.token, options.job);
  bool locally = false;
  Dialer dialer(&loop, key, options.terms(), plane.address(0), options.tcp, NowUs() + 60000000,
                [&](const Status& status, TcpSocket socket) {
                  CHECK_OK(status);
                  locally = IsUnixSocket(socket.fd());
                });
  dialer.Start(NowUs());
  while (!dialer.finished()) {
    loop.Wait(10);
    dialer.Turn(NowUs());
  }
  CHECK_TRUE(locally);
}

TEST(who_is_turned_away_to_the_end_says_why_that_may_be) {
  const Status status = Dialled(1000000, 3000000);
  CHECK_STATUS(Code::kPeerLost, status);
  CHECK_TRUE(status.text().find("have the same job token") != std::string::npos);
}

}  // namespace
