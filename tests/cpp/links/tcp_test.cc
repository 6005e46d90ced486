// What sockets ask of the network.
#include "links/tcp.h"

#include <netinet/in.h>

#include "harness.h"
#include "links/loopback.h"

using namespace mercury;
namespace {

int Option(int fd, int level, int name) {
  int value = -1;
  socklen_t bytes = sizeof value;
  getsockopt(fd, level, name, &value, &bytes);
  return value;
}

TEST(what_is_to_be_sent_first_is_marked_for_hosts_and_switches) {
  const auto [near, far] = testing::ConnectedPair();
  SendFirst(near.fd());
  CHECK_EQ(Option(near.fd(), IPPROTO_IP, IP_TOS), kSignalling);
  CHECK_EQ(Option(near.fd(), SOL_SOCKET, SO_PRIORITY), 6);
  CHECK_EQ(Option(far.fd(), IPPROTO_IP, IP_TOS), 0);
  const TcpSocket six(socket(AF_INET6, SOCK_STREAM, 0));
  if (!six) return;  // a host without IPv6
  SendFirst(six.fd());
  CHECK_EQ(Option(six.fd(), IPPROTO_IPV6, IPV6_TCLASS), kSignalling);
}

}  // namespace
