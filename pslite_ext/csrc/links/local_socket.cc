#include "links/local_socket.h"

#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace mercury {
namespace {

struct LocalName {
  explicit LocalName(const Address& beside) {
    address.sun_family = AF_UNIX;
    const std::string text = "mercury-ps shared " + beside.text();
    fits = text.size() < sizeof(address.sun_path);
    if (!fits) return;
    // After a zero byte: no file's name.
    std::memcpy(address.sun_path + 1, text.data(), text.size());
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_un address{};
  socklen_t bytes = 0;
  bool fits = false;
};

Status NotConnected() {
  return Status::PeerLost(std::string("no local socket: ") + std::strerror(errno));
}

// A message of one piece with room for two descriptors beside it.
struct SocketMessage {
  SocketMessage(void* data, size_t bytes) : piece{data, bytes} {
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
  }
  iovec piece;
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
};

TcpSocket Made() {
  return TcpSocket(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

}  // namespace

Status ListenLocally(const Address& beside, TcpSocket* listener) {
  const LocalName name(beside);
  TcpSocket fresh = Made();
  if (!name.fits || !fresh || bind(fresh.fd(), name.get(), name.bytes) != 0 ||
      listen(fresh.fd(), 1024) != 0) {
    return NotConnected();
  }
  *listener = std::move(fresh);
  return Status::Ok();
}

Status ConnectLocally(const Address& beside, TcpSocket* socket) {
  const LocalName name(beside);
  TcpSocket fresh = Made();
  if (!name.fits || !fresh || connect(fresh.fd(), name.get(), name.bytes) != 0)
    return NotConnected();
  if (!IsOurUser(fresh.fd())) return Status::PeerLost("who has its local name is another user");
  *socket = std::move(fresh);
  return Status::Ok();
}

bool IsOurUser(int fd) {
  ucred other{};
  socklen_t bytes = sizeof(other);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &bytes) == 0 && other.uid == geteuid();
}

bool HandOver(int fd, char byte, int descriptor, int second) {
  SocketMessage parcel(&byte, 1);
  cmsghdr* header = CMSG_FIRSTHDR(&parcel.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  const int descriptors[] = {descriptor, second};
  const size_t bytes = second < 0 ? sizeof(int) : sizeof(descriptors);
  header->cmsg_len = CMSG_LEN(bytes);
  parcel.message.msg_controllen = CMSG_SPACE(bytes);
  std::memcpy(CMSG_DATA(header), descriptors, bytes);
  return sendmsg(fd, &parcel.message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

ssize_t Hear(int fd, char* bytes, size_t most, TcpSocket* handed, TcpSocket* second) {
  SocketMessage parcel(bytes, most);
  const ssize_t got = recvmsg(fd, &parcel.message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got <= 0) return got;
  const cmsghdr* header = CMSG_FIRSTHDR(&parcel.message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return got;
  const size_t came = header->cmsg_len - CMSG_LEN(0);
  int descriptors[2] = {-1, -1};
  std::memcpy(descriptors, CMSG_DATA(header), std::min(came, sizeof(descriptors)));
  *handed = TcpSocket(descriptors[0]);
  *second = TcpSocket(descriptors[1]);
  return got;
}

bool IsUnixSocket(int fd) {
  int domain = 0;
  socklen_t bytes = sizeof(domain);
  return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_UNIX;
}

}  // namespace mercury
