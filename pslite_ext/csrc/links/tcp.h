// TCP sockets for data links: non-blocking, with buffers that are kept short, because what sits in
// a buffer cannot be overtaken.
//
// Thread-safety: plain functions on descriptors; a TcpSocket is owned by one thread. Ownership:
// a TcpSocket closes its descriptor.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/status.h"

namespace mercury {

constexpr int kUnsentBytesMax = 128 << 10;

struct TcpOptions {
  std::string congestion = "cubic";        // empty: the system's
  int send_lowat_bytes = kUnsentBytesMax;  // unsent bytes in the kernel; 0: the system's
  int send_buffer_bytes = 0;               // 0: the system's
  int receive_buffer_bytes = 256 << 10;
  int timeout_ms = 10000;  // how long sent bytes may stay unacknowledged
};

struct Address {
  std::string host;
  int port = 0;
  std::string text() const { return host + ":" + std::to_string(port); }
};

class TcpSocket {
 public:
  TcpSocket() = default;
  explicit TcpSocket(int fd) : fd_(fd) {}
  ~TcpSocket() { Close(); }
  TcpSocket(TcpSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  TcpSocket& operator=(TcpSocket&& other) noexcept;
  TcpSocket(const TcpSocket&) = delete;
  TcpSocket& operator=(const TcpSocket&) = delete;
  void Close();
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// port 0: any free one, which is then in *port.
Status Listen(const std::string& host, int* port, const TcpOptions& options, TcpSocket* socket);
// Begins to connect; the socket is writable when that has come to an end.
Status Connect(const std::string& host, int port, const TcpOptions& options, TcpSocket* socket);
// What came of it.
Status Connected(const TcpSocket& socket);
// kTimeout: nobody is waiting.
Status Accept(const TcpSocket& listener, const TcpOptions& options, TcpSocket* socket,
              std::string* peer);

struct TcpPath {
  int64_t round_trip_us = 0;    // the shortest of the last minutes
  double bytes_per_second = 0;  // delivered lately; 0: not known, or there was too little to send
  uint64_t segment_bytes = 0;   // the larger way's; 0: not known
  uint64_t sent_again = 0;      // segments that were
};
TcpPath PathOf(int fd);
// Whether they name the same host; ports do not count.
bool SameHost(const sockaddr* a, const sockaddr* b);
// Whether both ends are on this host, so that no link of it carries anything.
bool IsLocal(int fd);

// Caps the receive window that the peer is told.
void BoundUnderWay(int fd, uint64_t bytes);
// Caps what the kernel holds of ours that it has not sent.
void BoundUnsent(int fd, uint64_t bytes);

// Whether the last bytes wait until they fill a segment, or until this is taken back.
void SendOnlyFullSegments(int fd, bool only);

// Asks hosts and switches on the way to let it pass before all else: for letters that are few and
// short. By the class of service that signalling has (DSCP CS5), and in queues of this host.
constexpr int kSignalling = 5 << 5;
void SendFirst(int fd);

// Calls of the system, to be replaced by tests that make the n-th one fail.
struct TcpCalls {
  ssize_t (*send)(int fd, const msghdr* message, int flags);
  ssize_t (*receive)(int fd, msghdr* message, int flags);
  int (*accept)(int fd, sockaddr* address, socklen_t* bytes, int flags);
};
TcpCalls& Calls();

}  // namespace mercury
