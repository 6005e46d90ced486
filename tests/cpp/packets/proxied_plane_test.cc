// A whole data plane with a proxy between worker 1 and the server, which changes a bit or swallows
// what it is given: sums are right, or the operation fails and the right link is named.
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <utility>

#include "packets/plane.h"

using namespace mercury;
namespace {

using testing::Plane;
using testing::PlaneEvent;
using testing::PlaneOptions;

constexpr size_t kElements = 100000;  // 400,000 bytes in each direction
constexpr uint64_t kNever64 = ~uint64_t{0};

class Proxy {
 public:
  // By direction, to the server first: from which byte on it swallows, and where it changes a bit.
  struct Faults {
    std::array<uint64_t, 2> swallow_from{kNever64, kNever64};
    std::array<uint64_t, 2> flip_at{kNever64, kNever64};
  };

  Proxy(const Address& server, const Faults& faults) : faults_(faults) {
    TcpOptions options;
    options.congestion = "";
    REQUIRE_OK(Listen("127.0.0.1", &address_.port, options, &listener_));
    REQUIRE_OK(Connect(server.host, server.port, options, &ends_[1]));
    thread_ = std::thread([this, options] { Run(options); });
  }
  ~Proxy() {
    stop_ = true;
    thread_.join();
  }
  const Address& address() const { return address_; }

 private:
  void Run(const TcpOptions& options) {
    std::string from;
    while (!Accept(listener_, options, &ends_[0], &from).ok()) {
      if (!Readable(listener_.fd())) return;
    }
    pollfd both[2] = {{ends_[0].fd(), POLLIN, 0}, {ends_[1].fd(), POLLIN, 0}};
    while (!stop_) {
      poll(both, 2, 20);
      for (size_t i = 0; i < 2; ++i) {
        if ((both[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !Pass(i)) return Close();
      }
    }
    Close();
  }
  bool Readable(int fd) const {
    pollfd one{fd, POLLIN, 0};
    while (!stop_) {
      if (poll(&one, 1, 20) > 0) return true;
    }
    return false;
  }
  bool Pass(size_t from) {
    char buffer[16384];
    const ssize_t got = recv(ends_[from].fd(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    const uint64_t at = faults_.flip_at[from] - passed_[from];
    if (at < static_cast<uint64_t>(got)) buffer[at] ^= 1;
    passed_[from] += static_cast<uint64_t>(got);
    if (passed_[from] > faults_.swallow_from[from]) return true;
    for (ssize_t sent = 0; sent < got && !stop_;) {
      const ssize_t n = send(ends_[1 - from].fd(), buffer + sent, static_cast<size_t>(got - sent),
                             MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno != EAGAIN) return false;
      if (n < 0) {
        pollfd one{ends_[1 - from].fd(), POLLOUT, 0};
        poll(&one, 1, 20);
      }
      sent += n > 0 ? n : 0;
    }
    return true;
  }
  void Close() {
    for (TcpSocket& end : ends_) end.Close();
  }

  const Faults faults_;
  Address address_{"127.0.0.1", 0};
  TcpSocket listener_;
  std::array<TcpSocket, 2> ends_;  // worker 1's, the server's
  std::array<uint64_t, 2> passed_{};
  std::atomic<bool> stop_{false};
  std::thread thread_;  // last: it uses the rest
};

// What became of a few rounds. Whatever is called back as done is right: Round checks that.
PlaneEvent FailureOf(const MercuryOptions& options, const Proxy::Faults& faults) {
  Plane plane(options);
  Proxy proxy(plane.address(0), faults);
  plane.StartWorker(0, plane.Of(0));
  plane.Move(0, proxy.address());
  plane.StartWorker(1, plane.Of(1));
  REQUIRE_TRUE(plane.WaitReady());
  while (plane.Round({kElements})) {
  }
  REQUIRE_TRUE(plane.WaitEvent());
  const PlaneEvent first = plane.events().at(0);
  CHECK_EQ(plane.failed(), first.status.code());
  plane.Stop();
  return first;
}

// The bit is in a header or in a payload, of a gradient or of a sum.
TEST(a_changed_bit_is_never_summed_nor_handed_over) {
  testing::Random random;
  for (int trial = 0; trial < 10; ++trial) {
    MercuryOptions options = PlaneOptions(2, 1);
    options.checksum = true;
    const size_t direction = random.Below(2);
    Proxy::Faults faults;
    faults.flip_at[direction] = 10000 + random.Below(600000);
    const PlaneEvent event = FailureOf(options, faults);
    CHECK_STATUS(Code::kCorrupt, event.status);
    CHECK_EQ(event.at_server, direction == 0);
    CHECK_EQ(event.peer, direction == 0 ? 1 : 0);
    CHECK_EQ(event.rank, direction == 0 ? 0 : 1);
  }
}

TEST(bytes_that_vanish_end_the_job_whichever_way) {
  for (const size_t direction : {0U, 1U}) {
    MercuryOptions options = PlaneOptions(2, 1);
    options.tcp.timeout_ms = 4000;
    Proxy::Faults faults;
    faults.swallow_from[direction] = 500000;
    const PlaneEvent event = FailureOf(options, faults);
    CHECK_STATUS(Code::kPeerLost, event.status);
    CHECK_TRUE(event.status.text().find("bytes vanish on the way") != std::string::npos);
    CHECK_TRUE(event.at_server ? event.peer == 1 : event.rank == 1);
  }
}

}  // namespace
