// Where a process listens for workers' data links: by TCP, and for those of its host by a local
// socket. It opens before the job knows the process; who comes waits until it is served.
//
// Thread-safety: Open and Close from one thread; the rest on the lane's that serves it. Ownership:
// the listeners and who has not proved himself yet.
#pragma once

#include <memory>
#include <string>

#include "links/acceptor.h"
#include "links/event_loop.h"
#include "links/lent_memory.h"
#include "links/tcp.h"

namespace mercury {

class PlaneDoor {
 public:
  Status Open(const std::string& host, const TcpOptions& options, int* port);
  // What the process lends to who comes by the local socket; null: nobody can.
  std::shared_ptr<LentMemory> Lends() const {
    return local_listener_ ? LentMemory::Make() : nullptr;
  }
  Status Serve(EventLoop* loop, const DoorOptions& options, Acceptor::Welcome welcome,
               Acceptor::Refused refused);
  void Turn(int64_t now_us) {
    if (acceptor_ != nullptr) acceptor_->Turn(now_us);
  }
  void Close();

 private:
  TcpSocket listener_, local_listener_;
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace mercury
