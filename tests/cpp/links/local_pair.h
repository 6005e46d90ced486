// A host and a guest of shared memory, what they say, and what limits their process.
#pragma once

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "harness.h"
#include "links/channel.h"
#include "links/loopback.h"

namespace mercury::testing {

inline bool Woken(const Channel& channel) {
  pollfd ready{channel.fd(), POLLIN, 0};
  return poll(&ready, 1, 0) == 1;
}

inline ssize_t Send(Channel* channel, std::string bytes) {
  iovec piece{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  return channel->Send(&message);
}

inline std::string Receive(Channel* channel, ssize_t* got) {
  std::string bytes(100, '\0');
  iovec piece{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  *got = channel->Receive(&message);
  return bytes.substr(0, static_cast<size_t>(std::max<ssize_t>(*got, 0)));
}

inline std::string Receive(Channel* channel) {
  ssize_t got;
  return Receive(channel, &got);
}

struct Pair {
  Pair() {
    auto [listening, come] = LocalPair();
    guest = ChannelOf(std::move(come));
    host = ChannelOf(std::move(listening));
  }
  void Meet() const {
    guest->Woken(POLLIN);
    host->Woken(POLLIN);
  }
  std::unique_ptr<Channel> host, guest;
};

// A limit of this process, for a while.
class Limit {
 public:
  Limit(int of, rlim_t bytes) : of_(of) {
    std::signal(SIGXFSZ, SIG_IGN);  // as Python does
    REQUIRE_EQ(getrlimit(of_, &before_), 0);
    const rlimit tight{bytes, before_.rlim_max};
    REQUIRE_EQ(setrlimit(of_, &tight), 0);
  }
  ~Limit() { CHECK_EQ(setrlimit(of_, &before_), 0); }

 private:
  const int of_;
  rlimit before_{};
};

// Of this process, used.
inline rlim_t AddressBytes() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace mercury::testing
