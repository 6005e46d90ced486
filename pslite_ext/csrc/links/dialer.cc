#include "links/dialer.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "links/lane.h"
#include "links/local_socket.h"

namespace mercury {
namespace {

constexpr int64_t kRetryUs = 200000;

}  // namespace

Dialer::Dialer(EventLoop* loop, const HmacKey& key, const Terms& terms, Address address,
               const TcpOptions& options, int64_t deadline_us, Done done)
    : loop_(loop),
      key_(key),
      terms_(terms),
      address_(std::move(address)),
      options_(options),
      deadline_us_(deadline_us),
      done_(std::move(done)) {}

Dialer::~Dialer() {
  if (socket_) loop_->Remove(socket_.fd());
}

void Dialer::Start(int64_t now_us) {
  if (locally_) locally_until_us_ = now_us + (deadline_us_ - now_us) / 2;
  retry_at_us_ = -1;
  connected_ = heard_ = false;
  handshake_ = std::make_unique<WorkerHandshake>(key_, terms_, RandomNonce());
  if (locally_) locally_ = ConnectLocally(address_, &socket_).ok();
  Status status;
  if (!locally_) status = Connect(address_.host, address_.port, options_, &socket_);
  if (status.ok()) status = loop_->Add(socket_.fd(), EPOLLOUT, this);
  if (status.ok()) return;
  last_ = status;
  socket_.Close();
  retry_at_us_ = now_us + kRetryUs;
}

void Dialer::Turn(int64_t now_us) {
  if (finished_) return;
  if (now_us >= deadline_us_) {
    return Finish(last_.ok() ? Status::Timeout("it does not answer") : last_);
  }
  if (locally_ && !heard_ && now_us >= locally_until_us_)
    Retry(Status::Timeout("it does not answer"));
  if (retry_at_us_ >= 0 && now_us >= retry_at_us_) Start(now_us);
}

void Dialer::Retry(const Status& status) {
  last_ = status;
  loop_->Remove(socket_.fd());
  socket_.Close();
  retry_at_us_ = NowUs() + (locally_ ? 0 : kRetryUs);
  locally_ = false;
}

void Dialer::OnEvents(uint32_t /*events*/) {
  if (finished_) return;
  if (!connected_) {
    const Status status = Connected(socket_);
    if (!status.ok()) return Retry(status);
    connected_ = true;
    loop_->Change(socket_.fd(), EPOLLIN);
    return;
  }
  char buffer[1024];
  const size_t room = std::min(sizeof(buffer), handshake_->wants());
  const ssize_t got = recv(socket_.fd(), buffer, room, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    // Perhaps the server had too many strangers at its door.
    return Retry(Status::PeerLost(
        "it closed the connection during the handshake: do both have the same job token?"));
  }
  heard_ = true;
  std::string reply;
  Status status = handshake_->Feed(buffer, static_cast<size_t>(got), &reply);
  if (status.ok() && !reply.empty()) {
    const ssize_t sent =
        send(socket_.fd(), reply.data(), reply.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(reply.size())) {
      status = Status::PeerLost("it does not take the handshake");
    }
  }
  if (!status.ok() || handshake_->done()) Finish(status);
}

void Dialer::Finish(const Status& status) {
  if (std::exchange(finished_, true)) return;
  if (socket_) loop_->Remove(socket_.fd());
  TcpSocket socket = std::move(socket_);
  if (!status.ok()) socket.Close();
  done_(status, std::move(socket));
}

}  // namespace mercury
