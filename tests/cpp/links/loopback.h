// Both ends of a connection on this host: of TCP, or locally.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "harness.h"
#include "links/channel.h"
#include "links/local_socket.h"
#include "links/tcp.h"

namespace mercury::testing {

inline std::pair<TcpSocket, TcpSocket> ConnectedPair() {
  TcpOptions options;
  options.congestion = "";
  TcpSocket listener, near, far;
  int port = 0;
  std::string from;
  REQUIRE_OK(Listen("127.0.0.1", &port, options, &listener));
  REQUIRE_OK(Connect("127.0.0.1", port, options, &far));
  Status accepted = Status::Timeout("");
  while (accepted.code() == Code::kTimeout) accepted = Accept(listener, options, &near, &from);
  REQUIRE_OK(accepted);
  return {std::move(near), std::move(far)};
}

// No other test's process has it: the kernel gave its port to this one.
struct Place {
  Place() {
    TcpOptions options;
    options.congestion = "";
    REQUIRE_OK(Listen(address.host, &address.port, options, &tcp));
  }
  Address address{"127.0.0.1", 0};
  TcpSocket tcp;
};

// The one who listens, and the one who has come.
inline std::pair<TcpSocket, TcpSocket> LocalPair() {
  const Place place;
  TcpSocket listener, host, guest;
  std::string from;
  REQUIRE_OK(ListenLocally(place.address, &listener));
  REQUIRE_OK(ConnectLocally(place.address, &guest));
  REQUIRE_OK(Accept(listener, TcpOptions(), &host, &from));
  return {std::move(host), std::move(guest)};
}

inline std::unique_ptr<Channel> ChannelOf(TcpSocket socket,
                                          std::shared_ptr<LentMemory> lends = nullptr) {
  std::unique_ptr<Channel> channel;
  REQUIRE_OK(MakeChannel(std::move(socket), std::move(lends), &channel));
  return channel;
}

}  // namespace mercury::testing
