// Who makes room at a door that is full. What strangers say there: tests/faults/test_strangers.py.
#include "links/acceptor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

#include "harness.h"
#include "links/loopback.h"

using namespace mercury;
namespace {

struct Door {
  explicit Door(size_t room) {
    mercury::testing::Place place;
    port = place.address.port;
    DoorOptions options;
    options.tcp.congestion = "";
    options.strangers_max = room;
    acceptor = std::make_unique<Acceptor>(
        &loop, std::move(place.tcp), options, [](const Terms& /*theirs*/, TcpSocket /*socket*/) {},
        [this](const std::string& why) { refused.push_back(why); });
    REQUIRE_OK(acceptor->Start());
  }
  // Somebody of this address comes, and says nothing.
  TcpSocket Knock(const std::string& from) {
    TcpSocket stranger(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in own{}, its{};
    own.sin_family = its.sin_family = AF_INET;
    its.sin_port = htons(static_cast<uint16_t>(port));
    REQUIRE_EQ(inet_pton(AF_INET, from.c_str(), &own.sin_addr), 1);
    REQUIRE_EQ(inet_pton(AF_INET, "127.0.0.1", &its.sin_addr), 1);
    REQUIRE_EQ(bind(stranger.fd(), reinterpret_cast<sockaddr*>(&own), sizeof(own)), 0);
    REQUIRE_EQ(connect(stranger.fd(), reinterpret_cast<sockaddr*>(&its), sizeof(its)), 0);
    char challenge;
    while (recv(stranger.fd(), &challenge, 1, MSG_DONTWAIT) != 1) {
      loop.Wait(10);
      acceptor->Turn(0);
    }
    return stranger;
  }

  EventLoop loop;
  int port = 0;
  std::vector<std::string> refused;
  std::unique_ptr<Acceptor> acceptor;
};

TEST(who_fills_the_packets_door_makes_room_at_it) {
  Door door(4);
  std::vector<TcpSocket> strangers;
  for (const char* from : {"127.0.0.8", "127.0.0.9", "127.0.0.7", "127.0.0.9"}) {
    strangers.push_back(door.Knock(from));
  }
  CHECK_TRUE(door.refused.empty());
  // Whose address has the most; then the oldest of all that have as many.
  const std::vector<std::string> wanted = {"127.0.0.9", "127.0.0.8", "127.0.0.7", "127.0.0.9"};
  for (size_t i = 0; i < wanted.size(); ++i) {
    strangers.push_back(door.Knock("127.0.0." + std::to_string(6 - i)));
    REQUIRE_EQ(door.refused.size(), i + 1);
    CHECK_EQ(door.refused[i], "a connection from " + wanted[i] + ": too many connections at once");
  }
}

}  // namespace
