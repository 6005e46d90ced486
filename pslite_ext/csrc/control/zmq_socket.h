// ZeroMQ sockets as values that close themselves.
//
// Thread-safety: a socket belongs to one thread. Ownership: a ZmqContext outlives its sockets; a
// sent SArray is kept alive until ZeroMQ has written it out.
#pragma once

#include <zmq.h>
#include <zmq_door.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ps/sarray.h"

namespace mercury {

class ZmqContext {
 public:
  explicit ZmqContext(int sockets_max);
  ~ZmqContext();
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;
  void* get() const { return context_; }

 private:
  void* context_;
};

// One part of a message.
class ZmqFrame {
 public:
  ZmqFrame() { zmq_msg_init(&message_); }
  ~ZmqFrame() { zmq_msg_close(&message_); }
  ZmqFrame(ZmqFrame&& other) noexcept {
    zmq_msg_init(&message_);
    zmq_msg_move(&message_, &other.message_);
  }
  ZmqFrame(const ZmqFrame&) = delete;
  ZmqFrame& operator=(const ZmqFrame&) = delete;
  char* data() { return static_cast<char*>(zmq_msg_data(&message_)); }
  size_t size() const { return zmq_msg_size(&message_); }
  std::string text() { return std::string(data(), size()); }
  zmq_msg_t* get() { return &message_; }

 private:
  zmq_msg_t message_;
};

class ZmqSocket {
 public:
  ZmqSocket() = default;
  ZmqSocket(const ZmqContext& context, int type);
  ~ZmqSocket() { Close(0); }
  ZmqSocket(ZmqSocket&& other) noexcept : socket_(std::exchange(other.socket_, nullptr)) {}
  ZmqSocket& operator=(ZmqSocket&& other) noexcept;
  void* get() const { return socket_; }
  explicit operator bool() const { return socket_ != nullptr; }

  void Set(int option, int value);
  void SetBytes(int option, int64_t value);
  void SetDoor(zmq::door_maker_t* maker);
  Status Bind(const std::string& endpoint);
  Status Connect(const std::string& endpoint);
  // The port that a wildcard bind got.
  int BoundPort() const;
  // Gives what is queued `linger_ms` to leave.
  void Close(int linger_ms);

  // A socket that tells of these events (ZMQ_EVENT_...) of this one's connections.
  ZmqSocket Monitor(const ZmqContext& context, int events);

  // A copy of `bytes`; false: it cannot be taken now.
  bool SendCopy(const void* data, size_t bytes, bool more);
  // No copy.
  bool SendShared(const ps::SArray<char>& array, bool more);
  // All parts of the next message; false when there is none.
  bool Receive(std::vector<ZmqFrame>* frames);

 private:
  void* socket_ = nullptr;
};

// What a monitor says.
struct ZmqEvent {
  int event = 0;
  int value = 0;  // of ZMQ_EVENT_CONNECTED: the connection's descriptor
};
bool ReadEvent(std::vector<ZmqFrame>& frames, ZmqEvent* event);

// How many bytes of the connection to `port` the other end's system has taken; -1: unknown. The
// descriptor is ZeroMQ's: it may have been closed, and be another file's by now.
int64_t BytesTaken(int fd, int port);

bool IsIpv6(const std::string& host);
// "tcp://host:port", with brackets around an IPv6 address; port 0 becomes "*".
std::string TcpEndpoint(const std::string& host, int port);

}  // namespace mercury
