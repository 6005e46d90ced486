// The doors of a van: what ZeroMQ asks (patches/zeromq) before it lets a connection speak its
// protocol. A stranger costs a descriptor and a hundred bytes for a few seconds; there is room for
// so many of them, and a newcomer takes another one's place (full_door.h).
//
// Thread-safety: Enter, Stay, Refuse, refused and Close from any thread; the rest runs on ZeroMQ's
// I/O thread. Ownership: a Doorman outlives the context whose sockets use its doors. Invariants:
// nobody passes who has not proved that he knows the token; `found` hears of a scheduler's job only
// once that is proved; whoever is turned away is counted.
#pragma once

#include <zmq_door.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>

#include "control/door_handshake.h"

namespace mercury {

class Doorman {
 public:
  // `found`: who stands where the scheduler is expected, and knows the token, has this job.
  Doorman(const std::string& token, Post post, size_t strangers_max, size_t parts_max,
          std::function<void(const JobIdentity& job)> found);

  // What ZMQ_DOOR is set to: of the socket that listens; of those that connect to the scheduler,
  // or to other nodes.
  zmq::door_maker_t* host() { return &host_; }
  zmq::door_maker_t* to_scheduler() { return &to_scheduler_; }
  zmq::door_maker_t* to_node() { return &to_node_; }

  // From now on this node's job is `job`. Before, it lets nobody in.
  void Enter(const JobIdentity& job);
  // And it will have no other, whoever takes the scheduler's place.
  void Stay();
  // Counts, and says so now and then: `what` is "a connection from ..." or "a message: ...".
  void Refuse(const std::string& what);
  uint64_t refused() const { return refused_; }
  // Who is at a door now is not turned away: this process ends.
  void Close() { closed_ = true; }

 private:
  class HostDoor;
  class GuestDoor;
  class Maker : public zmq::door_maker_t {
   public:
    enum class Leads { kIn, kToScheduler, kToNode };
    Maker(Doorman* doorman, Leads leads) : doorman_(doorman), leads_(leads) {}
    zmq::door_t* make(const std::string& peer, const std::function<void()>& close) override;
    void broke_rules(const std::string& peer) override;
    size_t parts_max() const override { return doorman_->parts_max_; }

   private:
    Doorman* const doorman_;
    const Leads leads_;
  };
  struct Visitor {
    std::string peer;
    std::function<void()> close;
    HostDoor* door;
  };

  std::optional<JobIdentity> job() const;
  std::optional<JobIdentity> expected() const;
  void MakeRoom();
  void NotLetIn(const std::string& by, const std::string& why);

  const HmacKey key_;
  const Post post_;
  const size_t strangers_max_, parts_max_;
  const std::function<void(const JobIdentity& job)> found_;
  Maker host_{this, Maker::Leads::kIn};
  Maker to_scheduler_{this, Maker::Leads::kToScheduler};
  Maker to_node_{this, Maker::Leads::kToNode};
  std::list<Visitor> strangers_;  // the oldest first
  uint64_t not_let_in_ = 0;
  std::atomic<uint64_t> refused_{0};
  std::atomic<bool> closed_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::optional<JobIdentity> job_;
  bool stays_ = false;
};

}  // namespace mercury
