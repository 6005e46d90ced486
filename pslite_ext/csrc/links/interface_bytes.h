// What a network interface has carried since the host began: of whatever process, headers included.
//
// Thread-safety: none; one lane owns it. Ownership: a socket towards the kernel. Invariant: where
// the kernel does not tell, both figures are 0.
#pragma once

#include <cstdint>

#include "links/tcp.h"

namespace mercury {

class InterfaceBytes {
 public:
  InterfaceBytes() = default;
  // The interface that has the address of this end of a connection.
  explicit InterfaceBytes(int fd);

  bool known() const { return index_ != 0; }
  uint64_t received() { return Read().received; }
  uint64_t sent() { return Read().sent; }

 private:
  struct Totals {
    uint64_t received = 0, sent = 0;
  };
  Totals Read();

  TcpSocket kernel_;  // of netlink
  unsigned index_ = 0;
};

}  // namespace mercury
