#include "packets/plane_door.h"

#include <utility>

#include "links/local_socket.h"

namespace mercury {

Status PlaneDoor::Open(const std::string& host, const TcpOptions& options, int* port) {
  const Status status = Listen(host, port, options, &listener_);
  // Without it, workers of this host use TCP.
  if (status.ok()) (void)ListenLocally({host, *port}, &local_listener_);
  return status;
}

Status PlaneDoor::Serve(EventLoop* loop, const DoorOptions& options, Acceptor::Welcome welcome,
                        Acceptor::Refused refused) {
  acceptor_ = std::make_unique<Acceptor>(loop, std::move(listener_), options, std::move(welcome),
                                         std::move(refused));
  if (local_listener_) acceptor_->AddListener(std::move(local_listener_));
  return acceptor_->Start();
}

void PlaneDoor::Close() {
  acceptor_.reset();
  listener_.Close();
  local_listener_.Close();
}

}  // namespace mercury
