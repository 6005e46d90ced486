#include "links/local_channel.h"

#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <mutex>
#include <utility>

#include "links/local_socket.h"

namespace mercury {
namespace {

// One for each direction: what the host writes, what the guest writes.
struct Rings {
  RingMemory of_host, of_guest;
};

// Who listens has a name, and so have the sockets that it accepts.
bool IsHost(int fd) {
  sockaddr_un name{};
  socklen_t bytes = sizeof(name);
  return getsockname(fd, reinterpret_cast<sockaddr*>(&name), &bytes) == 0 &&
         bytes > offsetof(sockaddr_un, sun_path);
}

}  // namespace

Status LocalChannel::Begin() {
  if (!IsOurUser(fd())) return Status::PeerLost("it belongs to another user of this host");
  if (!IsHost(fd())) return Status::Ok();
  TcpSocket descriptor;
  Status status = SharedMemory::Make(sizeof(Rings), &memory_, &descriptor);
  if (!status.ok()) return status;
  if (!HandOver(fd(), descriptor.fd(), lends_ != nullptr ? lends_->Lend() : -1)) {
    return Status::PeerLost("it takes no memory to share");
  }
  const Lent lent = lends_ != nullptr ? Lent{lends_->data(), kLentBytes} : Lent();
  auto* rings = static_cast<Rings*>(memory_.data());
  ends_.emplace(Ends{RingReader(&rings->of_guest), RingWriter(&rings->of_host, lent)});
  return Status::Ok();
}

// A guest's.
Status LocalChannel::Take(const TcpSocket& handed, const TcpSocket& lent) {
  Status status = SharedMemory::Map(handed, sizeof(Rings), SharedMemory::For::kWriting, &memory_);
  if (status.ok() && lent) {
    status = SharedMemory::Map(lent, kLentBytes, SharedMemory::For::kReading, &borrowed_);
    if (status.code == Code::kExhausted) status = Status::Ok();
  }
  if (!status.ok()) return status;
  const Lent borrowed{static_cast<const char*>(borrowed_.data()), borrowed_ ? kLentBytes : 0};
  auto* rings = static_cast<Rings*>(memory_.data());
  ends_.emplace(Ends{RingReader(&rings->of_host, borrowed), RingWriter(&rings->of_guest)});
  return Status::Ok();
}

// Who has not read all of it may still do so, and must not find what came there later.
LocalChannel::~LocalChannel() {
  if (kept_.empty() || !ends_ || ended_ || ends_->out.HasRead(kept_.back().until)) return;
  static std::mutex mutex;
  static std::list<Kept> for_good;
  const std::lock_guard<std::mutex> lock(mutex);
  for_good.splice(for_good.end(), kept_);
}

void LocalChannel::Keep(std::vector<std::shared_ptr<const void>>* sent) {
  if (!ends_) return;
  const RingWriter& out = ends_->out;
  while (!kept_.empty() && out.HasRead(kept_.front().until)) kept_.pop_front();
  if (out.lends()) kept_.push_back({out.written(), std::move(*sent)});
}

ssize_t LocalChannel::Send(const msghdr* message) {
  if (!ends_) return Failed(false);
  RingWriter& out = ends_->out;
  const size_t sent = out.Write(message->msg_iov, message->msg_iovlen);
  owes_wake_ = owes_wake_ || sent != 0;
  if (owes_wake_ && out.half_full()) WakeReader(&out);
  if (sent != 0 && error_ == 0) return static_cast<ssize_t>(sent);
  return Failed(out.broken());
}

ssize_t LocalChannel::Receive(msghdr* message) {
  bool broken = false;
  if (ends_) {
    RingReader& in = ends_->in;
    const size_t got = in.Read(message->msg_iov, message->msg_iovlen);
    if (got != 0 && in.TakeWritersRest()) WakeOther();
    if (got != 0) return static_cast<ssize_t>(got);
    broken = in.broken();
  }
  if (ended_ && error_ == 0) return 0;
  return Failed(broken);
}

ssize_t LocalChannel::Failed(bool broken) {
  if (broken) error_ = EPROTO;
  errno = error_ != 0 ? error_ : EAGAIN;
  return -1;
}

void LocalChannel::WakeReader(RingWriter* out) {
  owes_wake_ = false;
  if (out->TakeReadersRest()) WakeOther();
}

// If the socket takes nothing, it is full of such bytes: then the other one will wake.
void LocalChannel::WakeOther() {
  const char byte = 0;
  const ssize_t sent = send(fd(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) error_ = errno;
}

// Only a guest takes descriptors, and only once; any other is closed at once.
void LocalChannel::Woken() {
  TcpSocket handed, lent;
  const ssize_t got = Hear(fd(), &handed, &lent);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    ended_ = true;
    if (got < 0) error_ = errno;
    return;
  }
  if (!handed || memory_) return;
  if (Take(handed, lent).ok()) return;
  ended_ = true;
  error_ = EPROTO;
}

bool LocalChannel::Rest(bool wants_room) {
  if (ended_) return false;
  if (!ends_) return true;
  auto& [in, out] = *ends_;
  if (owes_wake_) WakeReader(&out);
  const bool nothing_in = in.Rest();
  return (!wants_room || out.Rest()) && nothing_in;
}

}  // namespace mercury
