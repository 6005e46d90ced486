// A server's door: accepts connections, lets them prove themselves, hands their sockets over.
//
// Whoever does not know the job token costs a descriptor and a few hundred bytes, for a few
// seconds; there is room for so many of them, and a newcomer takes another one's place
// (control/full_door.h).
//
// Thread-safety: none; runs on its lane's thread. Ownership: the listeners and all sockets until
// they are handed over.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/door_handshake.h"
#include "links/event_loop.h"
#include "links/handshake.h"
#include "links/tcp.h"

namespace mercury {

struct DoorOptions {
  std::string token;
  JobIdentity job{};
  Terms terms;  // this server's
  TcpOptions tcp;
  size_t strangers_max = kStrangersMax;  // connections that have not proved themselves yet
  int64_t handshake_timeout_us = int64_t{kDoorTimeoutMs} * 1000;
};

class Acceptor : public EventHandler {
 public:
  // `theirs`: what the worker has said.
  using Welcome = std::function<void(const Terms& theirs, TcpSocket socket)>;
  using Refused = std::function<void(const std::string& why)>;

  Acceptor(EventLoop* loop, TcpSocket listener, const DoorOptions& options, Welcome welcome,
           Refused refused);
  ~Acceptor() override;

  // Before Start: people come this way, too.
  void AddListener(TcpSocket listener) { listeners_.push_back(std::move(listener)); }
  Status Start();
  void Turn(int64_t now_us);  // drops who is late

 private:
  struct Stranger;
  void OnEvents(uint32_t events) override;
  Status Listen();
  void AcceptFrom(const TcpSocket& listener);
  void Hear(Stranger* stranger);
  void Drop(Stranger* stranger, const std::string& why);
  void Pause();

  EventLoop* const loop_;
  std::vector<TcpSocket> listeners_;
  const DoorOptions options_;
  const HmacKey key_;
  const Welcome welcome_;
  const Refused refused_;
  std::list<std::unique_ptr<Stranger>> strangers_;  // the oldest first
  std::list<std::unique_ptr<Stranger>> gone_;       // destroyed at the next turn
  int64_t resume_at_us_ = 0;                        // 0: listening
};

}  // namespace mercury
