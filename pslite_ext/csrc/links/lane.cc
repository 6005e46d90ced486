#include "links/lane.h"

#include <pthread.h>
#include <sys/epoll.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

namespace mercury {
namespace {

constexpr int64_t kTickUs = 1000000;
constexpr int64_t kShareUs = 10000;  // between looks at what each link may have under way
const Status kNoMemory = Status::Exhausted("no memory to carry tensors");
// The kernel may hold as much unsent, for all links together, as they carry in this time, since
// nothing overtakes that; but for each two small packets in any case.
constexpr double kUnsentSeconds = 2.8e-3;
constexpr uint64_t kUnsentBytesMin = 8 << 10;
constexpr int64_t kGoodbyeUs = 500000;   // how long a goodbye may take
constexpr int64_t kServedUs = 10000000;  // and what goes before it

ShareLimits Limits(uint64_t first_bytes, const LinkOptions& options) {
  ShareLimits limits;
  limits.first_bytes = first_bytes;
  limits.links_beside = options.links_beside;
  limits.take_turns = options.take_turns;
  return limits;
}

}  // namespace

// Brings a link's events to its lane.
struct Lane::Watch : public EventHandler {
  Watch(Lane* owner, Link* watched) : lane(owner), link(watched) {}
  void OnEvents(uint32_t events) override {
    events = link->channel().Woken(events);
    if (events == 0) return;  // ServeLocal does the rest
    Status status;
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) status = lane->Read(link);
    if (status.ok() && (events & EPOLLOUT) != 0) status = lane->Write(link);
    if (!status.ok()) lane->Drop(link->peer(), status);
  }
  Lane* lane;
  Link* link;
};

Lane::Lane(std::unique_ptr<Endpoint> endpoint, const LinkOptions& options, LaneEvents events)
    : endpoint_(std::move(endpoint)),
      options_(options),
      events_(std::move(events)),
      in_(Limits(ShareLimits().first_bytes, options),
          [this] { return host_ ? host_->received() : 0; }),
      out_(Limits(kUnsentBytesMax, options), [this] { return host_ ? host_->sent() : 0; }) {}

Lane::~Lane() { Stop(); }

Status Lane::Start(const std::string& name) {
  if (!loop_.status().ok()) return loop_.status();
  next_tick_us_ = NowUs() + kTickUs;
  running_ = true;
  try {
    thread_ = std::thread(&Lane::Run, this);
  } catch (const std::system_error& error) {
    running_ = false;
    return Status::Exhausted(std::string("no thread to carry tensors: ") + error.what());
  }
  pthread_setname_np(thread_.native_handle(), name.c_str());
  return Status::Ok();
}

void Lane::Stop(Parting parting) {
  if (!thread_.joinable()) return;
  Post([this, parting] {
    stopping_ = true;
    stop_by_us_ = NowUs() + (parting == Parting::kServed ? kServedUs : kGoodbyeUs);
    for (auto& [peer, link] : links_) link->SayGoodbye(parting);
  });
  thread_.join();
}

bool Lane::Ask(const std::function<void()>& question) {
  struct Answer {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
  };
  if (!running_) return false;
  if (IsOnIt()) {
    question();
    return true;
  }
  auto answer = std::make_shared<Answer>();
  Post([answer, question] {
    question();  // if it throws, nobody but the one who waits holds the answer
    const std::lock_guard<std::mutex> lock(answer->mutex);
    answer->done = true;
    answer->changed.notify_all();
  });
  std::unique_lock<std::mutex> lock(answer->mutex);
  while (!answer->done && running_ && answer.use_count() > 1) {
    answer->changed.wait_for(lock, std::chrono::milliseconds(100));
  }
  return answer->done;
}

void Lane::AddLink(TcpSocket socket, int peer) {
  if (broken_) return;
  // Both are in place before the loop knows them: each of these lines may run out of memory.
  std::unique_ptr<Channel> channel;
  Status status = MakeChannel(std::move(socket), options_.lends, &channel, options_.ring_bytes);
  if (!status.ok()) return events_.lost(peer, status);
  LinkOptions options = options_;
  options.checksum = options.checksum && channel->NeedsChecksums();
  auto fresh = std::make_unique<Link>(std::move(channel), peer, endpoint_.get(), options);
  auto watch = std::make_unique<Watch>(this, fresh.get());
  watches_[peer] = std::move(watch);
  links_[peer] = std::move(fresh);
  Link* link = links_[peer].get();
  link->shares = !IsLocal(link->fd());
  if (link->shares) {
    link->path = PathOf(link->fd());
    if (options_.links_beside > 0 && !host_) host_.emplace(link->fd());
    in_.Add(peer);
    out_.Add(peer);
    next_share_us_ = 0;
  }
  status = loop_.Add(links_[peer]->fd(), EPOLLIN, watches_[peer].get());
  if (!status.ok()) Drop(peer, status);
}

// False: there is none.
bool Lane::Remove(int peer) {
  const auto it = links_.find(peer);
  if (it == links_.end()) return false;
  // Destroyed later: this may be one of its own calls.
  auto gone = std::make_shared<std::pair<std::unique_ptr<Link>, std::unique_ptr<Watch>>>();
  loop_.Remove(it->second->fd());
  ended_[peer] += it->second->counters();
  gone->first = std::move(it->second);
  gone->second = std::move(watches_[peer]);
  links_.erase(it);
  watches_.erase(peer);
  in_.Remove(peer);
  out_.Remove(peer);
  Post([gone] {});
  return true;
}

void Lane::Drop(int peer, const Status& status) {
  if (!Remove(peer) || stopping_) return;
  if (status.code() == Code::kClosed) {
    events_.left(peer);
  } else {
    events_.lost(peer, status);
  }
}

// Of links that are in use, about once a second.
void Lane::CheckProgress(int64_t now_us) {
  if (broken_) return;
  std::vector<std::pair<int, Status>> failed;
  for (auto& [peer, link] : links_) {
    if (link->progress_at_us() > now_us) continue;
    Status status = link->CheckProgress(now_us);
    if (!status.ok()) failed.emplace_back(peer, std::move(status));
  }
  for (const auto& [peer, status] : failed) Drop(peer, status);
}

// Each looks at the clock: other links' turns take their time.
Status Lane::Read(Link* link) {
  const int64_t now_us = NowUs();
  const uint64_t before = link->counters().bytes_received;
  Status status = link->Read(now_us);
  in_.Carried(link->peer(), link->counters().bytes_received - before, now_us);
  return status;
}

Status Lane::Write(Link* link) {
  const int64_t now_us = NowUs();
  const uint64_t before = link->counters().bytes_sent;
  Status status = link->Write(now_us);
  out_.Carried(link->peer(), link->counters().bytes_sent - before, now_us);
  if (!status.ok() || !link->channel().WakesForRoom()) return status;
  if (link->blocked() != link->watched_for_writing) {
    link->watched_for_writing = link->blocked();
    loop_.Change(link->fd(), EPOLLIN | (link->blocked() ? uint32_t{EPOLLOUT} : 0U));
  }
  return status;
}

void Lane::ShareOut() {
  in_.NextTurn();
  for (const auto& [peer, link] : links_) {
    const TcpPath& path = link->path;
    if (!link->shares) continue;
    const uint64_t out = out_.window_bytes(path.round_trip_us, path.segment_bytes);
    const uint64_t unsent = out_.carries_bytes(kUnsentSeconds, kUnsentBytesMin, path.segment_bytes);
    link->SetShare(in_.window_bytes(path.round_trip_us, path.segment_bytes),
                   out_.bytes_per_second() == 0 ? out : std::min(out, unsent));
  }
}

void Lane::Tick(int64_t now_us) {
  for (const auto& [peer, link] : links_) {
    link->path = PathOf(link->fd());
    endpoint_->OnPath(peer, link->path.round_trip_us, link->path.bytes_per_second);
  }
  if (events_.tick) events_.tick(now_us);
}

// Of links whose descriptors only wake: reads what is there, and goes on where there is room again.
void Lane::ServeLocal() {
  if (broken_) return;
  std::vector<std::pair<int, Status>> failed;
  for (auto& [peer, link] : links_) {
    Status status;
    if (link->channel().HasBytes()) status = Read(link.get());
    if (status.ok() && link->blocked() && link->channel().HasRoom()) {
      status = Write(link.get());
    }
    if (!status.ok()) failed.emplace_back(peer, std::move(status));
  }
  for (const auto& [peer, status] : failed) Drop(peer, status);
}

// Whether there is nothing to do before something wakes the lane.
bool Lane::Rest() {
  bool nothing = true;
  for (auto& [peer, link] : links_) {
    if (!link->channel().Rest(link->blocked()) || link->has_more()) nothing = false;
  }
  return nothing || broken_;
}

void Lane::WriteAll() {
  if (broken_) return;
  std::vector<std::pair<int, Status>> failed;
  // All begin at different peers: else everybody's first packets would meet at peer 0.
  auto it = links_.lower_bound(options_.first_peer);
  for (size_t i = 0; i < links_.size(); ++i, ++it) {
    if (it == links_.end()) it = links_.begin();
    const auto& [peer, link] = *it;
    if (link->blocked()) continue;
    Status status = Write(link.get());
    if (!status.ok()) failed.emplace_back(peer, std::move(status));
  }
  for (const auto& [peer, status] : failed) Drop(peer, status);
}

void Lane::Turn() {
  int64_t now = NowUs();
  int64_t wake_at_us = next_tick_us_;
  for (const auto& [peer, link] : links_) {
    if (!broken_) wake_at_us = std::min(wake_at_us, link->progress_at_us());
    // Nothing is asked of a link whose socket is full.
    if (!link->blocked() && !stopping_) wake_at_us = std::min(wake_at_us, endpoint_->WakeAt(peer));
  }
  const int64_t wake_us = wake_at_us - now;
  const int64_t wait_ms = std::clamp<int64_t>((wake_us + 999) / 1000, 0, stopping_ ? 10 : 1000);
  loop_.Wait(Rest() ? static_cast<int>(wait_ms) : 0);
  now = NowUs();
  if (on_turn) on_turn(now);
  if (now >= next_tick_us_) {
    next_tick_us_ = now + kTickUs;
    Tick(now);
  }
  if (now >= next_share_us_) {
    next_share_us_ = now + kShareUs;
    ShareOut();
  }
  CheckProgress(now);
  ServeLocal();
  WriteAll();
}

// In the middle of something: nothing is read or written any more. `how` is null without memory.
void Lane::Break(const char* how) {
  broken_ = true;
  for (const auto& [peer, link] : links_) loop_.Remove(link->fd());
  if (how == nullptr || broken_by_ != nullptr) return;
  try {
    broken_by_ = std::make_unique<Status>(Status::Internal(how));
  } catch (const std::bad_alloc&) {
    broken_by_ = nullptr;  // then it is said to be memory
  }
}

void Lane::Run() {
  const auto all_said = [this] {
    return broken_ || std::all_of(links_.begin(), links_.end(),
                                  [](const auto& link) { return link.second->said_goodbye(); });
  };
  bool told = false;
  while (!stopping_ || (!all_said() && NowUs() < stop_by_us_)) {
    try {
      if (broken_ && !told && !stopping_) {
        events_.lost(-1, broken_by_ != nullptr ? *broken_by_ : kNoMemory);
        told = true;
      }
      Turn();
    } catch (const std::bad_alloc&) {
      Break(nullptr);
    } catch (const std::exception& error) {
      Break(error.what());
    }
  }
  running_ = false;
  links_.clear();
  watches_.clear();
}

}  // namespace mercury
