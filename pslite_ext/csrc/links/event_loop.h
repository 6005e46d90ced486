// Waits for descriptors and for work from other threads; never spins.
//
// Thread-safety: Post and Wake from any thread; the rest from the thread that calls Wait.
// Ownership: none of descriptors or handlers. Invariants: a handler that has been removed is not
// called; work that was posted is run in order, once, whatever the work or a handler before it has
// thrown.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace mercury {

class EventHandler {
 public:
  virtual ~EventHandler() = default;
  virtual void OnEvents(uint32_t events) = 0;
};

class EventLoop {
 public:
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  Status status() const { return status_; }
  Status Add(int fd, uint32_t events, EventHandler* handler);
  void Change(int fd, uint32_t events);
  void Remove(int fd);
  // Waits at most `wait_ms` (-1: forever) for the next events and handles them.
  void Wait(int wait_ms);
  void Post(std::function<void()> work);
  // Wait returns, whatever else happens.
  void Wake();

 private:
  void RunPosted();

  int epoll_ = -1, wake_ = -1;
  Status status_;
  bool thrown_ = false;                      // the last Wait has ended by an exception
  std::vector<std::function<void()>> work_;  // being run
  size_t next_work_ = 0;
  std::unordered_map<int, EventHandler*> handlers_;
  std::mutex mutex_;  // guards posted_
  std::vector<std::function<void()>> posted_;
};

}  // namespace mercury
