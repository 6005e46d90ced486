#include "control/zmq_socket.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mercury {
namespace {

constexpr size_t kCopyBytesMax = 256;  // below, a copy is cheaper than sharing

void Release(void* /*data*/, void* hint) { delete static_cast<ps::SArray<char>*>(hint); }

bool ReceiveFrom(void* socket, std::vector<ZmqFrame>* frames) {
  frames->clear();
  while (true) {
    ZmqFrame frame;
    if (zmq_msg_recv(frame.get(), socket, ZMQ_DONTWAIT) < 0) {
      if (zmq_errno() == EINTR) continue;
      return false;  // the parts of a message arrive together, so this is between two messages
    }
    const bool more = zmq_msg_more(frame.get()) != 0;
    frames->push_back(std::move(frame));
    if (!more) return true;
  }
}

}  // namespace

ZmqContext::ZmqContext(int sockets_max) : context_(zmq_ctx_new()) {
  zmq_ctx_set(context_, ZMQ_MAX_SOCKETS, sockets_max);
  zmq_ctx_set(context_, ZMQ_IO_THREADS, 1);
}

ZmqContext::~ZmqContext() { zmq_ctx_term(context_); }

ZmqSocket::ZmqSocket(const ZmqContext& context, int type)
    : socket_(zmq_socket(context.get(), type)) {}

ZmqSocket& ZmqSocket::operator=(ZmqSocket&& other) noexcept {
  if (this != &other) {
    Close(0);
    socket_ = std::exchange(other.socket_, nullptr);
    events_ = std::exchange(other.events_, nullptr);
  }
  return *this;
}

void ZmqSocket::Set(int option, int value) {
  zmq_setsockopt(socket_, option, &value, sizeof(value));
}
void ZmqSocket::SetBytes(int option, int64_t value) {
  zmq_setsockopt(socket_, option, &value, sizeof(value));
}

void ZmqSocket::SetDoor(zmq::door_maker_t* maker) {
  zmq_setsockopt(socket_, ZMQ_DOOR, static_cast<const void*>(&maker), sizeof(void*));
}

Status ZmqSocket::Bind(const std::string& endpoint) {
  if (zmq_bind(socket_, endpoint.c_str()) == 0) return Status::Ok();
  const int error = zmq_errno();
  const std::string why = endpoint + ": " + zmq_strerror(error);
  if (error == EADDRINUSE) {
    return Status::InvalidArgument("cannot listen on " + why +
                                   " by another process; choose another port or end that process");
  }
  if (error == EADDRNOTAVAIL || error == ENODEV) {
    return Status::InvalidArgument("cannot listen on " + why +
                                   "; no interface of this host has that address");
  }
  return Status::InvalidArgument("cannot listen on " + why);
}

Status ZmqSocket::Connect(const std::string& endpoint) {
  if (socket_ == nullptr) return Status::Exhausted("no socket to connect to " + endpoint);
  if (zmq_connect(socket_, endpoint.c_str()) == 0) return Status::Ok();
  return Status::InvalidArgument("cannot connect to " + endpoint + ": " +
                                 zmq_strerror(zmq_errno()));
}

int ZmqSocket::BoundPort() const {
  char endpoint[256] = {};
  size_t size = sizeof(endpoint);
  if (zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, endpoint, &size) != 0) return 0;
  const char* colon = std::strrchr(endpoint, ':');
  return colon == nullptr ? 0 : static_cast<int>(std::strtol(colon + 1, nullptr, 10));
}

void ZmqSocket::Close(int linger_ms) {
  if (socket_ == nullptr) return;
  Set(ZMQ_LINGER, linger_ms);
  // First the events: with nobody to take the next one, the I/O thread would wait forever.
  if (events_ != nullptr) zmq_socket_monitor(socket_, nullptr, 0);
  zmq_close(std::exchange(socket_, nullptr));
  if (events_ != nullptr) zmq_close(std::exchange(events_, nullptr));
}

void ZmqSocket::Watch(const ZmqContext& context, int events) {
  char endpoint[64];
  std::snprintf(endpoint, sizeof(endpoint), "inproc://monitor-%p", socket_);
  events_ = zmq_socket(context.get(), ZMQ_PAIR);
  if (events_ == nullptr) return;
  const int no_limit = 0;  // at a limit, the I/O thread would wait
  zmq_setsockopt(events_, ZMQ_RCVHWM, &no_limit, sizeof(no_limit));
  if (zmq_socket_monitor(socket_, endpoint, events) == 0 && zmq_connect(events_, endpoint) == 0) {
    return;
  }
  zmq_socket_monitor(socket_, nullptr, 0);
  zmq_close(std::exchange(events_, nullptr));
}

bool ZmqSocket::NextEvent(ZmqEvent* event) {
  constexpr size_t kEventBytes = 6;
  std::vector<ZmqFrame> frames;
  if (events_ == nullptr || !ReceiveFrom(events_, &frames)) return false;
  if (frames[0].size() < kEventBytes) return false;
  uint16_t number;
  int32_t value;
  std::memcpy(&number, frames[0].data(), sizeof(number));
  std::memcpy(&value, frames[0].data() + sizeof(number), sizeof(value));
  *event = {number, value};
  return true;
}

bool ZmqSocket::SendCopy(const void* data, size_t bytes, bool more) {
  return zmq_send(socket_, data, bytes, ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) >= 0;
}

bool ZmqSocket::SendShared(const ps::SArray<char>& array, bool more) {
  if (array.size() <= kCopyBytesMax) return SendCopy(array.data(), array.size(), more);
  auto* keep = new ps::SArray<char>(array);
  zmq_msg_t message;
  if (zmq_msg_init_data(&message, keep->data(), keep->size(), Release, keep) != 0) {
    delete keep;
    return false;
  }
  if (zmq_msg_send(&message, socket_, ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) >= 0) return true;
  zmq_msg_close(&message);
  return false;
}

bool ZmqSocket::Receive(std::vector<ZmqFrame>* frames) { return ReceiveFrom(socket_, frames); }

void ConnectionProgress::Hear(ZmqSocket* socket) {
  ZmqEvent event;
  while (socket->NextEvent(&event)) {
    if (event.event == ZMQ_EVENT_CONNECTED) {
      fd_ = event.value;
      ++connections_;
    } else if (event.event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
      stood_ = true;
      down_ = false;
    } else if (event.event == ZMQ_EVENT_DISCONNECTED) {
      down_ = stood_;
      if (event.value == fd_) fd_ = -1;
    }
  }
}

int64_t ConnectionProgress::BytesTaken(ZmqSocket* socket) {
  Hear(socket);
  if (fd_ < 0) return -1;
  const int connections = connections_;
  tcp_info info{};
  socklen_t bytes = sizeof(info);
  const bool known = getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0;
  Hear(socket);  // ZeroMQ tells before it closes
  if (!known || fd_ < 0 || connections_ != connections) return -1;
  return static_cast<int64_t>(info.tcpi_bytes_acked);
}

bool IsIpv6(const std::string& host) { return host.find(':') != std::string::npos; }

std::string TcpEndpoint(const std::string& host, int port) {
  return "tcp://" + (IsIpv6(host) ? "[" + host + "]" : host) + ":" +
         (port == 0 ? "*" : std::to_string(port));
}

}  // namespace mercury
