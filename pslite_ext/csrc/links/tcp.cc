#include "links/tcp.h"

#include <arpa/inet.h>
#include <linux/pkt_sched.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace mercury {
namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

bool Parse(const std::string& host, int port, SocketAddress* address) {
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address->storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address->storage);
  if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(port));
    address->bytes = sizeof(*v4);
    return true;
  }
  if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<uint16_t>(port));
    address->bytes = sizeof(*v6);
    return true;
  }
  return false;
}

Status Failed(const std::string& what) {
  const std::string text = what + ": " + std::strerror(errno);
  const bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
  return exhausted ? Status::Exhausted(text) : Status::PeerLost(text);
}

template <typename T>
void Set(int fd, int level, int name, const T& value) {
  setsockopt(fd, level, name, &value, sizeof(value));  // without it, slower but right
}

// Before connect or listen: the window's scale is agreed on then.
void SetBuffers(int fd, const TcpOptions& options) {
  if (options.receive_buffer_bytes > 0) {
    Set(fd, SOL_SOCKET, SO_RCVBUF, options.receive_buffer_bytes);
  }
  if (options.send_buffer_bytes > 0) Set(fd, SOL_SOCKET, SO_SNDBUF, options.send_buffer_bytes);
  if (!options.congestion.empty()) {
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, options.congestion.data(),
               static_cast<socklen_t>(options.congestion.size()));
  }
}

void SetRest(int fd, const TcpOptions& options) {
  Set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  Set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  Set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<unsigned>(options.timeout_ms));
  if (options.send_lowat_bytes > 0) {
    Set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, options.send_lowat_bytes);
  }
}

}  // namespace

TcpSocket& TcpSocket::operator=(TcpSocket&& other) noexcept {
  Close();
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

void TcpSocket::Close() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

Status Listen(const std::string& host, int* port, const TcpOptions& options, TcpSocket* listener) {
  SocketAddress address;
  if (!Parse(host, *port, &address)) {
    return Status::InvalidArgument("'" + host + "' is not an IP address");
  }
  TcpSocket fresh(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fresh) return Failed("no socket for tensors");
  SetBuffers(fresh.fd(), options);
  Set(fresh.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  const std::string where = host + ":" + std::to_string(*port);
  if (bind(fresh.fd(), address.get(), address.bytes) != 0 || listen(fresh.fd(), 1024) != 0) {
    return Failed("cannot listen for tensors on " + where);
  }
  address.bytes = sizeof(address.storage);
  if (getsockname(fresh.fd(), address.get(), &address.bytes) != 0) return Failed("no port");
  *port = ntohs(address.storage.ss_family == AF_INET
                    ? reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port
                    : reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port);
  *listener = std::move(fresh);
  return Status::Ok();
}

Status Connect(const std::string& host, int port, const TcpOptions& options, TcpSocket* out) {
  SocketAddress address;
  if (!Parse(host, port, &address)) {
    return Status::InvalidArgument("'" + host + "' is not an IP address");
  }
  TcpSocket fresh(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fresh) return Failed("no socket for tensors");
  SetBuffers(fresh.fd(), options);
  SetRest(fresh.fd(), options);
  if (connect(fresh.fd(), address.get(), address.bytes) != 0 && errno != EINPROGRESS) {
    return Failed("cannot connect");
  }
  *out = std::move(fresh);
  return Status::Ok();
}

Status Connected(const TcpSocket& socket) {
  int error = 0;
  socklen_t bytes = sizeof(error);
  if (getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) error = errno;
  errno = error;
  return error == 0 ? Status::Ok() : Failed("cannot connect");
}

Status Accept(const TcpSocket& listener, const TcpOptions& options, TcpSocket* out,
              std::string* peer) {
  SocketAddress address;
  address.bytes = sizeof(address.storage);
  TcpSocket fresh(
      Calls().accept(listener.fd(), address.get(), &address.bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fresh) {
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return Status::Timeout("");
    return Failed("cannot accept a connection");
  }
  if (address.storage.ss_family == AF_UNIX) {
    *peer = "this host";
    *out = std::move(fresh);
    return Status::Ok();
  }
  SetRest(fresh.fd(), options);
  char text[INET6_ADDRSTRLEN] = "";
  const bool v4 = address.storage.ss_family == AF_INET;
  const void* ip =
      v4 ? static_cast<void*>(&reinterpret_cast<sockaddr_in*>(&address.storage)->sin_addr)
         : static_cast<void*>(&reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_addr);
  inet_ntop(address.storage.ss_family, ip, text, sizeof(text));
  *peer = text;
  *out = std::move(fresh);
  return Status::Ok();
}

TcpPath PathOf(int fd) {
  tcp_info info{};
  socklen_t bytes = sizeof(info);
  TcpPath path;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return path;
  path.sent_again = info.tcpi_total_retrans;
  path.segment_bytes = std::max(info.tcpi_snd_mss, info.tcpi_advmss);
  path.round_trip_us = info.tcpi_min_rtt == ~0U ? 0 : info.tcpi_min_rtt;
  if (info.tcpi_delivery_rate_app_limited == 0) {
    path.bytes_per_second = static_cast<double>(info.tcpi_delivery_rate);
  }
  return path;
}

bool SameHost(const sockaddr* a, const sockaddr* b) {
  if (a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(b)->sin_addr.s_addr;
  }
  return a->sa_family == AF_INET6 &&
         IN6_ARE_ADDR_EQUAL(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr,
                            &reinterpret_cast<const sockaddr_in6*>(b)->sin6_addr);
}

bool IsLocal(int fd) {
  SocketAddress here, there;
  here.bytes = there.bytes = sizeof(sockaddr_storage);
  if (getsockname(fd, here.get(), &here.bytes) != 0) return false;
  if (getpeername(fd, there.get(), &there.bytes) != 0) return false;
  return here.storage.ss_family == AF_UNIX || SameHost(here.get(), there.get());
}

void BoundUnderWay(int fd, uint64_t bytes) {
  Set(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, static_cast<int>(std::min<uint64_t>(bytes, 1 << 30)));
}

void BoundUnsent(int fd, uint64_t bytes) {
  Set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, static_cast<int>(std::min<uint64_t>(bytes, 1 << 30)));
}

void SendOnlyFullSegments(int fd, bool only) { Set(fd, IPPROTO_TCP, TCP_CORK, only ? 1 : 0); }

void SendFirst(int fd) {
  Set(fd, IPPROTO_IP, IP_TOS, kSignalling);
  Set(fd, IPPROTO_IPV6, IPV6_TCLASS, kSignalling);
  Set(fd, SOL_SOCKET, SO_PRIORITY, TC_PRIO_INTERACTIVE);  // last: with the class goes another
}

TcpCalls& Calls() {
  static TcpCalls calls{sendmsg, recvmsg, accept4};
  return calls;
}

}  // namespace mercury
