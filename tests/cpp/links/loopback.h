// Both ends of a TCP connection on this host.
#pragma once

#include <string>
#include <utility>

#include "harness.h"
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
  while (accepted.code == Code::kTimeout) accepted = Accept(listener, options, &near, &from);
  REQUIRE_OK(accepted);
  return {std::move(near), std::move(far)};
}

}  // namespace mercury::testing
