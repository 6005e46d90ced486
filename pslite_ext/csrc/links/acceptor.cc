#include "links/acceptor.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "control/full_door.h"
#include "links/dialer.h"
#include "links/lane.h"

namespace mercury {
namespace {

constexpr int kAcceptsAtOnce = 64;
constexpr int64_t kPauseUs = 500000;

}  // namespace

struct Acceptor::Stranger : public EventHandler {
  Stranger(Acceptor* owner, TcpSocket opened, std::string address, int64_t until_us)
      : door(owner),
        socket(std::move(opened)),
        from(std::move(address)),
        deadline_us(until_us),
        handshake(owner->key_, owner->options_.terms, RandomNonce()) {}
  void OnEvents(uint32_t /*events*/) override { door->Hear(this); }
  Acceptor* door;
  TcpSocket socket;
  std::string from;
  int64_t deadline_us;
  ServerHandshake handshake;
};

Acceptor::Acceptor(EventLoop* loop, TcpSocket listener, const DoorOptions& options, Welcome welcome,
                   Refused refused)
    : loop_(loop),
      options_(options),
      key_(DataKey(options.token, options.job)),
      welcome_(std::move(welcome)),
      refused_(std::move(refused)) {
  AddListener(std::move(listener));
}

Acceptor::~Acceptor() {
  for (const TcpSocket& listener : listeners_) loop_->Remove(listener.fd());
  for (auto& stranger : strangers_) loop_->Remove(stranger->socket.fd());
}

Status Acceptor::Start() { return Listen(); }

Status Acceptor::Listen() {
  Status status;
  for (const TcpSocket& listener : listeners_) {
    if (status.ok()) status = loop_->Add(listener.fd(), EPOLLIN, this);
  }
  return status;
}

void Acceptor::OnEvents(uint32_t /*events*/) {
  for (const TcpSocket& listener : listeners_) {
    if (resume_at_us_ == 0) AcceptFrom(listener);
  }
}

void Acceptor::AcceptFrom(const TcpSocket& listener) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    TcpSocket socket;
    std::string from;
    const Status status = Accept(listener, options_.tcp, &socket, &from);
    if (status.code() == Code::kTimeout) return;
    if (!status.ok() && status.code() != Code::kExhausted)
      continue;  // it is who knocks that failed
    if (!status.ok()) {
      // No descriptor is left: the oldest stranger gives his up.
      if (strangers_.empty()) return Pause();
      Drop(strangers_.front().get(), "no descriptor is left");
      gone_.clear();
      continue;
    }
    if (strangers_.size() >= options_.strangers_max) {
      const auto who =
          WhoMakesRoom(strangers_, [](const auto& each) -> const auto& { return each->from; });
      Drop(who->get(), "too many connections at once");
    }
    strangers_.push_back(std::make_unique<Stranger>(this, std::move(socket), from,
                                                    NowUs() + options_.handshake_timeout_us));
    Stranger* stranger = strangers_.back().get();
    const std::string challenge = stranger->handshake.Challenge();
    const ssize_t sent = send(stranger->socket.fd(), challenge.data(), challenge.size(),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(challenge.size()) ||
        !loop_->Add(stranger->socket.fd(), EPOLLIN, stranger).ok()) {
      Drop(stranger, "it takes nothing");
    }
  }
}

void Acceptor::Hear(Stranger* stranger) {
  char buffer[kHelloBytes];
  const ssize_t got =
      recv(stranger->socket.fd(), buffer, stranger->handshake.wants(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return Drop(stranger, "it hung up");
  std::string reply;
  Status status = stranger->handshake.Feed(buffer, static_cast<size_t>(got), &reply);
  if (!reply.empty()) {
    const ssize_t sent =
        send(stranger->socket.fd(), reply.data(), reply.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (status.ok() && sent != static_cast<ssize_t>(reply.size())) {
      status = Status::PeerLost("it takes nothing");
    }
  }
  if (!status.ok()) return Drop(stranger, status.text());
  if (!stranger->handshake.done()) return;
  loop_->Remove(stranger->socket.fd());
  TcpSocket socket = std::move(stranger->socket);
  const Terms theirs = stranger->handshake.theirs();
  Drop(stranger, "");
  welcome_(theirs, std::move(socket));
}

void Acceptor::Drop(Stranger* stranger, const std::string& why) {
  const auto it = std::find_if(strangers_.begin(), strangers_.end(),
                               [&](const auto& each) { return each.get() == stranger; });
  if (it == strangers_.end()) return;
  if (stranger->socket) loop_->Remove(stranger->socket.fd());
  stranger->socket.Close();
  if (!why.empty()) refused_("a connection from " + stranger->from + ": " + why);
  gone_.splice(gone_.end(), strangers_, it);
}

// No descriptor is left and none can be freed here: who waits outside waits a little longer.
void Acceptor::Pause() {
  for (const TcpSocket& listener : listeners_) loop_->Remove(listener.fd());
  resume_at_us_ = NowUs() + kPauseUs;
}

void Acceptor::Turn(int64_t now_us) {
  gone_.clear();
  if (resume_at_us_ != 0 && now_us >= resume_at_us_) {
    resume_at_us_ = 0;
    if (!Listen().ok()) Pause();
  }
  while (!strangers_.empty() && strangers_.front()->deadline_us <= now_us) {
    Drop(strangers_.front().get(), "it said nothing");
  }
}

}  // namespace mercury
