// A box between two nodes of a test: passes bytes on, or does with them what a bad network does.
//
// Thread-safety: all public functions from any thread; a thread of its own carries bytes.
// Ownership: it owns its sockets, which close with it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace mercury::testing {

class TcpProxy {
 public:
  enum Mode {
    kPass,
    kSlow,     // a piece at a time: about a megabyte a second
    kSwallow,  // takes everything and delivers nothing
    kStop,     // takes nothing, as if the cable were cut
    kFlip,     // passes on, but for one bit of every large piece
  };
  TcpProxy() {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // What it holds would hide how fast it is.
    constexpr int kBufferBytes = 1 << 16;
    setsockopt(listener_, SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof(kBufferBytes));
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof(address);
    bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    listen(listener_, 16);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~TcpProxy() {
    stop_ = true;
    thread_.join();
    for (Pair& pair : pairs_) Close(&pair);
    close(listener_);
  }
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  // Where connections go on to.
  void LeadTo(int port) { target_ = port; }
  int port() const { return port_; }
  void Set(Mode mode) { mode_ = mode; }
  // Both halves of every connection are reset, without a farewell.
  void Reset() {
    resets_ = true;
    while (resets_) std::this_thread::sleep_for(kTurn);
  }
  // Connections that it carries.
  size_t open() const { return open_; }
  // Bytes that it was sent since it began to swallow.
  uint64_t swallowed() const { return swallowed_; }

 private:
  static constexpr auto kTurn = std::chrono::milliseconds(5);
  static constexpr size_t kSlowBytes = 20000;
  struct Pair {
    int ends[2];
  };

  static sockaddr_in Loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    return address;
  }
  static void Close(Pair* pair) {
    const linger at_once{1, 0};
    for (int& end : pair->ends) {
      setsockopt(end, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
      close(end);
    }
  }

  void Run() {
    while (!stop_) {
      open_ = pairs_.size();
      if (resets_) {
        for (Pair& pair : pairs_) Close(&pair);
        pairs_.clear();
        resets_ = false;
      }
      if (mode_ == kStop) {
        std::this_thread::sleep_for(kTurn);
        continue;
      }
      std::vector<pollfd> polled = {{listener_, POLLIN, 0}};
      for (const Pair& pair : pairs_) {
        for (const int end : pair.ends) polled.push_back({end, POLLIN, 0});
      }
      constexpr int kTurnMs = 5;
      if (poll(polled.data(), polled.size(), kTurnMs) <= 0) continue;
      const size_t pairs = pairs_.size();
      for (size_t i = pairs; i-- > 0;) {
        bool open = true;
        for (size_t e = 0; e < 2 && open; ++e) {
          if (polled[1 + 2 * i + e].revents != 0) {
            open = Carry(pairs_[i].ends[e], pairs_[i].ends[1 - e], e == 0);
          }
        }
        if (open) continue;
        Close(&pairs_[i]);
        pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (polled[0].revents != 0) Accept();
    }
  }

  void Accept() {
    const int in = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (in < 0) return;
    const int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(target_);
    pairs_.push_back({{in, out}});
    if (connect(out, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      Close(&pairs_.back());
      pairs_.pop_back();
    }
  }

  bool Carry(int from, int to, bool onward) {
    std::vector<char> bytes(mode_ == kSlow ? kSlowBytes : size_t{1} << 18);
    const ssize_t got = recv(from, bytes.data(), bytes.size(), 0);
    if (got <= 0) return false;
    if (mode_ == kSwallow) {
      if (onward) swallowed_ += static_cast<uint64_t>(got);
      return true;
    }
    constexpr ssize_t kLarge = 4096;
    if (mode_ == kFlip && got >= kLarge) bytes[static_cast<size_t>(got) / 2] ^= 4;
    if (mode_ == kSlow && got >= kLarge) std::this_thread::sleep_for(4 * kTurn);
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t n =
          send(to, bytes.data() + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += n;
    }
    return true;
  }

  int listener_ = -1, port_ = 0;
  std::atomic<int> target_{0};
  std::atomic<Mode> mode_{kPass};
  std::atomic<bool> resets_{false}, stop_{false};
  std::atomic<uint64_t> swallowed_{0};
  std::atomic<size_t> open_{0};
  std::vector<Pair> pairs_;  // the thread's
  std::thread thread_;
};

}  // namespace mercury::testing
