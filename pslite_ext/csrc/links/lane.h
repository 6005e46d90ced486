// One I/O thread with its own links, which carry what its endpoint offers. A process has one lane,
// or more where there are cores and bandwidth for them.
//
// Thread-safety: Start and Stop from one thread; Post, Wake and Ask from any; the rest runs on the
// lane's thread. Ownership: links and the endpoint are the lane's. Invariants: `lost` is called at
// most once for each peer, on the lane's thread; after Stop nothing runs any more.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "links/event_loop.h"
#include "links/fair_share.h"
#include "links/interface_bytes.h"
#include "links/link.h"

namespace mercury {

struct LaneEvents {
  // The link to `peer` has ended without a goodbye; peer -1: the lane itself is in trouble.
  std::function<void(int peer, const Status&)> lost;
  // The peer has said goodbye.
  std::function<void(int peer)> left;
  // Once a second.
  std::function<void(int64_t now_us)> tick;
};

class Lane {
 public:
  Lane(std::unique_ptr<Endpoint> endpoint, const LinkOptions& options, LaneEvents events);
  ~Lane();

  Status Start(const std::string& name);
  // Says goodbye on all links, as far as they take it, and ends the thread.
  void Stop(Parting parting = Parting::kDone);
  void Post(std::function<void()> work) { loop_.Post(std::move(work)); }
  // The endpoint has something for it to send.
  void Wake() { loop_.Wake(); }
  // Runs `question` on the lane's thread and waits for it; false if the lane is not running. On
  // that thread it is run at once.
  bool Ask(const std::function<void()>& question);

  bool IsOnIt() const { return std::this_thread::get_id() == thread_.get_id(); }

  // On the lane's thread:
  EventLoop& loop() { return loop_; }
  void AddLink(TcpSocket socket, int peer);
  // Nothing more is said to that peer, nor heard of it.
  void Close(int peer) { Remove(peer); }
  const std::map<int, std::unique_ptr<Link>>& links() const { return links_; }
  // What links that have ended had carried.
  const std::map<int, LinkCounters>& ended() const { return ended_; }
  // Called before each turn's writing; used for handshakes that time out.
  std::function<void(int64_t now_us)> on_turn;

 private:
  struct Watch;
  void Run();
  void Turn();
  Status Read(Link* link);
  Status Write(Link* link);
  void WriteAll();
  void CheckProgress(int64_t now_us);
  void Tick(int64_t now_us);
  void ShareOut();
  void ServeLocal();
  bool Rest();
  bool Remove(int peer);
  void Drop(int peer, const Status& status);
  void Break(const char* how);

  const std::unique_ptr<Endpoint> endpoint_;
  const LinkOptions options_;
  const LaneEvents events_;
  EventLoop loop_;
  std::map<int, std::unique_ptr<Link>> links_;
  std::map<int, std::unique_ptr<Watch>> watches_;
  std::map<int, LinkCounters> ended_;
  std::thread thread_;
  std::atomic<bool> running_{false};
  bool stopping_ = false;
  bool broken_ = false;  // in the middle of something: nothing is read or written any more
  std::unique_ptr<const Status> broken_by_;  // null: memory ran out
  int64_t stop_by_us_ = 0;
  int64_t next_tick_us_ = 0;
  int64_t next_share_us_ = 0;
  std::optional<InterfaceBytes> host_;  // where others share it: the first link's interface
  FairShare in_, out_;                  // of what the links carry
};

}  // namespace mercury
