#include "links/local_channel.h"

#include <sys/epoll.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "links/local_socket.h"

namespace mercury {
namespace {

// One for each direction: what the host writes, what the guest writes.
struct Rings {
  RingMemory of_host, of_guest;
};

// What each says first, with one byte.
constexpr char kNone = 0, kMemory = 1;

bool Say(int fd, char byte) { return send(fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1; }

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
  host_ = IsHost(fd());
  if (!host_) return Status::Ok();
  Status offered = Offer();
  if (offered.ok()) return offered;
  SayNotShared(offered);
  memory_ = SharedMemory();
  return Say(fd(), kNone) ? Status::Ok() : Status::PeerLost("it takes no memory to share");
}

Status LocalChannel::Offer() {
  TcpSocket descriptor;
  Status status = SharedMemory::Make(sizeof(Rings), &memory_, &descriptor);
  for (const size_t ring : {offsetof(Rings, of_host), offsetof(Rings, of_guest)}) {
    const size_t bytes = offsetof(RingMemory, bytes) + ring_bytes_;
    if (status.ok()) status = SharedMemory::Provide(descriptor, ring, bytes);
  }
  if (!status.ok()) return status;
  static_cast<Rings*>(memory_.data())->of_host.ring_bytes = ring_bytes_;
  if (HandOver(fd(), kMemory, descriptor.fd(), lends_ != nullptr ? lends_->Lend() : -1)) {
    return status;
  }
  return Status::Exhausted(
      std::string("no memory to share with processes of this host: sendmsg: ") +
      std::strerror(errno));
}

// A guest's.
Status LocalChannel::Take(const TcpSocket& handed, const TcpSocket& lent) {
  if (!handed) {
    return Status::Exhausted(
        "no memory to share with processes of this host: no descriptor is left for it");
  }
  Status status = SharedMemory::Map(handed, sizeof(Rings), SharedMemory::For::kWriting, &memory_);
  if (!status.ok()) return status;
  const uint64_t ring_bytes = static_cast<Rings*>(memory_.data())->of_host.ring_bytes;
  if (!IsRingBytes(ring_bytes)) return Status::Corrupt("rings of a length that there is not");
  ring_bytes_ = ring_bytes;
  if (!lent) return status;
  status = SharedMemory::Map(lent, kLentBytes, SharedMemory::For::kReading, &borrowed_);
  if (status.code() != Code::kExhausted) return status;
  SayNotShared(status);
  return Status::Ok();
}

// What the other one has said first.
void LocalChannel::Meet(char said, const TcpSocket& rings, const TcpSocket& lent) {
  if (host_ && said == kMemory && memory_) {
    return Share(lends_ != nullptr ? Lent{lends_->data(), kLentBytes} : Lent(), Lent());
  }
  if (host_) return said == kNone ? Stream() : Break(EPROTO);
  const Status taken = said == kMemory ? Take(rings, lent) : Status::Ok();
  if (taken.code() == Code::kCorrupt) return Break(EPROTO);
  if (!taken.ok()) SayNotShared(taken);
  const bool has = said == kMemory && taken.ok();
  if (!Say(fd(), has ? kMemory : kNone)) return Break(EPIPE);
  if (!has) return Stream();
  Share(Lent(), {static_cast<const char*>(borrowed_.data()), borrowed_ ? kLentBytes : 0});
}

void LocalChannel::Share(Lent lent, Lent borrowed) {
  auto* rings = static_cast<Rings*>(memory_.data());
  RingMemory* in = host_ ? &rings->of_guest : &rings->of_host;
  RingMemory* out = host_ ? &rings->of_host : &rings->of_guest;
  ends_.emplace(Ends{RingReader(in, borrowed, ring_bytes_), RingWriter(out, lent, ring_bytes_)});
  state_ = State::kSharing;
}

void LocalChannel::Stream() {
  memory_ = SharedMemory();
  state_ = State::kStreaming;
}

void LocalChannel::Break(int error) {
  ended_ = true;
  error_ = error;
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
  if (state_ == State::kStreaming) {
    return Calls().send(fd(), message, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  if (!ends_) return Failed(false);
  RingWriter& out = ends_->out;
  const size_t sent = out.Write(message->msg_iov, message->msg_iovlen);
  owes_wake_ = owes_wake_ || sent != 0;
  if (owes_wake_ && out.half_full()) WakeReader(&out);
  if (sent != 0 && error_ == 0) return static_cast<ssize_t>(sent);
  return Failed(out.broken());
}

ssize_t LocalChannel::Receive(msghdr* message) {
  if (state_ == State::kStreaming) return Calls().receive(fd(), message, MSG_DONTWAIT);
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

uint32_t LocalChannel::Woken(uint32_t events) {
  if (state_ == State::kStreaming) return events;
  Hear();
  return state_ == State::kStreaming ? uint32_t{EPOLLOUT}
                                     : 0;  // from now on a socket like any other
}

// Descriptors that nobody has asked for are closed at once. What comes behind the first byte may be
// the stream already.
void LocalChannel::Hear() {
  TcpSocket handed, lent;
  char bytes[64];
  const size_t most = state_ == State::kMeeting ? 1 : sizeof(bytes);
  const ssize_t got = mercury::Hear(fd(), bytes, most, &handed, &lent);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    ended_ = true;
    if (got < 0) error_ = errno;
    return;
  }
  if (state_ == State::kMeeting) Meet(bytes[0], handed, lent);
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
