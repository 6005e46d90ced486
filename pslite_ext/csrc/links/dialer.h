// A worker's way to one server: connects, shakes hands, hands the socket over. A server on the same
// host is reached by a local socket, or by TCP if that does not lead to it.
//
// Thread-safety: none; runs on its lane's thread. Ownership: the socket, until it is handed over.
// Invariant: `done` is called exactly once, with a socket or with what went wrong.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "links/event_loop.h"
#include "links/handshake.h"
#include "links/tcp.h"

namespace mercury {

class Dialer : public EventHandler {
 public:
  using Done = std::function<void(const Status&, TcpSocket)>;
  Dialer(EventLoop* loop, const HmacKey& key, const Terms& terms, Address address,
         const TcpOptions& options, int64_t deadline_us, Done done);
  ~Dialer() override;

  void Start(int64_t now_us);
  // Tries again, or gives up.
  void Turn(int64_t now_us);
  bool finished() const { return finished_; }

 private:
  void OnEvents(uint32_t events) override;
  void Retry(const Status& status);
  void Finish(const Status& status);

  EventLoop* const loop_;
  const HmacKey& key_;
  const Terms terms_;
  const Address address_;
  const TcpOptions options_;
  const int64_t deadline_us_;
  Done done_;
  TcpSocket socket_;
  std::unique_ptr<WorkerHandshake> handshake_;
  int64_t retry_at_us_ = -1;
  Status last_;
  bool locally_ = true;           // the local socket is tried; TCP when it has failed
  int64_t locally_until_us_ = 0;  // somebody else may have its name, and say nothing
  bool connected_ = false, finished_ = false;
  // Then it is the server: it may let this one in any moment, and would miss it.
  bool heard_ = false;
};

}  // namespace mercury
