#include "messages/classic_schedule.h"

#include <pthread.h>

#include <chrono>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "ps/internal/postoffice.h"
#include "trace/trace_log.h"

namespace mercury {
namespace {

constexpr int64_t kWaitUsMax = 1000000;

}  // namespace

ClassicSchedule::ClassicSchedule(int profile_steps, const std::string& profile_text)
    : queue_(profile_steps),
      notes_(TraceLog::Active() != nullptr ? ProphetNotes::Write(NoteInTrace) : nullptr) {
  if (!profile_text.empty()) {
    const Status status = queue_.profile().Load(profile_text);
    if (!status.ok()) Log(LogLevel::kWarning, ProfileRefused(status));
  }
  thread_ = std::thread(&ClassicSchedule::Run, this);
  pthread_setname_np(thread_.native_handle(), "mercury-queue");
}

ClassicSchedule::~ClassicSchedule() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    flushed_ = stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

uint64_t ClassicSchedule::NewId() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return next_id_++;
}

void ClassicSchedule::Add(uint64_t id, uint64_t key, uint64_t bytes, int32_t priority,
                          HandOver hand_over) {
  const std::lock_guard<std::mutex> lock(mutex_);
  queue_.Ready(id, key, bytes, priority, NowUs());
  waiting_[id] = std::move(hand_over);
  const ProphetFigures& figures = queue_.profile().figures();
  if (notes_.Behind(figures)) notes_.Tell(figures, queue_.blocks());
  changed_.notify_all();
}

void ClassicSchedule::Confirmed(uint64_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  queue_.Confirmed(id, NowUs());
  changed_.notify_all();
}

void ClassicSchedule::Done(uint64_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  queue_.Done(id, NowUs());
  changed_.notify_all();
}

void ClassicSchedule::Flush() {
  const std::lock_guard<std::mutex> lock(mutex_);
  flushed_ = true;
  changed_.notify_all();
}

ProphetFigures ClassicSchedule::profile_figures() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return queue_.profile().figures();
}

BlockFigures ClassicSchedule::blocks() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return queue_.blocks();
}

std::string ClassicSchedule::Profile(const ProphetProfile::NameOf& name_of) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return queue_.profile().Text(name_of);
}

void ClassicSchedule::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    std::vector<HandOver> now;
    if (flushed_) {
      for (auto& [id, hand_over] : waiting_) now.push_back(std::move(hand_over));
      waiting_.clear();
    } else {
      for (const uint64_t id : queue_.Take(NowUs())) {
        const auto it = waiting_.find(id);
        now.push_back(std::move(it->second));
        waiting_.erase(it);
      }
    }
    const std::vector<std::string> notices = queue_.TakeNotices();
    if (!now.empty() || !notices.empty()) {
      lock.unlock();  // each call takes locks of its own, and may come back here
      try {
        for (const HandOver& hand_over : now) hand_over();
      } catch (const std::exception& error) {
        ps::Postoffice::Get()->van()->Fail(error.what());
      }
      for (const std::string& notice : notices) Log(LogLevel::kWarning, notice);
      lock.lock();
      continue;
    }
    if (stopping_) return;
    if (flushed_ || queue_.WakeAt() == kNever) {
      changed_.wait(lock);
    } else {
      const int64_t us = std::clamp<int64_t>(queue_.WakeAt() - NowUs(), 0, kWaitUsMax);
      changed_.wait_for(lock, std::chrono::microseconds(us));
    }
  }
}

}  // namespace mercury
