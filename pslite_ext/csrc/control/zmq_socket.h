// ZeroMQ sockets as values that close themselves.
//
// Thread-safety: a socket belongs to one thread. Ownership: a ZmqContext outlives its sockets; a
// sent SArray is kept alive until ZeroMQ has written it out. Invariant: while a socket is watched,
// there is somewhere for its events to go.
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

// What has become of a connection.
struct ZmqEvent {
  int event = 0;
  int value = 0;  // of ZMQ_EVENT_CONNECTED and _DISCONNECTED: the connection's descriptor
};

class ZmqSocket {
 public:
  ZmqSocket() = default;
  ZmqSocket(const ZmqContext& context, int type);
  ~ZmqSocket() { Close(0); }
  ZmqSocket(ZmqSocket&& other) noexcept
      : socket_(std::exchange(other.socket_, nullptr)),
        events_(std::exchange(other.events_, nullptr)) {}
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

  // From now on, NextEvent tells of these events (ZMQ_EVENT_...) of its connections. They are kept
  // until somebody asks: ZeroMQ's I/O thread never waits for that.
  void Watch(const ZmqContext& context, int events);
  // What to poll for events; null: it is not watched.
  void* events() const { return events_; }
  // False when there is none.
  bool NextEvent(ZmqEvent* event);

  // A copy of `bytes`; false: it cannot be taken now.
  bool SendCopy(const void* data, size_t bytes, bool more);
  // No copy.
  bool SendShared(const ps::SArray<char>& array, bool more);
  // All parts of the next message; false when there is none.
  bool Receive(std::vector<ZmqFrame>* frames);

 private:
  void* socket_ = nullptr;
  void* events_ = nullptr;  // the other end of its monitor
};

// How far a socket that connects to one peer has come, by the events of its connections.
class ConnectionProgress {
 public:
  static constexpr int kEvents =
      ZMQ_EVENT_CONNECTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
  // Takes in what has happened to `socket`, which is watched for kEvents.
  void Hear(ZmqSocket* socket);
  // How many connections there have been.
  int connections() const { return connections_; }
  // Whether one stood, and none does now.
  bool down() const { return down_; }
  // How many bytes of the present one the other end's system has taken; -1: unknown, or there is
  // none. The descriptor is ZeroMQ's, which closes it when it likes, and it may be another file's
  // then: what was read counts only if the connection had not ended before.
  int64_t BytesTaken(ZmqSocket* socket);

 private:
  int fd_ = -1, connections_ = 0;
  bool stood_ = false, down_ = false;
};

bool IsIpv6(const std::string& host);
// "tcp://host:port", with brackets around an IPv6 address; port 0 becomes "*".
std::string TcpEndpoint(const std::string& host, int port);

}  // namespace mercury
