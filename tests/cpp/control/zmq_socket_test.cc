// Sockets by themselves, over loopback, and those who speak to them without ZeroMQ.
#include "control/zmq_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

constexpr int kPatienceMs = 20000;
constexpr int kSocketsMax = 16;

// Lets everybody in whose first `wants` bytes came in time, and counts those who misbehave then.
class OpenDoor : public zmq::door_maker_t {
 public:
  explicit OpenDoor(size_t wants = 0) : wants_(wants) {}
  zmq::door_t* make(const std::string& /*peer*/, const std::function<void()>& /*close*/) override {
    return new Door(this);
  }
  void broke_rules(const std::string& /*peer*/) override { ++broken; }
  size_t parts_max() const override { return 4; }
  std::atomic<int> broken{0}, late{0}, gone{0};

 private:
  class Door : public zmq::door_t {
   public:
    explicit Door(OpenDoor* maker) : maker_(maker), wants_(maker->wants_) {}
    ~Door() override { ++maker_->gone; }
    Door(const Door&) = delete;
    Door& operator=(const Door&) = delete;
    std::string opening() override { return ""; }
    size_t wants() const override { return wants_; }
    bool take(const unsigned char* /*data*/, size_t size, std::string* /*reply*/) override {
      wants_ -= size;
      return true;
    }
    void late() override { ++maker_->late; }

   private:
    OpenDoor* const maker_;
    size_t wants_;
  };
  const size_t wants_;
};

sockaddr_in At(const char* host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, host, &address.sin_addr);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

// A descriptor that closes itself.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { Close(); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

int Dial(const char* host, int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = At(host, port);
  CHECK_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

// Until the other end closes the connection; false: it does not.
bool ShownOut(int fd) {
  char bytes[256];
  pollfd readable{fd, POLLIN, 0};
  while (poll(&readable, 1, kPatienceMs) > 0) {
    if (recv(fd, bytes, sizeof(bytes), 0) <= 0) return true;
  }
  return false;
}

bool ReceiveSoon(ZmqSocket* socket, std::vector<ZmqFrame>* frames) {
  zmq_pollitem_t item{socket->get(), 0, ZMQ_POLLIN, 0};
  return zmq_poll(&item, 1, kPatienceMs) > 0 && socket->Receive(frames);
}

enum : char { kMore = 1, kCommand = 4 };

std::string Frame(int flags, const std::string& body) {
  return std::string{static_cast<char>(flags), static_cast<char>(body.size())} + body;
}

std::string Signature() { return "\xff" + std::string(8, '\0') + "\x7f"; }

void Say(const Fd& fd, const std::string& what) {
  CHECK_EQ(send(fd.get(), what.data(), what.size(), MSG_NOSIGNAL),
           static_cast<ssize_t>(what.size()));
}

// A DEALER that speaks ZMTP 3, until both sides are ready for messages.
void ShakeHands(const Fd& fd) {
  Say(fd, Signature() + std::string("\3\0", 2) + "NULL" + std::string(48, '\0'));
  Say(fd, Frame(kCommand, "\5READY\13Socket-Type" + std::string("\0\0\0\6", 4) + "DEALER"));
  char greeting[64 + 2], ready[256];
  REQUIRE_EQ(recv(fd.get(), greeting, sizeof(greeting), MSG_WAITALL), ssize_t{sizeof(greeting)});
  const auto size = static_cast<size_t>(greeting[65]);
  REQUIRE_EQ(recv(fd.get(), ready, size, MSG_WAITALL), static_cast<ssize_t>(size));
}

// Until `reached`; false: it is not.
bool Until(const std::function<bool()>& reached) {
  constexpr int kTurnMs = 5;
  for (int waited = 0; waited < kPatienceMs && !reached(); waited += kTurnMs) {
    std::this_thread::sleep_for(std::chrono::milliseconds(kTurnMs));
  }
  return reached();
}

// Listens, at a free port if it is 0.
int Listen(const char* host, int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = At(host, port);
  CHECK_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  CHECK_EQ(listen(fd, 4), 0);
  return fd;
}

sockaddr_in NameOf(int fd, int (*name)(int, sockaddr*, socklen_t*)) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  name(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return address;
}

// The descriptor, in this process, of the other end of `fd`; -1: there is none.
int OtherEnd(int fd) {
  constexpr int kDescriptorsMax = 256;
  const sockaddr_in wanted = NameOf(fd, getpeername);
  for (int other = 0; other < kDescriptorsMax; ++other) {
    const sockaddr_in found = NameOf(other, getsockname);
    if (std::memcmp(&found, &wanted, sizeof(wanted)) == 0) return other;
  }
  return -1;
}

}  // namespace

TEST(behind_a_door_nobody_gets_round_the_limits_of_a_message) {
  OpenDoor door;
  const ZmqContext context(kSocketsMax);
  ZmqSocket router(context, ZMQ_ROUTER);
  router.SetDoor(&door);
  REQUIRE_TRUE(router.Bind("tcp://127.0.0.1:*").ok());
  const Fd member(Dial("127.0.0.1", router.BoundPort()));
  ShakeHands(member);
  Say(member, Frame(kMore, "one") + Frame(0, "two"));
  std::vector<ZmqFrame> frames;
  REQUIRE_TRUE(ReceiveSoon(&router, &frames));
  REQUIRE_EQ(frames.size(), size_t{3});
  CHECK_EQ(frames[2].text(), "two");

  int broken = 0;
  const auto check_shown_out = [&](const Fd& fd, const std::string& after) {
    Say(fd, after);
    CHECK_TRUE(ShownOut(fd.get()));
    CHECK_EQ(door.broken, ++broken);
  };
  for (const std::string& old : {
           std::string("\1\0", 2),                // protocol 1, which has no greeting
           Signature() + std::string("\0\5", 2),  // protocol 1 with a greeting
           Signature() + std::string("\1\5", 2),  // protocol 2
       }) {
    check_shown_out(Fd(Dial("127.0.0.1", router.BoundPort())), old);
  }
  for (const std::string& said : {
           Frame(kCommand | kMore, "\11SUBSCRIBE"),
           Frame(kCommand | kMore, "\6CANCEL"),
           Frame(kMore, "1") + Frame(kMore, "2") + Frame(kMore, "3") + Frame(kMore, "4") +
               Frame(0, "5"),
       }) {
    const Fd fd(Dial("127.0.0.1", router.BoundPort()));
    ShakeHands(fd);
    check_shown_out(fd, said);
  }
  CHECK_FALSE(router.Receive(&frames));
}

TEST(a_door_hears_that_its_time_is_up_but_not_that_the_peer_has_hung_up) {
  OpenDoor door(100);
  const ZmqContext context(kSocketsMax);
  ZmqSocket router(context, ZMQ_ROUTER);
  router.SetDoor(&door);
  router.Set(ZMQ_HANDSHAKE_IVL, 100);
  REQUIRE_TRUE(router.Bind("tcp://127.0.0.1:*").ok());
  const Fd silent(Dial("127.0.0.1", router.BoundPort()));
  CHECK_TRUE(ShownOut(silent.get()));
  CHECK_EQ(door.late, 1);
  router.Set(ZMQ_HANDSHAKE_IVL, 10 * kPatienceMs);
  REQUIRE_TRUE(router.Bind("tcp://127.0.0.1:*").ok());
  Fd hasty(Dial("127.0.0.1", router.BoundPort()));
  Say(hasty, "hello");
  CHECK_EQ(shutdown(hasty.get(), SHUT_WR), 0);
  CHECK_TRUE(ShownOut(hasty.get()));
  CHECK_EQ(door.gone, 2);
  CHECK_EQ(door.late, 1);
}

TEST(events_that_nobody_reads_keep_nobody_waiting) {
  constexpr int kVisitors = 2100;  // ZeroMQ's own limits add up to 2000
  const ZmqContext context(kSocketsMax);
  ZmqSocket router(context, ZMQ_ROUTER);
  router.Watch(context, ZMQ_EVENT_ACCEPTED);
  REQUIRE_TRUE(router.Bind("tcp://127.0.0.1:*").ok());
  int greeted = 0;
  for (bool in_time = true; in_time && greeted < kVisitors;) {
    const Fd visitor(Dial("127.0.0.1", router.BoundPort()));
    pollfd readable{visitor.get(), POLLIN, 0};
    in_time = poll(&readable, 1, kPatienceMs) > 0;
    if (in_time) ++greeted;
  }
  CHECK_EQ(greeted, kVisitors);
  int told = 0;
  ZmqEvent event;
  while (router.NextEvent(&event)) ++told;
  CHECK_EQ(told, kVisitors);
}

TEST(what_another_connection_has_moved_is_not_taken_for_progress) {
  Fd listener(Listen("127.0.0.1", 0));
  const int port = ntohs(NameOf(listener.get(), getsockname).sin_port);
  const Fd same_port_elsewhere(Listen("127.0.0.2", port));
  const ZmqContext context(kSocketsMax);
  ZmqSocket dealer(context, ZMQ_DEALER);
  dealer.Set(ZMQ_RECONNECT_IVL, -1);
  dealer.Watch(context, ConnectionProgress::kEvents);
  ConnectionProgress progress;
  REQUIRE_TRUE(dealer.Connect(TcpEndpoint("127.0.0.1", port)).ok());
  Fd peer(accept(listener.get(), nullptr, nullptr));
  REQUIRE_TRUE(Until([&] { return progress.BytesTaken(&dealer) > 1; }));
  CHECK_EQ(progress.connections(), 1);

  const int fd = OtherEnd(peer.get());
  REQUIRE_TRUE(fd >= 0);
  peer.Close();
  REQUIRE_TRUE(Until([&] { return fcntl(fd, F_GETFD) < 0; }));
  const Fd other(Dial("127.0.0.2", port));
  if (other.get() != fd) dup2(other.get(), fd);
  const Fd reused(other.get() == fd ? -1 : fd);
  Say(other, "that counts for another peer");
  const Fd its_peer(accept(same_port_elsewhere.get(), nullptr, nullptr));
  char bytes[8];
  REQUIRE_EQ(recv(its_peer.get(), bytes, sizeof(bytes), MSG_WAITALL), ssize_t{sizeof(bytes)});
  CHECK_EQ(progress.BytesTaken(&dealer), -1);
  CHECK_EQ(progress.connections(), 1);
}
