#include "links/local_socket.h"

#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace mercury {
namespace {

struct Name {
  explicit Name(const Address& beside) {
    address.sun_family = AF_UNIX;
    const std::string text = "mercury-ps " + beside.text();
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

Status Failed() {
  return Status::PeerLost(std::string("no local socket: ") + std::strerror(errno));
}

// The kernel says that there is room again only when three quarters of this are free.
constexpr int kBufferBytes = 1 << 20;

void SetBuffer(int fd) {
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof(kBufferBytes));
}

TcpSocket Made() {
  TcpSocket fresh(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fresh) SetBuffer(fresh.fd());
  return fresh;
}

}  // namespace

Status ListenLocally(const Address& beside, TcpSocket* listener) {
  const Name name(beside);
  TcpSocket fresh = Made();
  if (!name.fits || !fresh || bind(fresh.fd(), name.get(), name.bytes) != 0 ||
      listen(fresh.fd(), 1024) != 0) {
    return Failed();
  }
  *listener = std::move(fresh);
  return Status::Ok();
}

Status ConnectLocally(const Address& beside, TcpSocket* socket) {
  const Name name(beside);
  TcpSocket fresh = Made();
  if (!name.fits || !fresh || connect(fresh.fd(), name.get(), name.bytes) != 0) return Failed();
  *socket = std::move(fresh);
  return Status::Ok();
}

bool IsUnixSocket(int fd) {
  int domain = 0;
  socklen_t bytes = sizeof(domain);
  return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_UNIX;
}

}  // namespace mercury
