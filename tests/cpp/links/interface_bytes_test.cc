// Whether the kernel counts on the loopback what a connection over it carries.
#include "links/interface_bytes.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "harness.h"

using namespace mercury;
namespace {

// Sends so much through it and reads it at the other end.
bool Carry(int from, int to, size_t bytes) {
  std::vector<char> buffer(16 << 10);
  for (size_t read = 0, sent = 0; read < bytes;) {
    if (sent < bytes) {
      const ssize_t n = send(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (n > 0) sent += static_cast<size_t>(n);
    }
    const ssize_t n = recv(to, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n > 0) read += static_cast<size_t>(n);
    pollfd wait{to, POLLIN, 0};
    if (n <= 0 && sent >= bytes && poll(&wait, 1, 5000) <= 0) return false;
  }
  return true;
}

TcpSocket Accepted(const TcpSocket& listener) {
  TcpSocket accepted;
  std::string peer;
  pollfd wait{listener.fd(), POLLIN, 0};
  poll(&wait, 1, 5000);
  (void)Accept(listener, {}, &accepted, &peer);
  return accepted;
}

}  // namespace

TEST(an_interface_counts_what_it_carries) {
  int port = 0;
  TcpSocket listener, one;
  CHECK_TRUE(Listen("127.0.0.1", &port, {}, &listener).ok());
  CHECK_TRUE(Connect("127.0.0.1", port, {}, &one).ok());
  const TcpSocket other = Accepted(listener);
  CHECK_TRUE(static_cast<bool>(other));
  CHECK_TRUE(Carry(one.fd(), other.fd(), 1 << 20));
  InterfaceBytes bytes(one.fd());
  CHECK_TRUE(bytes.known());
  const uint64_t received = bytes.received(), sent = bytes.sent();
  CHECK_TRUE(Carry(one.fd(), other.fd(), 4 << 20));
  CHECK_TRUE(bytes.received() >= received + (4 << 20));
  CHECK_TRUE(bytes.sent() >= sent + (4 << 20));
}

TEST(what_is_no_connection_over_an_interface_is_not_known) {
  int pair[2];
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const TcpSocket one(pair[0]), other(pair[1]);
  InterfaceBytes local(one.fd()), closed(-1), none;
  for (InterfaceBytes* bytes : {&local, &closed, &none}) {
    CHECK_TRUE(!bytes->known());
    CHECK_EQ(bytes->received(), 0U);
    CHECK_EQ(bytes->sent(), 0U);
  }
}
