#include "links/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace mercury {
namespace {

constexpr int kEventsAtOnce = 64;

epoll_event EventFor(int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  return event;
}

}  // namespace

EventLoop::EventLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  epoll_event event = EventFor(wake_, EPOLLIN);
  if (epoll_ < 0 || wake_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) != 0) {
    status_ = Status::Exhausted(std::string("no event loop: ") + std::strerror(errno));
  }
}

EventLoop::~EventLoop() {
  if (epoll_ >= 0) close(epoll_);
  if (wake_ >= 0) close(wake_);
}

Status EventLoop::Add(int fd, uint32_t events, EventHandler* handler) {
  epoll_event event = EventFor(fd, events);
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) {
    return Status::Exhausted(std::string("cannot watch a connection: ") + std::strerror(errno));
  }
  handlers_[fd] = handler;
  return Status::Ok();
}

void EventLoop::Change(int fd, uint32_t events) {
  epoll_event event = EventFor(fd, events);
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::Remove(int fd) {
  handlers_.erase(fd);
  epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
}

void EventLoop::Wait(int wait_ms) {
  epoll_event events[kEventsAtOnce];
  const int count = epoll_wait(epoll_, events, kEventsAtOnce, thrown_ ? 0 : wait_ms);
  thrown_ = true;
  for (int i = 0; i < count; ++i) {
    const int fd = events[i].data.fd;
    if (fd == wake_) {
      uint64_t wakes;
      [[maybe_unused]] const ssize_t n = read(wake_, &wakes, sizeof(wakes));
      continue;
    }
    const auto handler = handlers_.find(fd);
    if (handler != handlers_.end()) handler->second->OnEvents(events[i].events);
  }
  RunPosted();
  thrown_ = false;
}

void EventLoop::RunPosted() {
  while (true) {
    while (next_work_ < work_.size()) {
      const std::function<void()> each = std::move(work_[next_work_++]);
      each();
    }
    work_.clear();
    next_work_ = 0;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (posted_.empty()) return;
    work_.swap(posted_);
  }
}

void EventLoop::Post(std::function<void()> work) {
  bool first;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    first = posted_.empty();
    posted_.push_back(std::move(work));
  }
  if (first) Wake();
}

void EventLoop::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_, &one, sizeof(one));  // full means awake
}

}  // namespace mercury
