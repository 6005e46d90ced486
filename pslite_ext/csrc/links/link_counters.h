// What a link has carried so far, in how many calls, and for how long it could not send.
//
// Thread-safety: a plain value.
#pragma once

#include <cstdint>

namespace mercury {

struct LinkCounters {
  uint64_t bytes_sent = 0, bytes_received = 0;
  uint64_t packets_sent = 0, packets_received = 0;
  uint64_t send_calls = 0, receive_calls = 0;
  int64_t blocked_us = 0;  // had something to send, but the socket was full

  LinkCounters& operator+=(const LinkCounters& other) {
    bytes_sent += other.bytes_sent;
    bytes_received += other.bytes_received;
    packets_sent += other.packets_sent;
    packets_received += other.packets_received;
    send_calls += other.send_calls;
    receive_calls += other.receive_calls;
    blocked_us += other.blocked_us;
    return *this;
  }
};

}  // namespace mercury
